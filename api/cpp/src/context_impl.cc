#include "api/cpp/src/context_impl.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "api/cpp/src/convert.h"
#include "api/cpp/src/engine_options.h"
#include "api/cpp/src/handle.h"
#include "transport/engine/clock.h"

namespace paceline::api {

Result<std::shared_ptr<ContextImpl>> ContextImpl::Create(const ContextOptions& options) {
  std::shared_ptr<ContextImpl> impl(new ContextImpl());
  if (Status status = impl->Open(options); !status.ok()) return status;
  return impl;
}

Status ContextImpl::Open(const ContextOptions& options) {
  if (Status status = CheckEngines(options); !status.ok()) return status;
  const size_t count = std::max<uint32_t>(options.engines, 1);
  if (count > 1) group_ = std::make_unique<EngineGroup>();
  for (size_t i = 0; i < count; ++i) {
    auto engine = ContextEngine::Create(options, i, group_.get());
    if (!engine.ok()) return engine.status();
    engines_.push_back(*std::move(engine));
  }
  if (!several()) return Status();
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  for (const auto& engine : engines_) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = engine->descriptor()}};
    if (!epoll_.valid() || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, engine->descriptor(), &event) != 0) {
      return FromAbsl(absl::ErrnoToStatus(errno, "epoll"));
    }
  }
  return Status();
}

ContextEngine& ContextImpl::LightestEngine() {
  return **std::min_element(engines_.begin(), engines_.end(),
                            [](const auto& a, const auto& b) { return a->load() < b->load(); });
}

ContextImpl::~ContextImpl() {
  if (!several()) return;
  for (const auto& engine : engines_) engine->StartClosing();
}

// ---- listeners

uint32_t ContextImpl::Listen(const ConnectionSetup& setup, uint64_t service, ContextEngine* home) {
  Listening listening = {.numbers = std::vector<uint32_t>(engines_.size(), 0), .nonce = service};
  if (service != 0) {
    std::lock_guard lock(listeners_mutex_);
    if (!nonces_.insert(service).second) return 0;
  }
  // The first engine, to which requests come, listens last, when there is who takes them.
  for (size_t i = engines_.size(); i-- > 0;) {
    if (i == 0 && several()) group_->spreader.AddListener(listening.nonce, home);
    if (home != nullptr && home != engines_[i].get()) continue;
    listening.numbers[i] = engines_[i]->Listen(setup, listening.nonce);
    if (listening.nonce != 0) continue;
    listening.nonce = engines_[i]->NonceOf(listening.numbers[i]);
    std::lock_guard lock(listeners_mutex_);
    nonces_.insert(listening.nonce);
  }
  std::lock_guard lock(listeners_mutex_);
  listeners_[++last_listener_] = std::move(listening);
  return last_listener_;
}

void ContextImpl::CloseListener(uint32_t listener) {
  const Listening listening = Find(listener);
  if (several()) group_->spreader.RemoveListener(listening.nonce);
  for (size_t i = 0; i < engines_.size(); ++i) {
    if (listening.numbers[i] != 0) engines_[i]->CloseListener(listening.numbers[i]);
  }
  std::lock_guard lock(listeners_mutex_);
  nonces_.erase(listening.nonce);
  listeners_.erase(listener);
}

ContextImpl::Listening ContextImpl::Find(uint32_t listener) {
  std::lock_guard lock(listeners_mutex_);
  const auto found = listeners_.find(listener);
  return found == listeners_.end() ? Listening{.numbers = std::vector<uint32_t>(engines_.size(), 0)} : found->second;
}

Handle ContextImpl::HandleOf(uint32_t listener) { return EncodeHandle(front().AddressFor(Find(listener).nonce)); }

ContextImpl::Accepted ContextImpl::Accept(uint32_t listener) {
  const Listening listening = Find(listener);
  for (size_t i = 0; i < engines_.size(); ++i) {
    if (listening.numbers[i] == 0) continue;
    const ConnectionId connection = engines_[i]->Accept(listening.numbers[i]);
    if (connection != kNoConnection) return {.engine = engines_[i].get(), .connection = connection};
  }
  return {};
}

ContextImpl::Accepted ContextImpl::WaitAccept(uint32_t listener, std::chrono::nanoseconds timeout) {
  const Time deadline = MonotonicNow() + Duration::Nanos(timeout.count());
  if (!threaded()) {
    const uint32_t number = Find(listener).numbers.front();
    front().WaitUntil([&] { return front().HasRequest(number); }, timeout);
  }
  while (true) {
    const Accepted accepted = Accept(listener);
    if (accepted.connection != kNoConnection || MonotonicNow() >= deadline) return accepted;
    usleep(50);  // connection set-up only: no need to be quick
  }
}

// ---- memory

// Every engine gets the region, as the first one has named it.
template <typename Register>
Result<RegionId> ContextImpl::RegisterWithAll(const Register& register_with) {
  std::lock_guard lock(memory_mutex_);
  Result<RegionId> region = register_with(front(), RegionName());
  if (!region.ok() || !several()) return region;
  const RegionName name = {.id = *region, .key = front().ExportMemory(*region).key};
  for (size_t i = 1; i < engines_.size(); ++i) {
    Result<RegionId> same = register_with(*engines_[i], name);
    if (same.ok()) continue;
    while (i-- > 0) engines_[i]->DeregisterMemory(*region);
    return same;
  }
  return region;
}

Result<RegionId> ContextImpl::RegisterMemory(void* base, uint64_t bytes, uint8_t access, ConnectionId connection) {
  return RegisterWithAll([=](ContextEngine& engine, const RegionName& same_as) {
    return engine.RegisterMemory(base, bytes, access, connection, same_as);
  });
}

Result<RegionId> ContextImpl::RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes,
                                               uint8_t access) {
  return RegisterWithAll([=](ContextEngine& engine, const RegionName& same_as) {
    return engine.RegisterMemoryAs(key, origin, base, bytes, access, same_as);
  });
}

Result<RegionId> ContextImpl::RegisterDeviceMemory(void* base, uint64_t bytes, uint8_t access,
                                                   const DeviceMemory& memory) {
  return RegisterWithAll([=](ContextEngine& engine, const RegionName& same_as) {
    return engine.RegisterDeviceMemory(base, bytes, access, memory, same_as);
  });
}

void ContextImpl::DeregisterMemory(RegionId region) {
  std::lock_guard lock(memory_mutex_);
  for (const auto& engine : engines_) engine->DeregisterMemory(region);
}

RemoteMemory ContextImpl::ExportMemory(RegionId region) {
  RemoteMemory memory = front().ExportMemory(region);
  if (several()) {
    memory.lane_base = 0;
    memory.lane_keys = {};
  }
  return memory;
}

// ---- progress

size_t ContextImpl::PollCompletions(Completion* out, size_t room) {
  if (!several()) return front().PollCompletions(out, room);
  // Each has its turn to be the first, so that none of them waits for ever behind one that always has some.
  const size_t first = next_poll_.fetch_add(1, std::memory_order_relaxed);
  size_t count = 0;
  for (size_t i = 0; i < engines_.size() && count < room; ++i) {
    count += engines_[(first + i) % engines_.size()]->PollCompletions(out + count, room - count);
  }
  return count;
}

bool ContextImpl::Wait(std::chrono::nanoseconds timeout) {
  if (!threaded()) return front().WaitManually(timeout);
  const Time start = MonotonicNow();
  const Time deadline = start + Duration::Nanos(timeout.count());
  const Time spin_until = std::min(deadline, start + (front().crowded() ? Duration() : front().spin()));
  const auto any_ready = [this] {
    return std::any_of(engines_.begin(), engines_.end(), [](const auto& engine) { return engine->ready(); });
  };
  while (!any_ready() && !front().interrupted() && MonotonicNow() < spin_until) {
  }
  std::array<bool, kMostEngines> joined{};
  std::array<pollfd, kMostEngines> waiting{};
  for (size_t i = 0; i < engines_.size(); ++i) {
    waiting[i] = {.fd = engines_[i]->descriptor(), .events = POLLIN, .revents = 0};
  }
  const auto leave = [&](bool there) {
    for (size_t i = 0; i < engines_.size(); ++i) {
      if (joined[i]) engines_[i]->LeaveWait(&joined[i]);
    }
    return there;
  };
  while (true) {
    for (size_t i = 0; i < engines_.size(); ++i) {
      if (engines_[i]->JoinWait(&joined[i])) return leave(true);
    }
    const Duration left = deadline.is_never() ? Duration::Seconds(3600) : deadline - MonotonicNow();
    if (front().TakeInterrupt() || left <= Duration()) return leave(false);
    const timespec span = {.tv_sec = left.nanos() / 1'000'000'000, .tv_nsec = left.nanos() % 1'000'000'000};
    ppoll(waiting.data(), engines_.size(), &span, nullptr);
  }
}

bool ContextImpl::Arm() {
  return std::all_of(engines_.begin(), engines_.end(), [](const auto& engine) { return engine->Arm(); });
}

// ---- looking in

std::vector<Counter> ContextImpl::Counters() {
  std::vector<Counter> sum;
  size_t ports = 0;
  for (const auto& engine : engines_) {
    size_t at = 0;
    for (Counter& counter : engine->Counters(ports)) {
      if (at < sum.size() && sum[at].name == counter.name) {
        sum[at++].value += counter.value;
      } else {
        sum.push_back(std::move(counter));
        at = sum.size();
      }
    }
    ports += engine->ports();
  }
  return sum;
}

std::vector<std::string> ContextImpl::LaneNames() {
  std::vector<std::string> names;
  for (const auto& engine : engines_) {
    for (std::string& name : engine->LaneNames()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace paceline::api
