#include "transport/wire/presence.h"

#include <algorithm>

namespace paceline::wire {

std::optional<PresencePacket> ParsePresence(std::span<const uint8_t> body) {
  Reader reader(body);
  PresencePacket packet;
  packet.connection = reader.U32();
  reader.U32();
  packet.token = reader.U64();
  packet.tagged = reader.remaining() > 0;
  if (packet.tagged) {
    const auto tag = reader.Bytes(packet.tag.size());
    std::copy(tag.begin(), tag.end(), packet.tag.begin());
  }
  if (reader.failed() || reader.remaining() != 0) return std::nullopt;
  return packet;
}

size_t EncodePresence(PacketType type, const PresencePacket& packet, uint32_t connection, std::span<uint8_t> buffer) {
  Writer writer(buffer);
  BeginPacket(writer);
  writer.U32(packet.connection);
  writer.U32(0);
  writer.U64(packet.token);
  if (packet.tagged) writer.Bytes(packet.tag);
  FinishPacket(buffer.first(writer.size()), type, 0, connection);
  return writer.size();
}

}  // namespace paceline::wire
