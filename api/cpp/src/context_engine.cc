#include "api/cpp/src/context_engine.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "absl/status/status.h"
#include "api/cpp/src/convert.h"
#include "api/cpp/src/counter_list.h"
#include "api/cpp/src/engine_options.h"
#include "api/cpp/src/handle.h"
#include "transport/engine/clock.h"
#include "transport/engine/lane_factory.h"
#include "transport/lane/impair/impair_lane.h"

namespace paceline::api {
namespace {

constexpr uint32_t kDefaultLingerMillis = 250;  // several tries of a close, also where the network loses packets

// Once per process: an open door is worth a line, not one for each rank's every context.
void WarnIfOpen(const Engine& engine) {
  static std::atomic<bool> said{false};
  for (const auto& lane : engine.lanes()) {
    if (lane->capabilities().this_machine_only || said.exchange(true)) continue;
    std::fprintf(stderr,
                 "paceline: %s has no cluster key: whoever reaches it can connect, read along and change what is sent. "
                 "Name a key file in PACELINE_KEY_FILE, or say PACELINE_KEY_FILE=none if that is wanted.\n",
                 std::string(lane->name()).c_str());
  }
}

}  // namespace

ContextEngine::~ContextEngine() {
  if (group_ != nullptr) group_->spreader.Leave(this);
  thread_.reset();
  threaded_ = false;
  if (progress_ != nullptr) CloseAll();
  if (notify_ >= 0) close(notify_);
}

void ContextEngine::EndConnections(void (Endpoint::*end)(ConnectionId, Time)) {
  DrainEvents();
  for (const auto& [connection, record] : connections_) {
    if (record.state != ConnectionState::kClosed) (endpoint().*end)(connection, MonotonicNow());
  }
}

void ContextEngine::StartClosing() {
  Locked(true, [&] { EndConnections(&Endpoint::Close); });
  end_ = MonotonicNow() + linger_;
}

void ContextEngine::CloseAll() {
  const Time deadline = end_.value_or(MonotonicNow() + linger_);
  const auto all_closed = [this] {
    return std::all_of(connections_.begin(), connections_.end(),
                       [](const auto& item) { return item.second.state == ConnectionState::kClosed; });
  };
  EndConnections(&Endpoint::Close);
  progress_->Kick();
  while (true) {
    const bool busy = Pass();
    if (progress_->now() >= deadline) break;
    if (busy) continue;
    if (all_closed()) break;
    IdleOnce(deadline);
  }
  EndConnections(&Endpoint::Abort);
  progress_->Kick();
  for (int pass = 0; pass < 8 && Pass(); ++pass) {  // the last words
  }
}

Result<std::unique_ptr<ContextEngine>> ContextEngine::Create(const ContextOptions& options, size_t number,
                                                             EngineGroup* group,
                                                             std::vector<std::unique_ptr<Lane>> lanes) {
  std::unique_ptr<ContextEngine> engine(new ContextEngine());
  if (Status status = engine->Open(options, number, group, std::move(lanes)); !status.ok()) return status;
  return engine;
}

Status ContextEngine::Open(const ContextOptions& options, size_t number, EngineGroup* group,
                           std::vector<std::unique_ptr<Lane>> lanes) {
  Result<EngineOptions> engine_options = ToEngineOptions(options, number);
  if (!engine_options.ok()) return engine_options.status();
  Result<LaneFactoryOptions> lane_options = ToLaneOptions(options, number);
  if (!lane_options.ok()) return lane_options.status();
  const bool impaired = lanes.empty() && !lane_options->impairment.none();
  if (lanes.empty()) {
    auto named = CreateLanes(*lane_options);
    if (!named.ok()) return FromAbsl(named.status());
    lanes = *std::move(named);
  }
  engine_options->device_copier = &copier_;
  if (group != nullptr) {
    engine_options->request_router = this;
    for (CreditPool& port : group->credit) engine_options->endpoint.credit_pools.push_back(&port);
  }
  auto engine = Engine::Create(*engine_options, std::move(lanes));
  if (!engine.ok()) {
    const Status status = FromAbsl(engine.status());  // an unknown algorithm is an option with a wrong value
    return status.code() == StatusCode::kNotFound ? Status(StatusCode::kInvalidArgument, status.message()) : status;
  }
  engine_ = *std::move(engine);
  if (options.key_file.empty()) WarnIfOpen(*engine_);
  if (impaired) {
    for (const auto& lane : engine_->lanes()) impaired_.push_back(static_cast<const ImpairLane*>(lane.get()));
  }
  const WaitPolicyOptions wait = ToWaitOptions(options);
  spin_ = wait.spin;
  linger_ = Duration::Millis(options.linger_ms != 0 ? options.linger_ms : kDefaultLingerMillis);
  auto progress = Progress::Create(engine_.get(), wait);
  if (!progress.ok()) return FromAbsl(progress.status());
  progress_ = *std::move(progress);
  published_ = MonotonicNow();
  if (options.shared_counters) {
    Result<std::unique_ptr<CountersPage>> page = CountersPage::Create(Counters());
    if (page.ok()) page_ = *std::move(page);  // without shared memory a context is as good, only not seen from outside
  }
  group_ = group;
  if (group_ != nullptr) group_->spreader.Join(this);
  if (options.progress == ProgressMode::kThread) {
    notify_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (notify_ < 0) return FromAbsl(absl::ErrnoToStatus(errno, "eventfd"));
    threaded_ = true;
    try {
      thread_ = std::make_unique<ProgressThread>(progress_.get(), [this] { return AfterPass(); });
    } catch (const std::system_error& error) {
      threaded_ = false;
      return Status(StatusCode::kResourceExhausted, std::string("no thread for progress: ") + error.what());
    }
  }
  return Status();
}

// ---- connections

Result<ConnectionId> ContextEngine::Connect(const Handle& handle, const ConnectionSetup& setup,
                                            const PrivateData& private_data) {
  Result<ListenAddress> address = DecodeHandle(handle);
  if (!address.ok()) return address.status();
  return Locked(true, [&]() -> Result<ConnectionId> {
    const auto connect = [&] { return endpoint().Connect(*address, MonotonicNow(), setup, private_data); };
    ConnectionId connection = connect();
    // Numbers come again after thousands of uses; somebody may still hold an object with this one.
    for (std::vector<ConnectionId> held; connection != kNoConnection && connections_.contains(connection);) {
      held.push_back(std::exchange(connection, connect()));
      if (connection != kNoConnection && connections_.contains(connection)) continue;
      for (const ConnectionId one : held) endpoint().Abort(one, MonotonicNow());
    }
    if (connection == kNoConnection) {
      return Status(StatusCode::kResourceExhausted, "the context is at its bound of connections (max_connections)");
    }
    connections_[connection];
    load_.store(connections_.size(), std::memory_order_relaxed);
    return connection;
  });
}

uint32_t ContextEngine::Listen(const ConnectionSetup& setup, uint64_t nonce) {
  return Locked(true, [&] {
    const uint32_t listener = endpoint().Listen(setup, nonce);
    if (listener != 0) requests_[listener];
    return listener;
  });
}

void ContextEngine::CloseListener(uint32_t listener) {
  Locked(true, [&] {
    const auto requests = requests_.find(listener);
    if (requests == requests_.end()) return;
    for (const ConnectionId connection : requests->second) {
      endpoint().Refuse(connection, MonotonicNow());
      connections_.erase(connection);
    }
    requests_.erase(requests);
    endpoint().CloseListener(listener);
  });
}

uint64_t ContextEngine::NonceOf(uint32_t listener) {
  return Locked(false, [&] { return endpoint().listen_address(listener).nonce; });
}

ListenAddress ContextEngine::AddressFor(uint64_t nonce) const {
  ListenAddress address = {.nonce = nonce};
  for (const auto& lane : engine_->lanes()) {
    if (address.ports < address.addresses.size()) address.addresses[address.ports++] = lane->address();
  }
  return address;
}

ConnectionId ContextEngine::Accept(uint32_t listener) {
  // Who only looks has posted nothing: a context that waits for its descriptor may stay asleep.
  if (!Locked(false, [&] { return HasRequest(listener); })) return kNoConnection;
  return Locked(true, [&]() -> ConnectionId {
    if (!HasRequest(listener)) return kNoConnection;  // another thread was faster
    std::deque<ConnectionId>& requests = requests_[listener];
    const ConnectionId connection = requests.front();
    requests.pop_front();
    connections_[connection].listener = 0;
    endpoint().Accept(connection, MonotonicNow());
    return connection;
  });
}

bool ContextEngine::HasRequest(uint32_t listener) const {
  const auto requests = requests_.find(listener);
  return requests != requests_.end() && !requests->second.empty();
}

ConnectionState ContextEngine::StateUnlocked(ConnectionId connection) const {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? ConnectionState::kClosed : found->second.state;
}

ConnectionState ContextEngine::StateOf(ConnectionId connection) {
  return Locked(false, [&] { return StateUnlocked(connection); });
}

CloseCode ContextEngine::CloseCodeOf(ConnectionId connection) {
  return Locked(false, [&] {
    const auto found = connections_.find(connection);
    return found == connections_.end() ? CloseCode::kNone : found->second.code;
  });
}

std::string ContextEngine::CloseReasonOf(ConnectionId connection) {
  return Locked(false, [&] {
    const auto found = connections_.find(connection);
    return found == connections_.end() ? std::string() : found->second.reason;
  });
}

std::vector<uint8_t> ContextEngine::PrivateDataOf(ConnectionId connection) {
  return Locked(false, [&] {
    const auto found = connections_.find(connection);
    return found == connections_.end() ? std::vector<uint8_t>() : found->second.private_data;
  });
}

void ContextEngine::Close(ConnectionId connection, bool at_once) {
  Locked(true, [&] {
    if (at_once) {
      endpoint().Abort(connection, MonotonicNow());
    } else {
      endpoint().Close(connection, MonotonicNow());
    }
  });
}

void ContextEngine::Forget(ConnectionId connection) {
  Locked(true, [&] {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    if (found->second.state == ConnectionState::kClosed) {
      connections_.erase(found);
      return;
    }
    found->second.forgotten = true;
    endpoint().Close(connection, MonotonicNow());
  });
}

void ContextEngine::DrainEvents() {
  while (const size_t count = endpoint().PollConnectionEvents(events_)) {
    event_seen_ = true;
    ++events_seen_;
    for (size_t i = 0; i < count; ++i) {
      ConnectionEvent& event = events_[i];
      if (event.kind == ConnectionEventKind::kRequest) {
        const auto requests = requests_.find(event.listener);
        if (requests == requests_.end() || connections_.contains(event.connection)) {  // see Connect
          endpoint().Refuse(event.connection, MonotonicNow());
          continue;
        }
        ConnectionRecord& record = connections_[event.connection];
        record.listener = event.listener;
        const auto given = event.private_data.view();
        record.private_data.assign(given.begin(), given.end());
        requests->second.push_back(event.connection);
        continue;
      }
      const auto found = connections_.find(event.connection);
      if (found == connections_.end()) continue;
      ConnectionRecord& record = found->second;
      if (record.state == ConnectionState::kClosed) continue;  // of a later connection, given back for its number
      if (event.kind == ConnectionEventKind::kEstablished) {
        record.state = ConnectionState::kEstablished;
      } else if (record.forgotten) {
        connections_.erase(found);
      } else if (record.listener != 0) {  // gone before anybody accepted it
        if (const auto requests = requests_.find(record.listener); requests != requests_.end()) {
          std::erase(requests->second, event.connection);
        }
        connections_.erase(found);
      } else {
        record.state = ConnectionState::kClosed;
        record.code = FromCore(event.reason);
        record.reason = CloseCodeName(record.code);
        if (!event.detail.empty() && event.detail != record.reason) record.reason += ": " + event.detail;
      }
    }
    if (count < events_.size()) return;
  }
}

PassedOn ContextEngine::PassOn(const ConnectionRequest& request, Time now) {
  return group_->spreader.PassOn(this, request, now);
}

bool ContextEngine::Bring(const ConnectionRequest& request) {
  {
    std::lock_guard lock(brought_mutex_);
    if (brought_.size() >= limits::kMaxPendingAccepts) return false;
    brought_.push_back({.request = request, .body = {request.body.begin(), request.body.end()}});
    any_brought_.store(true, std::memory_order_release);
  }
  progress_->Wake();
  return true;
}

bool ContextEngine::TakeBrought() {
  if (!any_brought_.load(std::memory_order_acquire)) return false;
  std::vector<Brought> brought;
  {
    std::lock_guard lock(brought_mutex_);
    brought.swap(brought_);
    any_brought_.store(false, std::memory_order_relaxed);
  }
  for (Brought& one : brought) {
    one.request.body = one.body;
    endpoint().TakeRequest(one.request, progress_->now());
  }
  return true;
}

// ---- memory

namespace {

Status CheckRegion(const void* base, uint64_t bytes, uint8_t access) {
  constexpr uint8_t kAll = kRemoteRead | kRemoteWrite | kRemoteAtomic | kRemoteEvents;
  if (base == nullptr || bytes == 0)
    return Status(StatusCode::kInvalidArgument, "a region needs memory of 1 byte or more");
  if ((access & ~kAll) != 0) return Status(StatusCode::kInvalidArgument, "access has bits that mean nothing");
  return Status();
}

}  // namespace

Result<RegionId> ContextEngine::RegisterMemory(void* base, uint64_t bytes, uint8_t access, ConnectionId connection,
                                               const RegionName& same_as) {
  if (Status status = CheckRegion(base, bytes, access); !status.ok()) return status;
  static_assert(int{kRemoteRead} == int{paceline::kRemoteRead} && int{kRemoteWrite} == int{paceline::kRemoteWrite} &&
                int{kRemoteAtomic} == int{paceline::kRemoteAtomic} &&
                int{kRemoteEvents} == int{paceline::kRemoteEvents});
  const RegionId region = Locked(
      false, [&] { return endpoint().RegisterMemory(base, bytes, access, MemoryKind::kHost, connection, same_as); });
  if (region == kUnregistered) return Status(StatusCode::kResourceExhausted, "no more regions can be registered");
  return region;
}

Result<RegionId> ContextEngine::RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes,
                                                 uint8_t access, const RegionName& same_as) {
  if (Status status = CheckRegion(base, bytes, access); !status.ok()) return status;
  const RegionId region =
      Locked(false, [&] { return endpoint().RegisterMemoryAs(key, origin, base, bytes, access, same_as); });
  if (region == kUnregistered) {
    return Status(StatusCode::kAlreadyExists,
                  "key " + std::to_string(key) + " names another region, or no more regions can be registered");
  }
  return region;
}

Result<RegionId> ContextEngine::RegisterDeviceMemory(void* base, uint64_t bytes, uint8_t access,
                                                     const DeviceMemory& memory, const RegionName& same_as) {
  if (Status status = CheckRegion(base, bytes, access); !status.ok()) return status;
  if ((access & kRemoteAtomic) != 0) {
    return Status(StatusCode::kInvalidArgument,
                  "no processor does atomics in memory of a GPU: leave kRemoteAtomic out");
  }
  if (memory.ordinal < 0) return Status(StatusCode::kInvalidArgument, "ordinals of GPUs count from 0");
  FileDescriptor dma_buf(memory.dma_buf < 0 ? -1 : fcntl(memory.dma_buf, F_DUPFD_CLOEXEC, 0));
  if (memory.dma_buf >= 0 && !dma_buf.valid()) {
    return Status(errno == EBADF ? StatusCode::kInvalidArgument : StatusCode::kResourceExhausted,
                  std::string("dma_buf: ") + std::strerror(errno));
  }
  return Locked(false, [&]() -> Result<RegionId> {
    const RegionId region = endpoint().RegisterDeviceMemory({.base = base,
                                                             .bytes = bytes,
                                                             .device = memory.ordinal,
                                                             .dma_buf = dma_buf.get(),
                                                             .dma_buf_offset = memory.dma_buf_offset},
                                                            access, same_as);
    if (region == kUnregistered) return Status(StatusCode::kResourceExhausted, "no more regions can be registered");
    Status status = copier_.Prepare(memory.ordinal);
    if (endpoint().ReadingPorts(region) == 0) status = Status(StatusCode::kUnimplemented, MemoryProblems());
    if (!status.ok()) {
      endpoint().DeregisterMemory(region, MonotonicNow());
      return status;
    }
    dma_bufs_[region] = std::move(dma_buf);
    return region;
  });
}

std::string ContextEngine::MemoryProblems() const {
  std::string problems = "no card takes this memory of a GPU";
  for (const auto& lane : engine_->lanes()) {
    problems += "; " + lane->memory_problem();
  }
  return problems;
}

void ContextEngine::DeregisterMemory(RegionId region) {
  Locked(true, [&] {
    endpoint().DeregisterMemory(region, MonotonicNow());
    dma_bufs_.erase(region);
  });
}

RemoteMemory ContextEngine::ExportMemory(RegionId region) {
  return Locked(false, [&] { return FromCore(endpoint().ExportMemory(region)); });
}

// ---- looking in

std::vector<Counter> ContextEngine::Counters(size_t first_port) {
  return Locked(false, [&] { return ListCounters(*engine_, impaired_, first_port); });
}

std::vector<std::string> ContextEngine::LaneNames() {
  std::vector<std::string> names;
  for (const auto& lane : engine_->lanes()) names.emplace_back(lane->name());
  return names;
}

}  // namespace paceline::api
