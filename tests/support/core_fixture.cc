#include "tests/support/core_fixture.h"

#include <algorithm>

namespace paceline::support {

std::string CoreSetupName(const testing::TestParamInfo<CoreSetup>& info) {
  std::string name = info.param.lanes == LaneKind::kHca ? "Hca" : "Packets";
  name += info.param.control == TestControl::kCredit ? "Credit" : "Window";
  return name + std::to_string(info.param.ports) + (info.param.encrypted ? "Encrypted" : "") +
         (info.param.burst_segments > 1 ? "Bursts" : "");
}

std::vector<CoreSetup> AllCoreSetups() {
  std::vector<CoreSetup> setups;
  for (const LaneKind lanes : {LaneKind::kPackets, LaneKind::kHca}) {
    for (const TestControl control : {TestControl::kWindow, TestControl::kCredit}) {
      for (const uint32_t ports : {1u, 2u}) setups.push_back({lanes, control, ports});
    }
  }
  setups.push_back({LaneKind::kPackets, TestControl::kCredit, 2, true});
  setups.push_back({LaneKind::kPackets, TestControl::kWindow, 1, false, 16});
  setups.push_back({LaneKind::kPackets, TestControl::kCredit, 2, false, 16});
  return setups;
}

WorldOptions CoreFixture::OptionsFor(const CoreSetup& setup) {
  WorldOptions options;
  options.lanes = setup.lanes;
  options.control = setup.control;
  options.ports = setup.ports;
  options.packet_capabilities.burst_segments = setup.burst_segments;
  options.hca_capabilities.burst_segments = setup.burst_segments;
  if (setup.burst_segments > 1) {
    options.network.poll_interval = Duration::Micros(4);  // so that several arrive together
    options.packet_capabilities.least_guessed_bytes = 1;
  }
  if (setup.encrypted) {
    options.endpoint.cluster_key.emplace().fill(7);
    options.endpoint.encrypt = true;
    options.endpoint.packets_per_key = 1024;
    options.customize = [](uint32_t host, EndpointOptions& endpoint) {
      endpoint.key_seed.fill(static_cast<uint8_t>(host + 1));
    };
  }
  return options;
}

void CoreFixture::Start(const WorldOptions& options, bool connect) {
  world_ = std::make_unique<ScriptedWorld>(options);
  hca_ = options.lanes == LaneKind::kHca;
  ports_ = options.ports;
  for (uint32_t i = 0; i < std::min(options.hosts, 2u); ++i) {
    host(i).on_completion = [this, i](const Completion& completion) { Keep(i, completion); };
  }
  if (connect) Connect();
}

void CoreFixture::Connect() {
  std::tie(a_, b_) = world_->Connect(0, 1);
  ASSERT_NE(a_, kNoConnection) << "the hosts did not connect";
}

void CoreFixture::Keep(uint32_t at, const Completion& completion) {
  host(at).completions.push_back(completion);
  if (completion.user_data == 0) return;
  const auto posted = posted_[at].find(completion.user_data);
  if (posted == posted_[at].end()) {
    ADD_FAILURE() << "host " << at << ": completion of an operation that was not posted: " << completion.user_data;
    return;
  }
  if (++posted->second.completions > 1) {
    ADD_FAILURE() << "host " << at << ": operation " << completion.user_data << " completed twice";
  }
  if (!hca_ || posted->second.lent == nullptr) return;
  for (uint32_t port = 0; port < ports_; ++port) {
    world_->hca(at, port).Protect(posted->second.lent, posted->second.lent_bytes);
  }
}

void CoreFixture::TearDown() {
  if (world_ == nullptr) return;
  for (const std::string& violation : world_->Violations()) ADD_FAILURE() << violation;
  for (const auto& buffer : buffers_) EXPECT_TRUE(buffer->GuardsIntact()) << "written outside of a buffer";
}

GuardedBuffer& CoreFixture::NewBuffer(size_t bytes) {
  buffers_.push_back(std::make_unique<GuardedBuffer>(bytes));
  return *buffers_.back();
}

GuardedBuffer& CoreFixture::NewFilled(size_t bytes, uint64_t pattern) {
  GuardedBuffer& buffer = NewBuffer(bytes);
  buffer.Fill(pattern);
  return buffer;
}

uint64_t CoreFixture::Note(uint32_t at, PostResult got, PostResult* wanted, Posted posted) {
  if (wanted != nullptr) {
    *wanted = got;
  } else {
    EXPECT_EQ(got, PostResult::kOk) << PostResultName(got);
  }
  if (got != PostResult::kOk) return 0;
  if (posted.lent != nullptr && hca_) {
    for (uint32_t port = 0; port < ports_; ++port) world_->hca(at, port).Unprotect(posted.lent, posted.lent_bytes);
  }
  posted_[at][next_operation_] = posted;
  host(at).Touch();
  return next_operation_++;
}

uint64_t CoreFixture::Send(uint32_t from, GuardedBuffer& buffer, uint64_t tag, PostResult* result, RegionId region) {
  Posted posted;
  const SendRequest request{.buffer = buffer.local(region), .tag = tag, .user_data = next_operation_};
  return Note(from, endpoint(from).PostSend(connection(from), request, now(), &posted.id), result, posted);
}

uint64_t CoreFixture::SendToReceive(uint32_t from, GuardedBuffer& buffer, uint64_t tag) {
  Posted posted;
  const SendRequest request{.buffer = buffer.local(), .tag = tag, .to_receive = true, .user_data = next_operation_};
  return Note(from, endpoint(from).PostSend(connection(from), request, now(), &posted.id), nullptr, posted);
}

uint64_t CoreFixture::SendUnawaited(uint32_t from, GuardedBuffer& buffer, uint64_t tag) {
  Posted posted;
  const SendRequest request{.buffer = buffer.local(), .tag = tag, .awaited = false, .user_data = next_operation_};
  return Note(from, endpoint(from).PostSend(connection(from), request, now(), &posted.id), nullptr, posted);
}

uint64_t CoreFixture::SendImmediate(uint32_t from, GuardedBuffer& buffer, uint64_t tag, uint64_t immediate) {
  Posted posted;
  const SendRequest request{.buffer = buffer.local(),
                            .tag = tag,
                            .immediate = immediate,
                            .has_immediate = true,
                            .user_data = next_operation_};
  return Note(from, endpoint(from).PostSend(connection(from), request, now(), &posted.id), nullptr, posted);
}

uint64_t CoreFixture::Receive(uint32_t at, GuardedBuffer& buffer, uint64_t tag, uint64_t ignore, PostResult* result,
                              RegionId region) {
  Posted posted{.lent = buffer.data(), .lent_bytes = buffer.size()};
  const ReceiveRequest request{
      .buffer = buffer.local(region), .tag = tag, .ignore = ignore, .user_data = next_operation_};
  return Note(at, endpoint(at).PostReceive(connection(at), request, now(), &posted.id), result, posted);
}

uint64_t CoreFixture::Write(uint32_t from, GuardedBuffer& buffer, const RemoteMemory& remote, uint64_t offset,
                            PostResult* result, RegionId region) {
  Posted posted;
  const WriteRequest request{
      .buffer = buffer.local(region), .remote = remote, .remote_offset = offset, .user_data = next_operation_};
  return Note(from, endpoint(from).PostWrite(connection(from), request, now(), &posted.id), result, posted);
}

uint64_t CoreFixture::WriteImmediate(uint32_t from, GuardedBuffer& buffer, const RemoteMemory& remote, uint64_t offset,
                                     uint64_t immediate) {
  Posted posted;
  const WriteRequest request{.buffer = buffer.local(),
                             .remote = remote,
                             .remote_offset = offset,
                             .immediate = immediate,
                             .has_immediate = true,
                             .user_data = next_operation_};
  return Note(from, endpoint(from).PostWrite(connection(from), request, now(), &posted.id), nullptr, posted);
}

uint64_t CoreFixture::Read(uint32_t from, GuardedBuffer& buffer, const RemoteMemory& remote, uint64_t offset,
                           PostResult* result) {
  Posted posted{.lent = buffer.data(), .lent_bytes = buffer.size()};
  const ReadRequest request{
      .buffer = buffer.local(), .remote = remote, .remote_offset = offset, .user_data = next_operation_};
  return Note(from, endpoint(from).PostRead(connection(from), request, now(), &posted.id), result, posted);
}

uint64_t CoreFixture::FetchAdd(uint32_t from, const RemoteMemory& remote, uint64_t offset, uint64_t operand) {
  Posted posted;
  const AtomicRequest request{.operation = Operation::kFetchAdd,
                              .remote = remote,
                              .remote_offset = offset,
                              .operand = operand,
                              .user_data = next_operation_};
  return Note(from, endpoint(from).PostAtomic(connection(from), request, now(), &posted.id), nullptr, posted);
}

uint64_t CoreFixture::CompareSwap(uint32_t from, const RemoteMemory& remote, uint64_t offset, uint64_t compare,
                                  uint64_t operand) {
  Posted posted;
  const AtomicRequest request{.operation = Operation::kCompareSwap,
                              .remote = remote,
                              .remote_offset = offset,
                              .operand = operand,
                              .compare = compare,
                              .user_data = next_operation_};
  return Note(from, endpoint(from).PostAtomic(connection(from), request, now(), &posted.id), nullptr, posted);
}

uint64_t CoreFixture::PostAtomic(uint32_t from, VectorAtomicRequest request, PostResult* result) {
  const size_t bytes = request.elements * SizeOf(request.type);
  Posted posted{.lent = static_cast<uint8_t*>(request.results), .lent_bytes = request.results == nullptr ? 0 : bytes};
  request.user_data = next_operation_;
  return Note(from, endpoint(from).PostVectorAtomic(connection(from), request, now(), &posted.id), result, posted);
}

uint64_t CoreFixture::Flush(uint32_t from) {
  Posted posted;
  const FlushRequest request{.user_data = next_operation_};
  return Note(from, endpoint(from).PostFlush(connection(from), request, now(), &posted.id), nullptr, posted);
}

bool CoreFixture::Cancel(uint32_t at, uint64_t operation) {
  const bool cancelled = endpoint(at).Cancel(connection(at), posted_[at].at(operation).id, now());
  host(at).Touch();
  return cancelled;
}

RemoteMemory CoreFixture::Export(uint32_t at, GuardedBuffer& buffer, uint8_t access, RegionId* region) {
  const RegionId id = endpoint(at).RegisterMemory(buffer.data(), buffer.size(), access);
  EXPECT_NE(id, kUnregistered);
  if (region != nullptr) *region = id;
  return endpoint(at).ExportMemory(id);
}

const Completion* CoreFixture::Done(uint32_t at, uint64_t operation) {
  for (const Completion& completion : host(at).completions) {
    if (completion.user_data == operation) return &completion;
  }
  return nullptr;
}

Completion CoreFixture::Await(uint32_t at, uint64_t operation, Duration limit) {
  EXPECT_TRUE(world_->RunUntil([&] { return Done(at, operation) != nullptr; }, limit))
      << "host " << at << ": operation " << operation << " hangs";
  const Completion* completion = Done(at, operation);
  return completion == nullptr ? Completion{.status = OperationStatus::kRemoteError} : *completion;
}

void CoreFixture::AwaitOk(uint32_t at, uint64_t operation) {
  const Completion completion = Await(at, operation);
  EXPECT_EQ(completion.status, OperationStatus::kOk) << OperationStatusName(completion.status);
}

size_t CoreFixture::pending(uint32_t at) const {
  return static_cast<size_t>(std::count_if(posted_[at].begin(), posted_[at].end(),
                                           [](const auto& posted) { return posted.second.completions == 0; }));
}

void CoreFixture::AwaitAll(Duration limit) {
  EXPECT_TRUE(world_->RunUntil([&] { return pending(0) == 0 && pending(1) == 0; }, limit))
      << pending(0) << " operations of host 0 and " << pending(1) << " of host 1 hang";
}

const ConnectionEvent* CoreFixture::Event(uint32_t at, ConnectionEventKind kind, ConnectionId of) {
  for (const ConnectionEvent& event : host(at).events) {
    if (event.kind == kind && event.connection == of) return &event;
  }
  return nullptr;
}

void CoreFixture::HookData(DataHook hook) {
  network().SetHook([hook = std::move(hook)](NetworkPacket& packet, Fate& fate) {
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
    if (packet.from != 0 || !common.has_value() || common->type != wire::PacketType::kData) return;
    const auto header = wire::ParseData(*common, packet.bytes);
    if (header.has_value() && packet.payload_bytes > 0) hook(*header, packet, fate);
  });
}

void CoreFixture::Exchange(uint32_t from, size_t bytes, uint64_t tag) {
  const uint32_t to = 1 - from;
  GuardedBuffer& out = NewFilled(bytes, bytes + tag);
  GuardedBuffer& in = NewBuffer(bytes);
  const uint64_t receive = Receive(to, in, tag);
  const uint64_t send = Send(from, out, tag);
  AwaitOk(from, send);
  AwaitOk(to, receive);
  if (Done(to, receive) == nullptr) return;
  EXPECT_EQ(Done(to, receive)->bytes, bytes);
  EXPECT_TRUE(in.Holds(bytes + tag)) << bytes << " bytes";
}

}  // namespace paceline::support
