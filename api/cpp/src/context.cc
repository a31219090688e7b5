#include "paceline/context.h"

#include <utility>

#include "api/cpp/src/context_impl.h"

namespace paceline::api {
namespace {

// An engine of `context`, which it keeps alive.
std::shared_ptr<ContextEngine> Share(const std::shared_ptr<ContextImpl>& context, ContextEngine* engine) {
  return {context, engine};
}

bool IsOf(const std::shared_ptr<ContextEngine>& engine, const std::shared_ptr<ContextImpl>& context) {
  return !engine.owner_before(context) && !context.owner_before(engine);
}

const char kForeignQueue[] = "the receive queue is not one of this context's";

}  // namespace

const char* Version() { return PACELINE_VERSION; }

// ---- Context

Context::Context(std::shared_ptr<ContextImpl> impl) : impl_(std::move(impl)) {}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

Result<Context> Context::Create(const ContextOptions& options) {
  Result<std::shared_ptr<ContextImpl>> impl = ContextImpl::Create(options);
  if (!impl.ok()) return impl.status();
  return Context(*std::move(impl));
}

Result<RegionId> Context::RegisterMemory(void* base, uint64_t bytes, uint8_t access) {
  return impl_->RegisterMemory(base, bytes, access, kNoConnection);
}

Result<RegionId> Context::RegisterMemoryFor(const Connection& connection, void* base, uint64_t bytes, uint8_t access) {
  if (!IsOf(connection.engine_, impl_)) {
    return Status(StatusCode::kInvalidArgument, "the connection is not one of this context's");
  }
  return impl_->RegisterMemory(base, bytes, access, connection.id());
}

Result<RegionId> Context::RegisterDeviceMemory(void* base, uint64_t bytes, uint8_t access, const DeviceMemory& memory) {
  return impl_->RegisterDeviceMemory(base, bytes, access, memory);
}

void Context::DeregisterMemory(RegionId region) { impl_->DeregisterMemory(region); }

RemoteMemory Context::ExportMemory(RegionId region) const { return impl_->ExportMemory(region); }

RemoteMemory Context::ExportMemoryFor(const Connection& connection, RegionId region) const {
  return IsOf(connection.engine_, impl_) ? connection.engine_->ExportMemory(region) : RemoteMemory();
}

Result<RegionId> Context::RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes, uint8_t access) {
  return impl_->RegisterMemoryAs(key, origin, base, bytes, access);
}

ReceiveQueue Context::NewReceiveQueue() {
  const std::shared_ptr<ContextEngine> engine = Share(impl_, &impl_->NextQueueEngine());
  return ReceiveQueue(engine, engine->Locked(false, [&] { return engine->endpoint().NewReceiveQueue(); }));
}

Result<Listener> Context::Listen(const ListenOptions& options) {
  const ReceiveQueue* receives = options.receives;
  if (receives != nullptr && !IsOf(receives->engine_, impl_)) {
    return Status(StatusCode::kInvalidArgument, kForeignQueue);
  }
  const ConnectionSetup setup = {.receives = receives == nullptr ? kNoReceiveQueue : receives->id_};
  const uint32_t listener =
      impl_->Listen(setup, options.service, receives == nullptr ? nullptr : receives->engine_.get());
  if (listener != 0) return Listener(impl_, listener);
  return Status(StatusCode::kAlreadyExists,
                "service " + std::to_string(options.service) + " has a listener in this context");
}

Result<Connection> Context::Connect(const Handle& handle, const ConnectOptions& options) {
  if (options.private_data.size() > PrivateData::kMaxBytes) {
    return Status(StatusCode::kInvalidArgument,
                  "private_data has " + std::to_string(options.private_data.size()) + " bytes; it may have up to 128");
  }
  const ReceiveQueue* receives = options.receives;
  if (receives != nullptr && !IsOf(receives->engine_, impl_)) {
    return Status(StatusCode::kInvalidArgument, kForeignQueue);
  }
  const ConnectionSetup setup = {.receives = receives == nullptr ? kNoReceiveQueue : receives->id_,
                                 .source = options.source};
  ContextEngine& engine = receives == nullptr ? impl_->LightestEngine() : *receives->engine_;
  Result<ConnectionId> connection = engine.Connect(handle, setup, PrivateData::Of(options.private_data));
  if (!connection.ok()) return connection.status();
  return Connection(Share(impl_, &engine), *connection);
}

CompletionQueue& Context::completions() { return impl_->queue(); }
bool Context::crowded() const { return impl_->front().crowded(); }
bool Context::Progress() { return !impl_->threaded() && impl_->front().Pass(); }
void Context::Transmit() {
  if (!impl_->threaded()) impl_->front().Transmit();
}
bool Context::Wait(std::chrono::nanoseconds timeout) { return impl_->Wait(timeout); }
void Context::Interrupt() { impl_->front().Interrupt(); }
std::vector<Counter> Context::counters() const { return impl_->Counters(); }
std::string Context::counters_page() const { return impl_->front().PageName(); }
std::vector<std::string> Context::lanes() const { return impl_->LaneNames(); }

size_t Context::MemoryOf(const Connection& connection) const {
  if (!IsOf(connection.engine_, impl_)) return 0;
  return connection.engine_->Locked(false, [&] { return connection.engine_->endpoint().MemoryOf(connection.id()); });
}

// ---- ReceiveQueue

ReceiveQueue::ReceiveQueue(std::shared_ptr<ContextEngine> engine, uint32_t id) : engine_(std::move(engine)), id_(id) {}
ReceiveQueue::ReceiveQueue(ReceiveQueue&&) noexcept = default;

ReceiveQueue& ReceiveQueue::operator=(ReceiveQueue&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(id_, other.id_);
  return *this;
}

ReceiveQueue::~ReceiveQueue() {
  if (engine_ == nullptr) return;
  engine_->Locked(true, [&] { engine_->endpoint().DeleteReceiveQueue(id_, MonotonicNow()); });
}

PostResult ReceiveQueue::Receive(Buffer buffer, const Match& match, uint64_t user_data, OperationId* id) {
  const ReceiveRequest request = {.buffer = ToCore(buffer),
                                  .tag = match.tag,
                                  .ignore = match.ignore,
                                  .user_data = user_data,
                                  .source = match.source};
  return engine_->Post(&Endpoint::PostSharedReceive, id_, request, id);
}

PostResult ReceiveQueue::ReceiveMany(Buffer buffer, const Match& match, uint64_t min_free, uint64_t user_data,
                                     OperationId* id) {
  if (min_free == 0) return PostResult::kInvalidArgument;
  const ReceiveRequest request = {.buffer = ToCore(buffer),
                                  .tag = match.tag,
                                  .ignore = match.ignore,
                                  .user_data = user_data,
                                  .source = match.source,
                                  .min_free = min_free};
  return engine_->Post(&Endpoint::PostSharedReceive, id_, request, id);
}

PostResult ReceiveQueue::ReceiveClaimed(Buffer buffer, uint64_t claim, uint64_t user_data, OperationId* id) {
  if (claim == 0) return PostResult::kInvalidArgument;
  const ReceiveRequest request = {.buffer = ToCore(buffer), .user_data = user_data, .claimed = claim};
  return engine_->Post(&Endpoint::PostSharedReceive, id_, request, id);
}

std::optional<WaitingSend> ReceiveQueue::Peek(const Match& match, bool claim) {
  const ReceiveRequest request = {.tag = match.tag, .ignore = match.ignore, .source = match.source};
  const auto found = engine_->Locked(false, [&] { return engine_->endpoint().Peek(id_, request, claim); });
  if (!found) return std::nullopt;
  return WaitingSend{.connection = found->connection,
                     .source = found->source,
                     .bytes = found->bytes,
                     .tag = found->tag,
                     .immediate = found->immediate,
                     .has_immediate = found->has_immediate,
                     .claim = found->claimed};
}

bool ReceiveQueue::Cancel(OperationId id) {
  return engine_->Locked(true, [&] { return engine_->endpoint().CancelReceive(id_, id, MonotonicNow()); });
}

void ReceiveQueue::FailReceivesFrom(Source source) {
  engine_->Locked(true, [&] {
    engine_->endpoint().FailReceivesFrom(id_, source, paceline::OperationStatus::kPeerLost, MonotonicNow());
  });
}

// ---- CompletionQueue

size_t CompletionQueue::Poll(Completion* out, size_t room) { return impl_->PollCompletions(out, room); }
bool CompletionQueue::Arm() { return impl_->Arm(); }
int CompletionQueue::descriptor() const { return impl_->descriptor(); }

// ---- Listener

Listener::Listener(std::shared_ptr<ContextImpl> impl, uint32_t id) : impl_(std::move(impl)), id_(id) {}
Listener::Listener(Listener&&) noexcept = default;

Listener& Listener::operator=(Listener&& other) noexcept {
  std::swap(impl_, other.impl_);
  std::swap(id_, other.id_);
  return *this;
}

Listener::~Listener() {
  if (impl_ != nullptr) impl_->CloseListener(id_);
}

Handle Listener::handle() const { return impl_->HandleOf(id_); }

std::optional<Connection> Listener::Accept() {
  const ContextImpl::Accepted accepted = impl_->Accept(id_);
  if (accepted.connection == kNoConnection) return std::nullopt;
  return Connection(Share(impl_, accepted.engine), accepted.connection);
}

Result<Connection> Listener::WaitAccept(std::chrono::nanoseconds timeout) {
  const ContextImpl::Accepted accepted = impl_->WaitAccept(id_, timeout);
  if (accepted.connection == kNoConnection) return Status(StatusCode::kTimedOut, "nobody has connected in time");
  Connection connection(Share(impl_, accepted.engine), accepted.connection);
  if (Status status = connection.WaitEstablished(timeout); !status.ok()) return status;
  return connection;
}

// ---- Connection

Connection::Connection(std::shared_ptr<ContextEngine> engine, uint32_t id) : engine_(std::move(engine)), id_(id) {}
Connection::Connection(Connection&& other) noexcept
    : engine_(std::move(other.engine_)), id_(std::exchange(other.id_, 0)) {}

Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(id_, other.id_);
  return *this;
}

Connection::~Connection() {
  if (engine_ != nullptr) engine_->Forget(id_);
}

ConnectionState Connection::state() const { return engine_->StateOf(id_); }
CloseCode Connection::close_code() const { return engine_->CloseCodeOf(id_); }
std::string Connection::close_reason() const { return engine_->CloseReasonOf(id_); }
std::vector<uint8_t> Connection::private_data() const { return engine_->PrivateDataOf(id_); }

void Connection::SetSource(Source source) {
  engine_->Locked(true, [&] { engine_->endpoint().SetSource(id_, source, MonotonicNow()); });
}

Status Connection::WaitEstablished(std::chrono::nanoseconds timeout) {
  engine_->WaitUntil([this] { return engine_->StateUnlocked(id_) != ConnectionState::kConnecting; }, timeout);
  switch (state()) {
    case ConnectionState::kEstablished:
      return Status();
    case ConnectionState::kConnecting:
      return Status(StatusCode::kTimedOut, "the connection was not established in time");
    case ConnectionState::kClosed:
      break;
  }
  return Status(StatusCode::kUnavailable, "not connected: " + close_reason());
}

PostResult Connection::Send(Buffer buffer, uint64_t tag, uint64_t user_data, OperationId* id) {
  const SendRequest request = {.buffer = ToCore(buffer), .tag = tag, .user_data = user_data};
  return engine_->Post(&Endpoint::PostSend, id_, request, id);
}

PostResult Connection::SendImmediate(Buffer buffer, uint64_t tag, uint64_t immediate, uint64_t user_data,
                                     OperationId* id) {
  const SendRequest request = {
      .buffer = ToCore(buffer), .tag = tag, .immediate = immediate, .has_immediate = true, .user_data = user_data};
  return engine_->Post(&Endpoint::PostSend, id_, request, id);
}

PostResult Connection::SendCopied(Buffer buffer, uint64_t tag, std::optional<uint64_t> immediate, uint64_t user_data,
                                  OperationId* id) {
  const SendRequest request = {.buffer = ToCore(buffer),
                               .tag = tag,
                               .immediate = immediate.value_or(0),
                               .has_immediate = immediate.has_value(),
                               .awaited = false,
                               .user_data = user_data};
  return engine_->Post(&Endpoint::PostSend, id_, request, id);
}

PostResult Connection::SendToReceive(Buffer buffer, uint64_t tag, std::optional<uint64_t> immediate, uint64_t user_data,
                                     OperationId* id) {
  const SendRequest request = {.buffer = ToCore(buffer),
                               .tag = tag,
                               .immediate = immediate.value_or(0),
                               .has_immediate = immediate.has_value(),
                               .to_receive = true,
                               .user_data = user_data};
  return engine_->Post(&Endpoint::PostSend, id_, request, id);
}

PostResult Connection::Receive(Buffer buffer, uint64_t tag, uint64_t ignore, uint64_t user_data, OperationId* id) {
  const ReceiveRequest request = {.buffer = ToCore(buffer), .tag = tag, .ignore = ignore, .user_data = user_data};
  return engine_->Post(&Endpoint::PostReceive, id_, request, id);
}

PostResult Connection::Write(Buffer buffer, const RemoteMemory& remote, uint64_t remote_offset, uint64_t user_data,
                             OperationId* id) {
  const WriteRequest request = {
      .buffer = ToCore(buffer), .remote = ToCore(remote), .remote_offset = remote_offset, .user_data = user_data};
  return engine_->Post(&Endpoint::PostWrite, id_, request, id);
}

PostResult Connection::WriteImmediate(Buffer buffer, const RemoteMemory& remote, uint64_t remote_offset,
                                      uint64_t immediate, uint64_t user_data, OperationId* id) {
  const WriteRequest request = {.buffer = ToCore(buffer),
                                .remote = ToCore(remote),
                                .remote_offset = remote_offset,
                                .immediate = immediate,
                                .has_immediate = true,
                                .user_data = user_data};
  return engine_->Post(&Endpoint::PostWrite, id_, request, id);
}

PostResult Connection::Read(Buffer buffer, const RemoteMemory& remote, uint64_t remote_offset, uint64_t user_data,
                            OperationId* id) {
  const ReadRequest request = {
      .buffer = ToCore(buffer), .remote = ToCore(remote), .remote_offset = remote_offset, .user_data = user_data};
  return engine_->Post(&Endpoint::PostRead, id_, request, id);
}

PostResult Connection::FetchAdd(const RemoteMemory& remote, uint64_t remote_offset, uint64_t add, uint64_t user_data,
                                OperationId* id) {
  const AtomicRequest request = {.operation = paceline::Operation::kFetchAdd,
                                 .remote = ToCore(remote),
                                 .remote_offset = remote_offset,
                                 .operand = add,
                                 .user_data = user_data};
  return engine_->Post(&Endpoint::PostAtomic, id_, request, id);
}

PostResult Connection::CompareSwap(const RemoteMemory& remote, uint64_t remote_offset, uint64_t compare, uint64_t swap,
                                   uint64_t user_data, OperationId* id) {
  const AtomicRequest request = {.operation = paceline::Operation::kCompareSwap,
                                 .remote = ToCore(remote),
                                 .remote_offset = remote_offset,
                                 .operand = swap,
                                 .compare = compare,
                                 .user_data = user_data};
  return engine_->Post(&Endpoint::PostAtomic, id_, request, id);
}

PostResult Connection::PostAtomic(const Atomic& atomic, const RemoteMemory& remote, uint64_t remote_offset,
                                  uint64_t user_data, OperationId* id) {
  const VectorAtomicRequest request = {.op = static_cast<paceline::AtomicOp>(atomic.op),
                                       .type = static_cast<paceline::AtomicType>(atomic.type),
                                       .elements = atomic.elements,
                                       .operands = atomic.operands,
                                       .compares = atomic.compares,
                                       .results = atomic.results,
                                       .remote = ToCore(remote),
                                       .remote_offset = remote_offset,
                                       .user_data = user_data};
  return engine_->Post(&Endpoint::PostVectorAtomic, id_, request, id);
}

PostResult Connection::Flush(uint64_t user_data, OperationId* id) {
  return engine_->Post(&Endpoint::PostFlush, id_, FlushRequest{.user_data = user_data}, id);
}

bool Connection::Cancel(OperationId id) {
  return engine_->Locked(true, [&] { return engine_->endpoint().Cancel(id_, id, MonotonicNow()); });
}

void Connection::Close() { engine_->Close(id_, false); }
void Connection::Abort() { engine_->Close(id_, true); }

}  // namespace paceline::api
