#include <algorithm>

#include "transport/core/endpoint_impl.h"

namespace paceline {
namespace {

constexpr size_t kMaxReplies = 256;  // answers to strangers that wait to be sent

}  // namespace

wire::Hello Endpoint::Impl::OurHello() const {
  wire::Hello hello;
  hello.segment_bytes = ~0u;
  for (const Port& port : context_.ports) {
    hello.segment_bytes = std::min(hello.segment_bytes, port.info.segment_bytes);
    hello.addresses[hello.ports++] = port.address;
  }
  hello.features = context_.options.payload_checksum ? wire::kFeaturePayloadCrc : 0u;
  hello.algorithm = context_.options.congestion_control;
  return hello;
}

void Endpoint::Impl::HandleInit(uint32_t port, std::span<const uint8_t> body, const LaneAddress& source, Time now) {
  const auto init = wire::ParseInit(body);
  if (!init.has_value()) {
    ++context_.counters.rx_malformed;
    return;
  }
  if (init->cookie == wire::Cookie{} || !cookies_.Check(*init, source, now)) {
    const wire::CookiePacket answer{.client_nonce = init->client_nonce, .cookie = cookies_.Make(*init, source, now)};
    Reply* reply = NewReply(port, source);
    if (reply != nullptr) reply->size = wire::EncodeCookie(answer, init->client_connection, reply->bytes);
    return;
  }
  const auto key = std::make_pair(init->client_nonce, init->client_connection);
  if (const auto known = requests_.find(key); known != requests_.end()) {
    Connection* connection = Find(known->second);
    if (connection != nullptr && connection->state() == Connection::State::kEstablished) SendAccept(connection);
    return;
  }
  const auto refuse = [&](CloseReason reason) {
    ReplyRefuse(port, source, init->client_connection, init->client_nonce, reason);
  };
  const auto listener = listener_by_nonce_.find(init->listener_nonce);
  if (listener == listener_by_nonce_.end()) return refuse(CloseReason::kRefusedNoListener);
  if (init->hello.algorithm != context_.options.congestion_control) return refuse(CloseReason::kRefusedMismatch);
  if (init->hello.segment_bytes == 0) {
    ++context_.counters.rx_malformed;
    return;
  }
  Connection* connection = pending_requests_ >= limits::kMaxPendingAccepts ? nullptr : NewConnection();
  if (connection == nullptr) return refuse(CloseReason::kRefusedFull);
  requests_[key] = connection->id();
  ++pending_requests_;
  connection->StartRequested(*init, listener->second, now);
  After(connection, now);
}

void Endpoint::Impl::SendAccept(Connection* connection) {
  Reply* reply = NewReply(0, LaneAddress{});
  if (reply == nullptr) return;
  const wire::AcceptPacket accept{
      .client_nonce = connection->nonce(), .server_connection = connection->id(), .hello = OurHello()};
  reply->connection = connection->id();
  reply->size = wire::EncodeAccept(accept, connection->peer().peer_connection, reply->bytes);
}

void Endpoint::Impl::HandleCookie(ConnectionId id, std::span<const uint8_t> body, Time now) {
  const auto packet = wire::ParseCookie(body);
  Connection* connection = Find(id);
  if (!packet.has_value() || connection == nullptr || connection->nonce() != packet->client_nonce) return;
  connection->OnCookie(packet->cookie, now);
  After(connection, now);
}

void Endpoint::Impl::HandleAccept(ConnectionId id, std::span<const uint8_t> body, Time now) {
  const auto packet = wire::ParseAccept(body);
  Connection* connection = Find(id);
  if (!packet.has_value() || connection == nullptr || connection->nonce() != packet->client_nonce ||
      connection->state() != Connection::State::kConnecting || packet->hello.segment_bytes == 0) {
    return;
  }
  EstablishedPeer peer;
  peer.peer_connection = packet->server_connection;
  peer.addresses.assign(packet->hello.addresses.begin(), packet->hello.addresses.begin() + packet->hello.ports);
  peer.segment_bytes = packet->hello.segment_bytes;
  const bool crc = context_.options.payload_checksum || (packet->hello.features & wire::kFeaturePayloadCrc) != 0;
  connection->Establish(peer, crc, now);
  After(connection, now);
}

void Endpoint::Impl::HandleRefuse(ConnectionId id, std::span<const uint8_t> body, Time now) {
  const auto packet = wire::ParseRefuse(body);
  Connection* connection = Find(id);
  if (!packet.has_value() || connection == nullptr || connection->nonce() != packet->client_nonce ||
      connection->state() != Connection::State::kConnecting) {
    return;
  }
  ++context_.counters.handshakes_refused;
  auto reason = static_cast<CloseReason>(packet->reason);
  std::string detail(CloseReasonName(reason));
  if (detail == "?") reason = CloseReason::kRefusedByApplication;
  if (reason == CloseReason::kRefusedVersion) {
    detail = "the peer speaks protocol version " + std::to_string(packet->version) + ", we speak version " +
             std::to_string(wire::kVersion);
  } else if (reason == CloseReason::kRefusedMismatch) {
    detail =
        "the peer runs another congestion-control algorithm than our '" + context_.options.congestion_control + "'";
  }
  connection->Finish(reason, OperationStatus::kConnectionClosed, false, detail, now);
  After(connection, now);
}

void Endpoint::Impl::RefuseVersion(uint32_t port, std::span<const uint8_t> body, const RxSegment& segment, Time now) {
  (void)now;
  wire::Reader reader(body);
  const uint32_t client_connection = reader.U32();
  reader.U32();
  const uint64_t nonce = reader.U64();
  if (!reader.failed()) ReplyRefuse(port, *segment.source, client_connection, nonce, CloseReason::kRefusedVersion);
}

Endpoint::Impl::Reply* Endpoint::Impl::NewReply(uint32_t port, const LaneAddress& address) {
  if (replies_.size() >= kMaxReplies) return nullptr;
  Reply& reply = replies_.emplace_back();
  reply.port = port;
  reply.address = address;
  return &reply;
}

void Endpoint::Impl::ReplyRefuse(uint32_t port, const LaneAddress& address, ConnectionId peer_connection,
                                 uint64_t nonce, CloseReason reason) {
  ++context_.counters.handshakes_refused;
  Reply* reply = NewReply(port, address);
  if (reply == nullptr) return;
  const wire::RefusePacket packet{
      .client_nonce = nonce, .reason = static_cast<uint16_t>(reason), .version = wire::kVersion};
  reply->size = wire::EncodeRefuse(packet, peer_connection, reply->bytes);
}

void Endpoint::Impl::ReleaseReplyPeers() {
  for (const auto& [port, peer] : reply_peers_) context_.environment->ClosePeer(port, peer);
  reply_peers_.clear();
}

}  // namespace paceline
