#include "api/nccl/src/plugin.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "api/nccl/src/log.h"

namespace paceline::nccl {
namespace {

constexpr int kMostTrafficClass = 255;

abi::Result ResultOf(const api::Status& status) {
  switch (status.code()) {
    case api::StatusCode::kOk:
      return abi::Result::kSuccess;
    case api::StatusCode::kInvalidArgument:
    case api::StatusCode::kNotFound:
      return abi::Result::kInvalidArgument;
    case api::StatusCode::kUnimplemented:
      return abi::Result::kInvalidUsage;
    case api::StatusCode::kUnavailable:
    case api::StatusCode::kTimedOut:
      return abi::Result::kRemoteError;
    case api::StatusCode::kAlreadyExists:
    case api::StatusCode::kPermissionDenied:
    case api::StatusCode::kResourceExhausted:
    case api::StatusCode::kInternal:
      return abi::Result::kSystemError;
  }
  return abi::Result::kInternalError;
}

abi::Result Fail(const std::string& doing, const api::Status& status) {
  Warn(doing + ": " + status.message());
  return ResultOf(status);
}

abi::Result Refuse(const std::string& why) {
  Warn(why);
  return abi::Result::kInvalidArgument;
}

// What the plugin wants other than a program's usual context; PACELINE_* goes over it.
api::ContextOptions Defaults() {
  api::ContextOptions options;
  options.prompt_acks = true;         // NCCL stops calling when it has what it waits for
  options.ordered_placement = true;   // kernels of LL and LL128 poll flags in what is being received
  options.matched_sends = true;       // a completed send has met its receive: its rank may close, finalize and exit
  options.max_completions = 1 << 20;  // 32 groups of 8 in some thousand comms
  return options;
}

// What NCCL has announced of the receiving side; 0: nothing.
uint32_t FanInOf(const abi::NetAttributes& attributes) {
  const int64_t peers = attributes.receive.max_concurrent_peers, flows = attributes.receive.max_flows_per_peer;
  if (peers <= 0) return 0;
  return static_cast<uint32_t>(std::min<int64_t>(peers * std::max<int64_t>(flows, 1), 1 << 20));
}

Plugin* the_plugin = nullptr;

}  // namespace

Plugin& Plugin::Get() {
  static Plugin& plugin = *(the_plugin = new Plugin);
  return plugin;
}

void Plugin::Free() {
  if (the_plugin == nullptr || !the_plugin->mutex_.try_lock()) return;  // locked: a thread is still in it
  the_plugin->mutex_.unlock();
  const auto is_open = [](const Communicator& one) { return !one.comms.empty() || !one.listeners.empty(); };
  if (the_plugin->communicators_.empty() && !is_open(the_plugin->process_)) delete the_plugin;
}

abi::Result Plugin::Start(abi::Logger logger, abi::Profiler profiler) {
  SetLogger(logger);
  profiler_ = profiler;
  if (nics_) return abi::Result::kSuccess;
  auto options = api::ContextOptions::FromEnvironment(Defaults());
  if (!options.ok()) return Fail("init", options.status());
  const char* hca = std::getenv("PACELINE_HCA");
  auto nics = Nics::Find(*options, hca == nullptr ? "" : hca);
  if (!nics.ok()) return Fail("init", nics.status());
  if (const auto result = FindCuda(*options, *nics); result != abi::Result::kSuccess) return result;
  options_ = *std::move(options);
  nics_.emplace(*std::move(nics));
  std::string list;
  for (int i = 0; i < nics_->count(); ++i) {
    list += (i == 0 ? "" : ", ") + nics_->Get(i)->name + " (" + std::to_string(nics_->Get(i)->speed_mbps) + " Mb/s)";
  }
  Inform(std::string("Paceline ") + api::Version() + ", lane " + options_->lane + ", congestion control " +
         options_->congestion_control + ", devices: " + list);
  if (options_->lane == "auto") {
    const std::string cards = UsableCards();
    if (!cards.empty()) Inform("RDMA cards are not used, PACELINE_LANE=verbs does: " + cards);
  }
  merged_again_ = !merged_.empty();
  for (const std::vector<int>& parts : std::exchange(merged_, {})) {
    if (!nics_->Merge(parts).ok()) break;  // a part is gone: so are this one and those with higher numbers
  }
  return abi::Result::kSuccess;
}

// Staging is not by default: where the plugin takes host memory only, NCCL's kernels write into pinned memory by
// themselves, which spares the copy that staging makes.
abi::Result Plugin::FindCuda(const api::ContextOptions& options, const Nics& nics) {
  const char* wanted = std::getenv("PACELINE_GPU_STAGING");
  gpu_staging_ = false;
  cuda_ = nullptr;
  if (wanted != nullptr && !absl::SimpleAtob(wanted, &gpu_staging_)) {
    return Refuse(std::string("PACELINE_GPU_STAGING=") + wanted + ": write 1 or 0");
  }
  bool cards_place = false;
  for (int i = 0; i < nics.count(); ++i) cards_place |= nics.Get(i)->card.places;
  if (!gpu_staging_ && !cards_place) return abi::Result::kSuccess;
  std::string reason;
  cuda_ = gpudirect::CudaDriver::Get(&reason);
  if (cuda_ == nullptr) {
    const std::string text = "memory of GPUs is not taken: " + reason;
    gpu_staging_ ? Warn("PACELINE_GPU_STAGING=1, but " + text) : Inform(text);
    return abi::Result::kSuccess;
  }
  for (int i = 0; i < nics.count(); ++i) {
    const Nic& nic = *nics.Get(i);
    for (const std::string& text : GpuPlan::Make(cuda_, nic, gpu_staging_, options.encrypt).Describe()) {
      Inform(nic.name + ": memory of " + text);
    }
  }
  return abi::Result::kSuccess;
}

GpuPlan Plugin::PlanFor(const Nic& nic) const { return GpuPlan::Make(cuda_, nic, gpu_staging_, options_->encrypt); }

abi::Result Plugin::InitOnce(abi::Logger logger, abi::Profiler profiler) {
  const std::lock_guard lock(mutex_);
  return Start(logger, profiler);
}

abi::Result Plugin::Init(Communicator** communicator, uint64_t id, int traffic_class, abi::Logger logger,
                         abi::Profiler profiler) {
  const std::lock_guard lock(mutex_);
  if (const abi::Result result = Start(logger, profiler); result != abi::Result::kSuccess) return result;
  if (traffic_class > kMostTrafficClass) {
    return Refuse("traffic class " + std::to_string(traffic_class) + "; it may be 0 to 255");
  }
  auto fresh = std::make_unique<Communicator>();
  fresh->id = id;
  fresh->traffic_class = traffic_class;
  *communicator = fresh.get();
  communicators_[*communicator] = std::move(fresh);
  return abi::Result::kSuccess;
}

abi::Result Plugin::Finalize(Communicator* communicator) {
  std::unique_ptr<Communicator> leaving;
  {
    const std::lock_guard lock(mutex_);
    const auto found = communicators_.find(communicator);
    if (found == communicators_.end()) return Refuse("finalize of a communicator that was not initialised");
    leaving = std::move(found->second);
    communicators_.erase(found);
    if (communicators_.empty()) {  // the next one looks at the machine and the environment anew
      merged_ = nics_->Merged();
      nics_.reset();
      options_.reset();
    }
  }
  if (!leaving->comms.empty() || !leaving->listeners.empty()) {
    Warn("finalize closes " + std::to_string(leaving->comms.size()) + " comms and " +
         std::to_string(leaving->listeners.size()) + " listeners that were left open");
  }
  for (Comm* comm : leaving->comms) Comm::Close(std::unique_ptr<Comm>(comm));
  for (Listener* listener : leaving->listeners) Listener::Close(std::unique_ptr<Listener>(listener));
  return abi::Result::kSuccess;
}

abi::Result Plugin::SetAttributes(Communicator* communicator, const abi::NetAttributes& attributes) {
  const std::lock_guard lock(mutex_);
  Communicator* known = Known(communicator);
  if (known == nullptr) return Refuse("attributes for a communicator that was not initialised");
  known->attributes = attributes;
  return abi::Result::kSuccess;
}

Communicator* Plugin::Known(Communicator* communicator) {
  if (communicator == nullptr) return &process_;
  return communicators_.contains(communicator) ? communicator : nullptr;
}

abi::Profiler Plugin::CurrentProfiler() {
  const std::lock_guard lock(mutex_);
  return profiler_;
}

abi::Result Plugin::Devices(int* count) {
  const std::lock_guard lock(mutex_);
  if (!nics_) return Refuse("devices before init");
  if (std::exchange(merged_again_, false)) nics_->DropMerged();
  *count = nics_->count();
  return abi::Result::kSuccess;
}

abi::Result Plugin::Properties(int device, DeviceProperties* properties) {
  const std::lock_guard lock(mutex_);
  const Nic* nic = nics_ ? nics_->Get(device) : nullptr;
  if (nic == nullptr) return Refuse("there is no device " + std::to_string(device));
  properties->nic = nic;
  const GpuPlan gpus = PlanFor(*nic);
  properties->pointer_support = gpus.pointer_support();
  properties->force_flush = gpus.needs_flush();
  // Memory that a card turns out not to take is staged, whatever was offered.
  properties->most_bytes = gpus.takes_any() ? kStagingPoolBytes / 2 : kMostMessageBytes;
  return abi::Result::kSuccess;
}

abi::Result Plugin::MakeVirtualDevice(int* device, const std::vector<int>& parts) {
  const std::lock_guard lock(mutex_);
  if (!nics_) return Refuse("a virtual device before init");
  const auto number = nics_->Merge(parts);
  if (!number.ok()) return Fail("makeVDevice", number.status());
  *device = *number;
  Inform("virtual device " + std::to_string(*device) + ": " + nics_->Get(*device)->name);
  return abi::Result::kSuccess;
}

abi::Result Plugin::Reach(Communicator* communicator, int number, int* wanted_class, std::shared_ptr<Device>* device,
                          Communicator** owner) {
  const std::lock_guard lock(mutex_);
  int& traffic_class = *wanted_class;
  *owner = Known(communicator);
  if (*owner == nullptr) return Refuse("a communicator that was not initialised");
  const Nic* nic = nics_ ? nics_->Get(number) : nullptr;
  if (nic == nullptr) return Refuse("there is no device " + std::to_string(number));
  if (traffic_class == abi::kUndefined) traffic_class = (*owner)->traffic_class;
  if (traffic_class == abi::kUndefined) traffic_class = options_->traffic_class;
  if (traffic_class < 0 || traffic_class > kMostTrafficClass) {
    return Refuse("traffic class " + std::to_string(traffic_class) + "; it may be 0 to 255");
  }
  std::weak_ptr<Device>& known = devices_[{number, traffic_class}];
  *device = known.lock();
  if (*device != nullptr) return abi::Result::kSuccess;
  api::ContextOptions options = *options_;
  options.traffic_class = static_cast<uint8_t>(traffic_class);
  if (options.fan_in == 0) options.fan_in = FanInOf((*owner)->attributes);
  auto opened = Device::Open(*nic, number, options, PlanFor(*nic));
  if (!opened.ok()) return Fail("device " + nic->name, opened.status());
  *device = *std::move(opened);
  known = *device;
  return abi::Result::kSuccess;
}

abi::Result Plugin::Listen(Communicator* communicator, int number, void* handle, Listener** listener) {
  *listener = nullptr;
  std::shared_ptr<Device> device;
  Communicator* owner = nullptr;
  int traffic_class = abi::kUndefined;
  if (const auto result = Reach(communicator, number, &traffic_class, &device, &owner);
      result != abi::Result::kSuccess) {
    return result;
  }
  const abi::Profiler profiler = CurrentProfiler();
  {
    const auto lock = device->Lock();
    auto opened = Listener::Open(device, profiler);
    if (!opened.ok()) return Fail("listen", opened.status());
    const api::Handle own = (*opened)->handle();
    static_assert(sizeof(own.bytes) <= abi::kHandleBytes);
    std::memcpy(handle, own.bytes.data(), own.bytes.size());
    *listener = (*opened).release();
  }
  const std::lock_guard lock(mutex_);
  owner->listeners.insert(*listener);
  return abi::Result::kSuccess;
}

abi::Result Plugin::Connect(Communicator* communicator, int number, int traffic_class, const void* handle,
                            Comm** comm) {
  *comm = nullptr;
  std::shared_ptr<Device> device;
  Communicator* owner = nullptr;
  if (const auto result = Reach(communicator, number, &traffic_class, &device, &owner);
      result != abi::Result::kSuccess) {
    return result;
  }
  const std::tuple key(number, traffic_class, std::string(static_cast<const char*>(handle), api::Handle::kBytes));
  Attempt attempt;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = owner->attempts.find(key); found != owner->attempts.end()) {
      Attempt known(std::move(found->second));
      owner->attempts.erase(found);
      std::swap(attempt.device, known.device);
      std::swap(attempt.connection, known.connection);
    }
  }
  const abi::Profiler profiler = CurrentProfiler();
  bool refused = false;
  {
    const auto lock = device->Lock();
    if (attempt.device == nullptr) {
      api::Handle peer;
      std::memcpy(peer.bytes.data(), handle, peer.bytes.size());
      auto connection = device->context().Connect(peer);
      if (!connection.ok()) return Fail("connect", connection.status());
      attempt.device = device;
      attempt.connection = *std::move(connection);
    }
    device->Progress();
    const api::ConnectionState state = attempt.connection.state();
    if (state == api::ConnectionState::kEstablished) {
      *comm = new Comm(device, std::move(attempt.connection), Comm::Direction::kSend, profiler);
    } else if (state == api::ConnectionState::kClosed) {
      Warn("connect: " + attempt.connection.close_reason());
      refused = true;
    }
  }
  if (refused) return abi::Result::kRemoteError;
  const std::lock_guard lock(mutex_);
  if (*comm != nullptr) {
    owner->comms.insert(*comm);
  } else {
    owner->attempts.emplace(key, std::move(attempt));
  }
  return abi::Result::kSuccess;
}

abi::Result Plugin::Accept(Listener* listener, Comm** comm) {
  {
    const auto lock = listener->device().Lock();
    *comm = listener->Accept().release();
  }
  if (*comm == nullptr) return abi::Result::kSuccess;
  const std::lock_guard lock(mutex_);
  Communicator* owner = &process_;
  for (const auto& [communicator, owned] : communicators_) {
    if (communicator->listeners.contains(listener)) owner = communicator;
  }
  owner->comms.insert(*comm);
  return abi::Result::kSuccess;
}

abi::Result Plugin::RegisterMemory(const char* doing, Comm* comm, void* data, size_t bytes, int type,
                                   const GivenDmaBuf& dma_buf, Memory** memory) {
  *memory = nullptr;
  const auto lock = comm->device().Lock();
  auto registered = Memory::Register(comm->shared_device(), data, bytes, type, dma_buf);
  if (!registered.ok()) return Fail(doing, registered.status());
  *memory = (*registered).release();
  return abi::Result::kSuccess;
}

Attempts Plugin::AbandonedAttempts() {
  if (!process_.comms.empty() || !process_.listeners.empty()) return {};
  return std::exchange(process_.attempts, {});
}

abi::Result Plugin::Close(Comm* comm) {
  Attempts abandoned;
  {
    const std::lock_guard lock(mutex_);
    process_.comms.erase(comm);
    abandoned = AbandonedAttempts();
    for (const auto& [communicator, owned] : communicators_) communicator->comms.erase(comm);
  }
  Comm::Close(std::unique_ptr<Comm>(comm));
  return abi::Result::kSuccess;
}

abi::Result Plugin::Close(Listener* listener) {
  Attempts abandoned;
  {
    const std::lock_guard lock(mutex_);
    process_.listeners.erase(listener);
    abandoned = AbandonedAttempts();
    for (const auto& [communicator, owned] : communicators_) communicator->listeners.erase(listener);
  }
  Listener::Close(std::unique_ptr<Listener>(listener));
  return abi::Result::kSuccess;
}

}  // namespace paceline::nccl
