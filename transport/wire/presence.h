// Whether the other side still has a connection: kAsk (of who hears nothing), kGone (of who has no such connection).
// Behind the common header, the same in both:
//
//  connection(32) | reserved(32) | token(64) | tag(16 bytes, with a cluster key)
//
// A kAsk names the asker's own number, a kGone the number that was asked about; as in every packet, the common header
// has the receiver's. A kGone repeats the token, and is never longer than the kAsk that it answers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "transport/wire/handshake.h"
#include "transport/wire/packet.h"

namespace paceline::wire {

struct PresencePacket {
  uint32_t connection = 0;
  uint64_t token = 0;
  bool tagged = false;
  HandshakeTag tag{};  // over the body up to itself (SignedBytes, PlaceTag)
};

// `body`: the packet behind its common header. nullopt: malformed.
std::optional<PresencePacket> ParsePresence(std::span<const uint8_t> body);

// A whole packet of type kAsk or kGone into `buffer` (at least limits::kMaxControlBytes); returns its size.
// `connection`: the receiver's.
size_t EncodePresence(PacketType type, const PresencePacket& packet, uint32_t connection, std::span<uint8_t> buffer);

}  // namespace paceline::wire
