#include "api/nccl/src/device.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/nccl/src/comm.h"
#include "api/nccl/src/log.h"
#include "transport/engine/signals_kept_out.h"

namespace paceline::nccl {
namespace {

// NCCL's threads are at it: the keeper looks again after this.
constexpr int kStandAsideMillis = 2;
constexpr int kLongestSleepMillis = 100;

}  // namespace

api::Result<std::shared_ptr<Device>> Device::Open(const Nic& nic, int number, const api::ContextOptions& options,
                                                  GpuPlan gpus) {
  api::ContextOptions own = options;
  own.bind = nic.bind;
  if (own.key_file.empty() && nic.open_to_others) {
    Warn(nic.name +
         " has no cluster key: whoever reaches it can connect, read along and change what is sent. Name a key file in "
         "PACELINE_KEY_FILE, or say PACELINE_KEY_FILE=none if that is wanted.");
  }
  if (own.key_file.empty()) own.key_file = "none";  // said here, in NCCL's log
  auto context = api::Context::Create(own);
  if (!context.ok()) return context.status();
  std::shared_ptr<Device> device(new Device(*std::move(context), nic, number, own, std::move(gpus)));
  if (own.progress == api::ProgressMode::kThread) return device;
  device->stop_descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (device->stop_descriptor_ < 0) {
    return api::Status(api::StatusCode::kInternal, std::string("eventfd: ") + std::strerror(errno));
  }
  const SignalsKeptOut here;
  device->keeper_ = std::thread([keeper = device.get()] { keeper->Keep(); });
  return device;
}

Device::Device(api::Context context, const Nic& nic, int number, const api::ContextOptions& options, GpuPlan gpus)
    : number_(number),
      name_(nic.name),
      matched_sends_(options.matched_sends),
      gpus_(std::move(gpus)),
      context_(std::make_unique<api::Context>(std::move(context))) {}

Device::~Device() {
  if (keeper_.joinable()) {
    stop_ = true;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_descriptor_, &one, sizeof(one));
    keeper_.join();
  }
  if (stop_descriptor_ >= 0) close(stop_descriptor_);
  // Connections hold the context: without them its end closes what they were, and waits for the peers' answers.
  retired_.clear();
}

api::Result<const GpuCopies*> Device::CopiesFor(int gpu) {
  GpuCopies& copies = copies_[gpu];
  for (std::unique_ptr<gpudirect::Staging>* staging : {&copies.out, &copies.in}) {
    if (*staging != nullptr) continue;
    auto created = gpudirect::Staging::Create(*gpus_.driver, gpu, kStagingPoolBytes);
    if (!created.ok()) return api::Status(api::StatusCode::kInternal, std::string(created.status().message()));
    *staging = *std::move(created);
  }
  return &copies;
}

api::Result<const gpudirect::PrimaryContext*> Device::ContextOf(int gpu) {
  std::unique_ptr<gpudirect::PrimaryContext>& context = gpu_contexts_[gpu];
  if (context == nullptr) {
    auto created = gpudirect::PrimaryContext::Create(*gpus_.driver, gpu);
    if (!created.ok()) return api::Status(api::StatusCode::kInternal, std::string(created.status().message()));
    context = *std::move(created);
  }
  return context.get();
}

void Device::TellOnce(const std::string& text) {
  if (told_.insert(text).second) Inform(name_ + ": " + text);
}

bool Device::Pass() {
  std::array<api::Completion, 64> batch;
  bool busy = false;
  while (const size_t count = context_->completions().Poll(batch.data(), batch.size())) {
    for (size_t i = 0; i < count; ++i) Comm::Hand(batch[i]);
    busy = true;
    if (count < batch.size()) break;
  }
  if (busy) context_->Transmit();  // what is owed for what has come leaves now: NCCL may not call again soon
  for (Listener* listener : listeners_) busy |= listener->TakeRequests();
  for (size_t i = 0; i < attended_.size();) {
    if (attended_[i]->Care()) {
      ++i;
    } else {
      attended_[i] = attended_.back();
      attended_.pop_back();
    }
  }
  Reap();
  return busy;
}

void Device::Attend(Comm* comm) {
  if (std::find(attended_.begin(), attended_.end(), comm) == attended_.end()) attended_.push_back(comm);
}

void Device::Retire(std::unique_ptr<Comm> comm) {
  retired_.push_back(std::move(comm));
  Reap();
}

void Device::Reap() {
  std::erase_if(retired_, [this](const std::unique_ptr<Comm>& comm) {
    if (!comm->over()) return false;
    std::erase(attended_, comm.get());
    return true;
  });
}

void Device::Keep() {
  const auto sleep = [this](int descriptor, int millis) {
    pollfd waiting[] = {{stop_descriptor_, POLLIN, 0}, {descriptor, POLLIN, 0}};
    poll(waiting, descriptor >= 0 ? 2 : 1, millis);
  };
  uint64_t seen = 0;
  while (!stop_) {
    bool armed = false;
    {
      const auto lock = Lock();
      const bool others = calls_ != seen;
      seen = calls_;
      if (!others) {
        if (Pass()) continue;
        armed = attended_.empty() && context_->completions().Arm();
      }
      if (!others && !armed && attended_.empty()) continue;
    }
    if (armed) {
      sleep(context_->completions().descriptor(), kLongestSleepMillis);
    } else {
      sleep(-1, kStandAsideMillis);
    }
  }
}

}  // namespace paceline::nccl
