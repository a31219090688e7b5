#include "transport/core/endpoint_impl.h"
#include "transport/wire/presence.h"

namespace paceline {

void Endpoint::Impl::HandleAsk(uint32_t port, ConnectionId id, std::span<const uint8_t> body,
                               const LaneAddress& source) {
  const auto ask = wire::ParsePresence(body);
  if (!ask.has_value()) {
    ++context_.counters.rx_malformed;
    return;
  }
  if (const Connection* connection = Find(id); connection != nullptr) {
    // Not before both sides are: the asker may have been told of ours, and we not yet of his.
    const bool paired = connection->peer().peer_connection != kNoConnection;
    if (!paired || connection->peer().peer_connection == ask->connection) return;
  }
  ++context_.counters.rx_unknown_connection;
  const bool vouched = identity_.has_value()
                           ? ask->tagged && EqualTags(ask->tag, identity_->TagAsk(wire::SignedBytes(body)))
                           : !ask->tagged;
  if (!vouched) {
    ++context_.counters.rx_forged;
    return;
  }
  Reply* reply = NewReply(port, source);
  if (reply == nullptr) return;
  ++context_.counters.gones_sent;
  const wire::PresencePacket gone{.connection = id, .token = ask->token, .tagged = ask->tagged};
  reply->size = wire::EncodePresence(wire::PacketType::kGone, gone, ask->connection, reply->bytes);
  const std::span<uint8_t> packet = std::span(reply->bytes).first(reply->size);
  if (gone.tagged) wire::PlaceTag(packet, identity_->TagGone(wire::SignedBytes(wire::BodyOf(packet))));
}

void Endpoint::Impl::HandleGone(ConnectionId id, std::span<const uint8_t> body, Time now) {
  const auto gone = wire::ParsePresence(body);
  Connection* connection = Find(id);
  if (!gone.has_value()) {
    ++context_.counters.rx_malformed;
    return;
  }
  if (connection == nullptr) {
    ++context_.counters.rx_unknown_connection;
    return;
  }
  if (identity_.has_value() && (!gone->tagged || !EqualTags(gone->tag, identity_->TagGone(wire::SignedBytes(body))))) {
    ++context_.counters.rx_forged;
    return;
  }
  connection->HandleGone(*gone, now);
  After(connection, now);
}

size_t Endpoint::Impl::BuildAsk(Connection& connection, std::span<uint8_t> buffer) {
  ++context_.counters.asks_sent;
  wire::PresencePacket ask = connection.TakeAsk(secret_numbers_.Next());
  ask.tagged = identity_.has_value();
  const size_t size = wire::EncodePresence(wire::PacketType::kAsk, ask, connection.peer().peer_connection, buffer);
  const std::span<uint8_t> packet = buffer.first(size);
  if (ask.tagged) wire::PlaceTag(packet, identity_->TagAsk(wire::SignedBytes(wire::BodyOf(packet))));
  return size;
}

}  // namespace paceline
