#include "transport/core/endpoint.h"

#include <algorithm>

#include "transport/core/endpoint_impl.h"

namespace paceline {
namespace {

PortInfo MakePortInfo(const CoreContext& context, const LaneCapabilities& lane) {
  const EndpointOptions& options = context.options;
  const uint32_t data_header_bytes = context.data_header_bytes();
  PortInfo info;
  info.link_rate = lane.link_rate.is_zero() ? options.assumed_link_rate : lane.link_rate;
  info.base_rtt = lane.base_rtt > Duration() ? lane.base_rtt : options.assumed_rtt;
  info.delay_error = lane.delay_error;
  info.segment_bytes = context.SegmentBytes(lane.max_packet_bytes);
  if (lane.remote_placement) info.segment_bytes = std::min(info.segment_bytes, lane.max_write_bytes);
  info.overhead_bytes = lane.header_bytes + (lane.nominal_header ? 0 : data_header_bytes);
  info.control_packet_bytes = lane.header_bytes + (lane.nominal_header ? 0 : 64 + context.trailer_bytes);
  info.burst_segments = std::max(1u, lane.burst_segments);
  info.receive_buffer_bytes = lane.receive_buffer_bytes;
  info.local_group = options.local_group;
  info.core_rate = options.core_rate;
  info.group_ports = options.group_ports;
  return info;
}

}  // namespace

Endpoint::Impl::Impl(const EndpointOptions& options, std::unique_ptr<CongestionControl> congestion_control,
                     EndpointEnvironment* environment, std::span<const PortDescription> ports)
    : cookies_(options.cookie_secret), secret_numbers_(options.key_seed) {
  context_.options = options;
  context_.congestion_control = std::move(congestion_control);
  context_.environment = environment;
  context_.device_copies.Start(environment, &context_.counters);
  context_.random = Random(options.seed);
  context_.completions = CompletionQueue(options.max_completions);
  if (options.cluster_key.has_value()) {
    identity_.emplace(*options.cluster_key, options.key_seed);
    context_.trailer_bytes = SecureChannel::kTrailerBytes;
    crypto::Erase(*context_.options.cluster_key);
  }
  crypto::Erase(context_.options.key_seed);
  context_.ports.resize(std::min<size_t>(ports.size(), limits::kMaxPorts));
  uint32_t most_payload = 0, most_padding = 0;
  for (uint32_t i = 0; i < context_.ports.size(); ++i) {
    Port& port = context_.ports[i];
    port.index = i;
    port.capabilities = ports[i].capabilities;
    port.address = ports[i].address;
    if (options.base_rtt > Duration()) port.capabilities.base_rtt = options.base_rtt;
    port.info = MakePortInfo(context_, port.capabilities);
    port.info.port_index = i;
    if (i < options.credit_pools.size()) port.info.credit_pool = options.credit_pools[i];
    port.info.credit_pool_member = options.id_prefix;
    most_payload = std::max(most_payload, port.info.segment_bytes);
    most_padding = std::max(most_padding, port.capabilities.max_packet_bytes);
    port.receiver = context_.congestion_control->NewReceiver(port.info);
    context_.measures_rtt |= port.receiver != nullptr && port.measures_rtt();
  }
  context_.burst_memory.SetMostPayload(most_payload);
  context_.padding.resize(most_padding);
  slots_.emplace_back();  // slot 0 with generation 0 would give kNoConnection
  // What is still on its way to an endpoint that had this address before is not to meet a connection of this one.
  first_generation_ =
      static_cast<uint32_t>(secret_numbers_.Next() ^ Random(options.seed).Next()) & ((1u << kGenerationBits) - 1);
}

Endpoint::Impl::~Impl() {
  for (Slot& slot : slots_) slot.connection.reset();
  ReleaseReplyPeers();
}

RegionId Endpoint::Impl::RegisterMemory(void* base, uint64_t bytes, uint8_t access, MemoryKind kind,
                                        ConnectionId connection, const RegionName& same_as) {
  if (kind == MemoryKind::kDevice) return kUnregistered;
  return AddRegion({.base = static_cast<uint8_t*>(base),
                    .bytes = bytes,
                    .access = access,
                    .kind = kind,
                    .connection = connection,
                    .id = same_as.id,
                    .key = same_as.key != 0 ? same_as.key : NewSecretNumber()});
}

RegionId Endpoint::Impl::RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes, uint8_t access,
                                          const RegionName& same_as) {
  return AddRegion({.base = static_cast<uint8_t*>(base),
                    .bytes = bytes,
                    .access = access,
                    .id = same_as.id,
                    .key = key,
                    .origin = origin});
}

RegionId Endpoint::Impl::RegisterDeviceMemory(const LaneMemory& memory, uint8_t access, const RegionName& same_as) {
  if (!memory.on_device() || (access & kRemoteAtomic) != 0) return kUnregistered;
  return AddRegion({.base = static_cast<uint8_t*>(memory.base),
                    .bytes = memory.bytes,
                    .access = access,
                    .kind = MemoryKind::kDevice,
                    .id = same_as.id,
                    .key = same_as.key != 0 ? same_as.key : NewSecretNumber(),
                    .device = memory.device,
                    .dma_buf = memory.dma_buf,
                    .dma_buf_offset = memory.dma_buf_offset});
}

uint32_t Endpoint::Impl::PlacingPorts(RegionId id) const {
  const Region* region = context_.memory.Find(id);
  uint32_t ports = 0;
  for (const Port& port : context_.ports) {
    if (region != nullptr && region->lane_keys[port.index] != 0) ports |= 1u << port.index;
  }
  return ports;
}

uint32_t Endpoint::Impl::ReadingPorts(RegionId id) const {
  const Region* region = context_.memory.Find(id);
  return region == nullptr ? 0 : PlacingPorts(id) | region->lent_ports;
}

RegionId Endpoint::Impl::AddRegion(Region region) {
  if (context_.memory.HasKey(region.key)) return kUnregistered;
  for (const Port& port : context_.ports) {
    if (port.capabilities.remote_placement && region.kind != MemoryKind::kPhantom) {
      region.lane_keys[port.index] = context_.environment->RegisterMemory(port.index, region.ForLanes());
    }
    if (port.capabilities.reads_later && region.kind != MemoryKind::kPhantom &&
        context_.environment->LendMemory(port.index, region.ForLanes())) {
      region.lent_ports |= static_cast<uint8_t>(1u << port.index);
    }
  }
  const RegionId id = context_.memory.Add(region);
  if (id == kUnregistered) DeregisterFromLanes(region);
  return id;
}

void Endpoint::Impl::DeregisterFromLanes(const Region& region) {
  for (const Port& port : context_.ports) {
    const uint64_t key = region.lane_keys[port.index];
    if (key != 0) context_.environment->DeregisterMemory(port.index, key);
    if ((region.lent_ports >> port.index & 1) != 0) {
      context_.environment->ReturnMemory(port.index, region.ForLanes());
    }
  }
}

void Endpoint::Impl::DeregisterMemory(RegionId id, Time now) {
  const Region* region = context_.memory.Find(id);
  if (region == nullptr) return;
  const Region copy = *region;
  context_.memory.Remove(id);
  CancelReceivesInto(id, now);
  DeregisterFromLanes(copy);
  for (Slot& slot : slots_) {
    Connection* connection = slot.connection.get();
    if (connection == nullptr) continue;
    Sender* sender = connection->active_sender();
    if (sender != nullptr) sender->RevokeAnswers(id);
    if ((sender != nullptr && sender->UsesRegion(id)) || connection->receiver().UsesRegion(id)) {
      Abort(connection->id(), now);
    } else {
      connection->receiver().RevokeKey(copy.key);
      After(connection, now);
    }
  }
}

// An ended connection has taken the keys of regions along that others write to.
void Endpoint::Impl::TellKeysAgain(Time now) {
  for (const RegionId region : context_.rekeyed) {
    for (Slot& slot : slots_) {
      Connection* connection = slot.connection.get();
      if (connection != nullptr && connection->open() && connection->receiver().TellKeysAgain(region)) {
        Enlist(connection, now);
      }
    }
  }
  context_.rekeyed.clear();
}

RemoteMemory Endpoint::Impl::ExportMemory(RegionId id) const {
  RemoteMemory remote;
  const Region* region = context_.memory.Find(id);
  if (region == nullptr) return remote;
  remote.key = region->key;
  remote.bytes = region->origin + region->bytes;
  // A card checks neither the permission to write nor whose connection it is: such regions are reached by packets.
  if ((region->access & kRemoteWrite) != 0 && region->connection == kNoConnection) {
    remote.lane_base = reinterpret_cast<uint64_t>(region->base) - region->origin;
    remote.lane_keys = region->lane_keys;
  }
  return remote;
}

uint32_t Endpoint::Impl::Listen(const ConnectionSetup& setup, uint64_t nonce) {
  if (nonce == 0) nonce = NewSecretNumber();
  if (listener_by_nonce_.contains(nonce)) return 0;
  const uint32_t number = next_listener_++;
  listeners_[number] = {.nonce = nonce, .setup = setup};
  listener_by_nonce_[nonce] = number;
  return number;
}

void Endpoint::Impl::CloseListener(uint32_t listener) {
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return;
  listener_by_nonce_.erase(found->second.nonce);
  listeners_.erase(found);
}

ListenAddress Endpoint::Impl::listen_address(uint32_t listener) const {
  ListenAddress address;
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return address;
  address.nonce = found->second.nonce;
  for (const Port& port : context_.ports) {
    if (address.ports == address.addresses.size()) break;
    address.addresses[address.ports++] = port.address;
  }
  return address;
}

Connection* Endpoint::Impl::NewConnection() {
  uint32_t slot;
  if (!free_slots_.empty()) {
    slot = free_slots_.front();
    free_slots_.pop_front();
  } else {
    if (slots_.size() > std::min(context_.options.max_connections, limits::kMaxConnections - 1)) return nullptr;
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back().generation = first_generation_;
  }
  const uint32_t free_bits = kGenerationBits - context_.options.id_prefix_bits;
  const uint32_t uses = (slots_[slot].generation + 1) & ((1u << free_bits) - 1);
  slots_[slot].generation = context_.options.id_prefix << free_bits | uses;
  const ConnectionId id = slots_[slot].generation << kSlotBits | slot;
  slots_[slot].connection = std::make_unique<Connection>(&context_, id);
  ++live_;
  return slots_[slot].connection.get();
}

Connection* Endpoint::Impl::Find(ConnectionId id) const {
  const uint32_t slot = id & kSlotMask;
  if (slot >= slots_.size()) return nullptr;
  Connection* connection = slots_[slot].connection.get();
  return connection != nullptr && connection->id() == id ? connection : nullptr;
}

ConnectionId Endpoint::Impl::Connect(const ListenAddress& address, Time now, const ConnectionSetup& setup,
                                     const PrivateData& private_data) {
  if (address.ports == 0) return kNoConnection;
  Connection* connection = NewConnection();
  if (connection == nullptr) return kNoConnection;
  SetUp(*connection, setup);
  connection->StartConnecting(address, NewSecretNumber(), now);
  connection->handshake().private_data = private_data;
  if (identity_.has_value()) {
    Connection::Handshake& handshake = connection->handshake();
    handshake.private_key = identity_->NewPrivateKey();
    handshake.credentials.public_key = crypto::PublicKeyOf(handshake.private_key);
  }
  After(connection, now);
  return connection->id();
}

void Endpoint::Impl::Accept(ConnectionId id, Time now) {
  Connection* connection = Find(id);
  if (connection == nullptr || connection->state() != Connection::State::kRequested) return;
  EstablishedPeer peer;
  const wire::Hello& hello = connection->handshake().hello;
  peer.peer_connection = connection->peer().peer_connection;
  peer.addresses.assign(hello.addresses.begin(), hello.addresses.begin() + hello.ports);
  peer.segment_bytes = hello.segment_bytes;
  const uint32_t features = hello.features;
  peer.atomics = (features & wire::kFeatureAtomics) != 0;
  peer.fences = (features & wire::kFeatureFences) != 0;
  peer.bundles = (features & wire::kFeatureBundles) != 0;
  peer.fragments = (features & wire::kFeatureFragments) != 0;
  const uint8_t ports = ReachOf(peer.addresses);
  wire::AcceptPacket accept{
      .client_nonce = connection->nonce(), .server_connection = connection->id(), .hello = OurHello(ports)};
  std::array<uint8_t, limits::kMaxControlBytes> buffer;
  std::unique_ptr<SecureChannel> channel;
  size_t size = 0;
  if (!identity_.has_value()) {
    size = wire::EncodeAccept(accept, peer.peer_connection, buffer);
  } else if (channel = AnswerKeyExchange(*connection, accept, buffer, &size); channel == nullptr) {
    return Refuse(id, now);
  }
  connection->Establish(peer, WantsChecksum(ports, features), std::move(channel), now);
  connection->KeepAccept(std::span(buffer).first(size));
  SendAccept(connection, AnswerPath::kFirst);
  After(connection, now);
}

void Endpoint::Impl::Refuse(ConnectionId id, Time now) {
  Connection* connection = Find(id);
  if (connection == nullptr || connection->state() != Connection::State::kRequested) return;
  const wire::Hello& hello = connection->handshake().hello;
  const std::span<const LaneAddress> addresses = std::span(hello.addresses).first(hello.ports);
  const std::vector<PortPair> ways = PairsToTry(*context_.environment, context_.ports, addresses);
  if (!ways.empty()) {
    ReplyRefuse(ways[0].local, addresses[ways[0].remote], connection->peer().peer_connection, connection->nonce(),
                CloseReason::kRefusedByApplication, &connection->handshake().init_digest);
  }
  const auto request = requests_.find({connection->nonce(), connection->peer().peer_connection});
  if (request != requests_.end()) request->second.refused = true;
  connection->Finish(CloseReason::kRefusedByApplication, OperationStatus::kConnectionClosed, false, "", now);
  After(connection, now);
}

void Endpoint::Impl::Close(ConnectionId id, Time now) {
  Connection* connection = Find(id);
  if (connection == nullptr) return;
  connection->StartClosing(now);
  After(connection, now);
}

void Endpoint::Impl::Abort(ConnectionId id, Time now) {
  Connection* connection = Find(id);
  if (connection == nullptr) return;
  connection->Finish(CloseReason::kLocal, OperationStatus::kConnectionClosed, true, "", now);
  After(connection, now);
}

ConnectionId Endpoint::Impl::ReserveConnection() {
  Connection* connection = NewConnection();
  return connection == nullptr ? kNoConnection : connection->id();
}

void Endpoint::Impl::Establish(ConnectionId id, const EstablishedPeer& peer, Time now) {
  Connection* connection = Find(id);
  if (connection == nullptr || connection->state() != Connection::State::kReserved || peer.addresses.empty()) return;
  connection->Establish(peer, context_.options.payload_checksum, nullptr, now);
  connection->DropEvent();  // nobody waits for it
  After(connection, now);
}

// ---- the facade

Endpoint::Endpoint(const EndpointOptions& options, std::unique_ptr<CongestionControl> congestion_control,
                   EndpointEnvironment* environment, std::span<const PortDescription> ports)
    : impl_(std::make_unique<Impl>(options, std::move(congestion_control), environment, ports)) {}
Endpoint::~Endpoint() = default;

RegionId Endpoint::RegisterMemory(void* base, uint64_t bytes, uint8_t access, MemoryKind kind, ConnectionId connection,
                                  const RegionName& same_as) {
  return impl_->RegisterMemory(base, bytes, access, kind, connection, same_as);
}
RegionId Endpoint::RegisterDeviceMemory(const LaneMemory& memory, uint8_t access, const RegionName& same_as) {
  return impl_->RegisterDeviceMemory(memory, access, same_as);
}
uint32_t Endpoint::PlacingPorts(RegionId region) const { return impl_->PlacingPorts(region); }

uint32_t Endpoint::ReadingPorts(RegionId region) const { return impl_->ReadingPorts(region); }
void Endpoint::DeregisterMemory(RegionId region, Time now) { impl_->DeregisterMemory(region, now); }
RemoteMemory Endpoint::ExportMemory(RegionId region) const { return impl_->ExportMemory(region); }

RegionId Endpoint::RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes, uint8_t access,
                                    const RegionName& same_as) {
  return impl_->RegisterMemoryAs(key, origin, base, bytes, access, same_as);
}

uint32_t Endpoint::Listen(const ConnectionSetup& setup, uint64_t nonce) { return impl_->Listen(setup, nonce); }
void Endpoint::CloseListener(uint32_t listener) { impl_->CloseListener(listener); }
ListenAddress Endpoint::listen_address(uint32_t listener) const { return impl_->listen_address(listener); }
ConnectionId Endpoint::Connect(const ListenAddress& address, Time now, const ConnectionSetup& setup,
                               const PrivateData& private_data) {
  return impl_->Connect(address, now, setup, private_data);
}
void Endpoint::TakeRequest(const ConnectionRequest& request, Time now) { impl_->TakeRequest(request, now); }
void Endpoint::Accept(ConnectionId connection, Time now) { impl_->Accept(connection, now); }
void Endpoint::Refuse(ConnectionId connection, Time now) { impl_->Refuse(connection, now); }
void Endpoint::Close(ConnectionId connection, Time now) { impl_->Close(connection, now); }
void Endpoint::Abort(ConnectionId connection, Time now) { impl_->Abort(connection, now); }
ConnectionId Endpoint::ReserveConnection() { return impl_->ReserveConnection(); }
void Endpoint::Establish(ConnectionId connection, const EstablishedPeer& peer, Time now) {
  impl_->Establish(connection, peer, now);
}

PostResult Endpoint::PostSend(ConnectionId connection, const SendRequest& request, Time now, OperationId* id) {
  return impl_->PostSend(connection, request, now, id);
}
PostResult Endpoint::PostReceive(ConnectionId connection, const ReceiveRequest& request, Time now, OperationId* id) {
  return impl_->PostReceive(connection, request, now, id);
}
PostResult Endpoint::PostWrite(ConnectionId connection, const WriteRequest& request, Time now, OperationId* id) {
  return impl_->PostWrite(connection, request, now, id);
}
PostResult Endpoint::PostRead(ConnectionId connection, const ReadRequest& request, Time now, OperationId* id) {
  return impl_->PostRead(connection, request, now, id);
}
PostResult Endpoint::PostVectorAtomic(ConnectionId connection, const VectorAtomicRequest& request, Time now,
                                      OperationId* id) {
  return impl_->PostVectorAtomic(connection, request, now, id);
}
PostResult Endpoint::PostAtomic(ConnectionId connection, const AtomicRequest& request, Time now, OperationId* id) {
  return impl_->PostAtomic(connection, request, now, id);
}
PostResult Endpoint::PostFlush(ConnectionId connection, const FlushRequest& request, Time now, OperationId* id) {
  return impl_->PostFlush(connection, request, now, id);
}
bool Endpoint::Cancel(ConnectionId connection, OperationId id, Time now) { return impl_->Cancel(connection, id, now); }

ReceiveQueueId Endpoint::NewReceiveQueue() { return impl_->NewReceiveQueue(); }
void Endpoint::DeleteReceiveQueue(ReceiveQueueId queue, Time now) { impl_->DeleteReceiveQueue(queue, now); }
void Endpoint::SetSource(ConnectionId connection, Source source, Time now) {
  impl_->SetSource(connection, source, now);
}
PostResult Endpoint::PostSharedReceive(ReceiveQueueId queue, const ReceiveRequest& request, Time now, OperationId* id) {
  return impl_->PostSharedReceive(queue, request, now, id);
}
std::optional<WaitingSend> Endpoint::Peek(ReceiveQueueId queue, const ReceiveRequest& request, bool claim) {
  return impl_->Peek(queue, request, claim);
}
bool Endpoint::CancelReceive(ReceiveQueueId queue, OperationId id, Time now) {
  return impl_->CancelReceive(queue, id, now);
}
void Endpoint::FailReceivesFrom(ReceiveQueueId queue, Source source, OperationStatus status, Time now) {
  impl_->FailReceivesFrom(queue, source, status, now);
}

size_t Endpoint::PollCompletions(std::span<Completion> out) { return impl_->PollCompletions(out); }
size_t Endpoint::PollConnectionEvents(std::span<ConnectionEvent> out) { return impl_->PollConnectionEvents(out); }

void Endpoint::HandleSegments(uint32_t port, std::span<const RxSegment> segments, Time now) {
  impl_->TakeSegments(port, segments, now);
  impl_->FinishSegments(now);
}

void Endpoint::TakeSegments(uint32_t port, std::span<const RxSegment> segments, Time now) {
  impl_->TakeSegments(port, segments, now);
}

PlacementGuess Endpoint::GuessPlacement(uint32_t port) { return impl_->GuessPlacement(port); }

void Endpoint::FinishSegments(Time now) { impl_->FinishSegments(now); }
size_t Endpoint::PollTransmit(uint32_t port, TxBurst& burst, size_t room, Time now) {
  return impl_->PollTransmit(port, burst, room, now);
}
bool Endpoint::may_transmit() const { return impl_->may_transmit(); }
Time Endpoint::PollTimeout() { return impl_->PollTimeout(); }
void Endpoint::HandleTimeout(Time now) { impl_->HandleTimeout(now); }
void Endpoint::HandlePortStatus(uint32_t port, bool up, Time now) { impl_->HandlePortStatus(port, up, now); }

const EndpointCounters& Endpoint::counters() const { return impl_->context().counters; }
const EndpointOptions& Endpoint::options() const { return impl_->context().options; }
size_t Endpoint::connections() const { return impl_->connections(); }
bool Endpoint::has_narrow_paths() const { return impl_->context().narrow_connections > 0; }
uint32_t Endpoint::UnexpectedMessages(ConnectionId connection) const { return impl_->UnexpectedMessages(connection); }
size_t Endpoint::MemoryOf(ConnectionId connection) const { return impl_->MemoryOf(connection); }

}  // namespace paceline
