#include <algorithm>

#include "transport/core/endpoint_impl.h"

namespace paceline {
namespace {

constexpr size_t kMaxSpentRequests = 16384;  // remembered after their connection
constexpr size_t kMaxReplies = 256;          // answers to strangers that wait to be sent

}  // namespace

wire::Hello Endpoint::Impl::OurHello(uint8_t ports) const {
  wire::Hello hello;
  hello.segment_bytes = ~0u;
  for (const Port& port : context_.ports) {
    LaneAddress& address = hello.addresses[hello.ports++];
    if ((ports >> port.index & 1) == 0) continue;
    hello.segment_bytes = std::min(hello.segment_bytes, port.info.segment_bytes);
    address = port.address;
  }
  hello.features = wire::kFeatureAtomics | wire::kFeatureFences | wire::kFeatureBundles | wire::kFeatureFragments |
                   (WantsChecksum(ports, 0) ? wire::kFeaturePayloadCrc : 0u);
  if (identity_.has_value()) {
    hello.features |= wire::kFeatureProtected | (context_.options.encrypt ? wire::kFeatureEncryption : 0u);
  }
  hello.algorithm = context_.options.congestion_control;
  return hello;
}

uint8_t Endpoint::Impl::ReachOf(std::span<const LaneAddress> addresses) {
  const Routes routes = OpenRoutes(*context_.environment, context_.ports, addresses);
  CloseRoutes(*context_.environment, routes);
  return routes.Reach();
}

size_t Endpoint::Impl::BuildRequest(Connection& connection, uint32_t port, std::span<uint8_t> buffer,
                                    LaneAddress* address) {
  const Port& through = context_.ports[port];
  Connection::Handshake& handshake = connection.handshake();
  wire::InitPacket init;
  init.hello = OurHello(connection.RequestPorts());
  connection.FillRequest(&init, address);
  if (connection.asks_with_cookie()) {
    if (handshake.segment_bytes == 0) {
      handshake.segment_bytes = init.hello.segment_bytes;
      if (through.capabilities.path_may_be_narrower) {
        const uint32_t packet = std::max(handshake.search->found(), limits::kLeastPacketBytes);
        handshake.segment_bytes = std::min(handshake.segment_bytes, context_.SegmentBytes(packet));
      }
      if (handshake.segment_bytes < init.hello.segment_bytes) ++context_.counters.paths_narrower;
    }
    init.hello.segment_bytes = handshake.segment_bytes;
  }
  const size_t size = wire::EncodeInit(init, buffer);
  if (!handshake.search.has_value()) {
    const auto plain = static_cast<uint32_t>(size);
    handshake.search.emplace(plain,
                             through.capabilities.path_may_be_narrower ? through.capabilities.max_packet_bytes : plain);
  }
  if (identity_.has_value()) {
    const std::span<uint8_t> packet = buffer.first(size);
    const std::span<const uint8_t> covered = wire::SignedBytes(wire::BodyOf(packet));
    handshake.init_digest = DigestOfInit(covered);
    wire::PlaceTag(packet, identity_->TagInit(covered));
  }
  return size;
}

// The address at which the client receives. Over UDP a request with an entropy other than 0 comes from a port that the
// client does not read. The hello's address must have the source's IP address, so that no answer goes to a third host.
LaneAddress Endpoint::Impl::ReceivingAddress(uint32_t port, const LaneAddress& source, const wire::Hello& hello) const {
  if (!context_.ports[port].capabilities.entropy_is_udp_port) return source;
  const auto end = hello.addresses.begin() + hello.ports;
  const auto own = std::find_if(hello.addresses.begin(), end,
                                [&](const LaneAddress& address) { return SameUdpHost(address, source); });
  return own == end ? source : *own;
}

void Endpoint::Impl::HandleInit(uint32_t port, std::span<const uint8_t> body, uint32_t padding,
                                const LaneAddress& source, Time now) {
  const auto init = wire::ParseInit(body);
  if (!init.has_value()) {
    ++context_.counters.rx_malformed;
    return;
  }
  const LaneAddress client = ReceivingAddress(port, source, init->hello);
  if (const auto cookie = cookies_.Check(*init, client, now); cookie.has_value()) {
    const wire::CookiePacket answer{.client_nonce = init->client_nonce, .cookie = *cookie};
    Reply* reply = NewReply(port, client);
    if (reply == nullptr) return;
    // The client's first request is answered from the port that it was sent to, as firewalls expect.
    const bool by_first = context_.ports[port].capabilities.entropy_is_udp_port && client == source;
    reply->path = by_first ? AnswerPath::kFirst : AnswerPath::kOther;
    reply->size = wire::EncodeCookie(answer, init->client_connection, reply->bytes);
    if (padding > 0) {
      const size_t arrived = wire::kCommonBytes + body.size() + padding;
      reply->padded_bytes = std::min<size_t>(arrived, context_.ports[port].capabilities.max_packet_bytes);
    }
    return;
  }
  const ConnectionRequest request = {.port = port,
                                     .client_address = client,
                                     .listener = init->listener_nonce,
                                     .client_nonce = init->client_nonce,
                                     .client = init->client_connection,
                                     .body = body};
  if (!Vouched(*init, body)) {
    return ReplyRefuse(port, client, init->client_connection, init->client_nonce, CloseReason::kRefusedKey, nullptr);
  }
  switch (context_.environment->PassOn(request, now)) {
    case PassedOn::kNo:
      return TakeRequest(request, *init, now);
    case PassedOn::kYes:
      return;
    case PassedOn::kFull:
      ++context_.counters.listen_overflows;
      return;
  }
}

void Endpoint::Impl::RefuseRequest(const ConnectionRequest& request, CloseReason reason) {
  const crypto::Secret digest = DigestOf(request);
  ReplyRefuse(request.port, request.client_address, request.client, request.client_nonce, reason, &digest);
}

crypto::Secret Endpoint::Impl::DigestOf(const ConnectionRequest& request) const {
  return identity_.has_value() ? DigestOfInit(wire::SignedBytes(request.body)) : crypto::Secret{};
}

void Endpoint::Impl::TakeRequest(const ConnectionRequest& request, Time now) {
  const auto init = wire::ParseInit(request.body);
  if (init.has_value() && request.port < context_.ports.size()) TakeRequest(request, *init, now);
}

void Endpoint::Impl::TakeRequest(const ConnectionRequest& request, const wire::InitPacket& init, Time now) {
  const uint32_t port = request.port;
  ForgetSpentRequests(now);
  const auto key = std::make_pair(request.client_nonce, request.client);
  const auto known = requests_.find(key);
  if (known != requests_.end()) {
    Connection* connection = Find(known->second.connection);
    if (connection != nullptr && connection->open()) {
      connection->AnswerThrough(port);
      return SendAccept(connection, AnswerPath::kOther);
    }
    if (!known->second.refused) return;
  }
  const auto refuse = [&](CloseReason reason) { RefuseRequest(request, reason); };
  if (known != requests_.end()) return refuse(CloseReason::kRefusedByApplication);
  const auto listener = listener_by_nonce_.find(init.listener_nonce);
  if (listener == listener_by_nonce_.end()) return refuse(CloseReason::kRefusedNoListener);
  if (init.hello.algorithm != context_.options.congestion_control) return refuse(CloseReason::kRefusedMismatch);
  if (init.hello.segment_bytes < limits::kMinSegmentBytes) {
    ++context_.counters.rx_malformed;
    return;
  }
  if (pending_requests_ >= limits::kMaxPendingAccepts) {  // the client asks again
    ++context_.counters.listen_overflows;
    return;
  }
  if (ReachOf(std::span(init.hello.addresses).first(init.hello.ports)) == 0) {
    return refuse(CloseReason::kRefusedNoRoute);
  }
  Connection* connection = NewConnection();
  if (connection == nullptr) return refuse(CloseReason::kRefusedFull);
  SetUp(*connection, listeners_.at(listener->second).setup);
  requests_[key] = {.connection = connection->id()};
  ++pending_requests_;
  connection->StartRequested(init, DigestOf(request), listener->second, now);
  connection->AnswerThrough(port);
  After(connection, now);
}

void Endpoint::Impl::SendAccept(Connection* connection, AnswerPath path) {
  const std::span<const uint8_t> packet = connection->kept_accept();
  Reply* reply = packet.empty() ? nullptr : NewReply(0, LaneAddress{});
  if (reply == nullptr) return;
  reply->connection = connection->id();
  reply->path = path;
  reply->size = packet.size();
  std::copy(packet.begin(), packet.end(), reply->bytes.begin());
}

bool Endpoint::Impl::Vouched(const wire::InitPacket& init, std::span<const uint8_t> body) {
  const bool offered = (init.hello.features & wire::kFeatureProtected) != 0;
  const bool good = identity_.has_value()
                        ? offered && EqualTags(init.credentials.tag, identity_->TagInit(wire::SignedBytes(body)))
                        : !offered;
  if (!good) ++context_.counters.rx_forged;
  return good;
}

std::unique_ptr<SecureChannel> Endpoint::Impl::AnswerKeyExchange(Connection& connection, wire::AcceptPacket& accept,
                                                                 std::span<uint8_t> buffer, size_t* size) {
  const Connection::Handshake& handshake = connection.handshake();
  const crypto::Secret private_key = identity_->NewPrivateKey();
  const auto session =
      Session::Derive(*identity_, private_key, handshake.credentials.public_key, handshake.init_digest);
  accept.credentials.public_key = crypto::PublicKeyOf(private_key);
  if (!session.has_value()) return nullptr;
  *size = wire::EncodeAccept(accept, connection.peer().peer_connection, buffer);
  const std::span<uint8_t> packet = buffer.first(*size);
  const std::span<const uint8_t> covered = wire::SignedBytes(wire::BodyOf(packet));
  wire::PlaceTag(packet, session->TagAccept(covered));
  return std::make_unique<SecureChannel>(session->Keys(false, covered), Encrypts(handshake.hello.features),
                                         context_.options.packets_per_key);
}

std::unique_ptr<SecureChannel> Endpoint::Impl::FinishKeyExchange(Connection& connection,
                                                                 const wire::AcceptPacket& accept,
                                                                 std::span<const uint8_t> body) {
  if ((accept.hello.features & wire::kFeatureProtected) == 0) return nullptr;
  const Connection::Handshake& handshake = connection.handshake();
  const auto session =
      Session::Derive(*identity_, handshake.private_key, accept.credentials.public_key, handshake.init_digest);
  const std::span<const uint8_t> covered = wire::SignedBytes(body);
  if (!session.has_value() || !EqualTags(accept.credentials.tag, session->TagAccept(covered))) return nullptr;
  return std::make_unique<SecureChannel>(session->Keys(true, covered), Encrypts(accept.hello.features),
                                         context_.options.packets_per_key);
}

void Endpoint::Impl::HandleCookie(ConnectionId id, std::span<const uint8_t> body, uint32_t padding, Time now) {
  const auto packet = wire::ParseCookie(body);
  Connection* connection = Find(id);
  if (!packet.has_value() || connection == nullptr || connection->nonce() != packet->client_nonce) return;
  connection->OnCookie(packet->cookie, static_cast<uint32_t>(wire::kCommonBytes + body.size()) + padding, now);
  After(connection, now);
}

void Endpoint::Impl::HandleAccept(ConnectionId id, std::span<const uint8_t> body, Time now) {
  const auto packet = wire::ParseAccept(body);
  Connection* connection = Find(id);
  if (!packet.has_value() || connection == nullptr || connection->nonce() != packet->client_nonce ||
      connection->state() != Connection::State::kConnecting || connection->handshake().segment_bytes == 0 ||
      packet->hello.segment_bytes < limits::kMinSegmentBytes) {
    return;
  }
  EstablishedPeer peer;
  peer.peer_connection = packet->server_connection;
  peer.addresses.assign(packet->hello.addresses.begin(), packet->hello.addresses.begin() + packet->hello.ports);
  peer.segment_bytes = std::min(packet->hello.segment_bytes, connection->handshake().segment_bytes);
  peer.atomics = (packet->hello.features & wire::kFeatureAtomics) != 0;
  peer.fences = (packet->hello.features & wire::kFeatureFences) != 0;
  peer.bundles = (packet->hello.features & wire::kFeatureBundles) != 0;
  peer.fragments = (packet->hello.features & wire::kFeatureFragments) != 0;
  std::unique_ptr<SecureChannel> channel;
  if (identity_.has_value()) {
    channel = FinishKeyExchange(*connection, *packet, body);
    if (channel == nullptr) {
      ++context_.counters.rx_forged;
      return;
    }
  } else if ((packet->hello.features & wire::kFeatureProtected) != 0) {
    return;  // we asked for no such thing
  }
  connection->Establish(peer, WantsChecksum(ReachOf(peer.addresses), packet->hello.features), std::move(channel), now);
  After(connection, now);
}

void Endpoint::Impl::HandleRefuse(ConnectionId id, std::span<const uint8_t> body, Time now) {
  const auto packet = wire::ParseRefuse(body);
  Connection* connection = Find(id);
  if (!packet.has_value() || connection == nullptr || connection->nonce() != packet->client_nonce ||
      connection->state() != Connection::State::kConnecting) {
    return;
  }
  auto reason = static_cast<CloseReason>(packet->reason);
  std::string detail(CloseReasonName(reason));
  if (detail == "?") reason = CloseReason::kRefusedByApplication;
  if (reason == CloseReason::kRefusedVersion) {
    detail = "the peer speaks protocol version " + std::to_string(packet->version) + ", we speak version " +
             std::to_string(wire::kVersion);
  } else if (reason == CloseReason::kRefusedMismatch) {
    detail =
        "the peer runs another congestion-control algorithm than our '" + context_.options.congestion_control + "'";
  } else if (reason == CloseReason::kRefusedKey) {
    detail = "the peer and we do not have the same cluster key";
  }
  const bool vouched =
      !identity_.has_value() ||
      (packet->tagged &&
       EqualTags(packet->tag, identity_->TagRefuse(wire::SignedBytes(body), connection->handshake().init_digest)));
  if (!vouched) {
    // Anybody may have sent it, though somebody without our key, or with another one, is the likeliest.
    Connection::Handshake& handshake = connection->handshake();
    if (!handshake.hint.has_value()) ++context_.counters.rx_forged;
    handshake.hint = reason;
    handshake.hint_detail = detail + " (says an answer that was not made with our key)";
    return;
  }
  ++context_.counters.handshakes_refused;
  connection->Finish(reason, OperationStatus::kConnectionClosed, false, detail, now);
  After(connection, now);
}

void Endpoint::Impl::RefuseVersion(uint32_t port, std::span<const uint8_t> body, const RxSegment& segment) {
  wire::Reader reader(body);
  const uint32_t client_connection = reader.U32();
  reader.U32();
  const uint64_t nonce = reader.U64();
  if (!reader.failed()) {
    ReplyRefuse(port, *segment.source, client_connection, nonce, CloseReason::kRefusedVersion, nullptr);
  }
}

// A request is good once: while its cookie is, it is remembered beyond the end of its connection.
void Endpoint::Impl::ForgetSpentRequests(Time now) {
  while (!spent_requests_.empty() &&
         (spent_requests_.front().second <= now || spent_requests_.size() > kMaxSpentRequests)) {
    requests_.erase(spent_requests_.front().first);
    spent_requests_.pop_front();
  }
}

Endpoint::Impl::Reply* Endpoint::Impl::NewReply(uint32_t port, const LaneAddress& address) {
  if (replies_.size() >= kMaxReplies) return nullptr;
  Reply& reply = replies_.emplace_back();
  reply.port = port;
  reply.address = address;
  return &reply;
}

void Endpoint::Impl::ReplyRefuse(uint32_t port, const LaneAddress& address, ConnectionId peer_connection,
                                 uint64_t nonce, CloseReason reason, const crypto::Secret* init_digest) {
  ++context_.counters.handshakes_refused;
  Reply* reply = NewReply(port, address);
  if (reply == nullptr) return;
  const wire::RefusePacket packet{.client_nonce = nonce,
                                  .reason = static_cast<uint16_t>(reason),
                                  .version = wire::kVersion,
                                  .tagged = identity_.has_value() && init_digest != nullptr};
  reply->size = wire::EncodeRefuse(packet, peer_connection, reply->bytes);
  if (!packet.tagged) return;
  const std::span<uint8_t> whole = std::span(reply->bytes).first(reply->size);
  wire::PlaceTag(whole, identity_->TagRefuse(wire::SignedBytes(wire::BodyOf(whole)), *init_digest));
}

void Endpoint::Impl::ReleaseReplyPeers() {
  for (const auto& [port, peer] : reply_peers_) context_.environment->ClosePeer(port, peer);
  reply_peers_.clear();
}

}  // namespace paceline
