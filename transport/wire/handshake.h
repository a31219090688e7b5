// Connection set-up packets: kInit (client; first without, then with the cookie), kCookie (server; keeps no state),
// kAccept (server), kRefuse (server). Behind the common header:
//
//  kInit:   client connection(32) | options(32) | client nonce(64) | listener nonce(64) | cookie(16 bytes, zero at
//  first)
//           hello | credentials
//  kCookie: client nonce(64) | cookie(16 bytes)
//  kAccept: client nonce(64) | server connection(32) | options(32) | hello | credentials
//  kRefuse: client nonce(64) | reason(16) | server version(8) | flags(8) | tag(16 bytes, with flag bit 0)
//  hello:   segment bytes(32) | features(32) | ports(8) | algorithm name length(8) | private data length(8) | zero(8)
//           | name | then per port: address size(8) | address | then private data
//  credentials: with kFeatureProtected only: public key(32 bytes) | tag(16 bytes)
//
// Behind the header of an Init or a Cookie there may be padding, which is counted and not read (docs/protocol.md, "Path
// MTU"): it is no part of the body.
//
// `segment bytes` and `features` are what the sender of the packet can do or wants. Both sides use the smaller
// segments; payload checksums are on when either side wants them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "transport/base/lane_address.h"
#include "transport/base/limits.h"
#include "transport/base/private_data.h"
#include "transport/wire/byte_order.h"

namespace paceline::wire {

using Cookie = std::array<uint8_t, 16>;

// Features, a bit each; a side must not use one that the other has not offered. None is needed to talk.
enum Feature : uint32_t {
  kFeaturePayloadCrc = 1,       // payload checksums wanted
  kFeatureRemotePlacement = 2,  // all ports are lanes with remote placement
  kFeatureProtected = 4,        // the sender has a cluster key: packets are authenticated; credentials follow
  kFeatureEncryption = 8,       // payloads shall be encrypted
  kFeatureAtomics = 16,         // the sender understands MessageKind::kAtomic
  kFeatureFences = 32,          // the sender answers FenceFrame
  kFeatureBundles = 64,         // the sender understands MessageKind::kBundle
  kFeatureFragments = 128,      // the sender takes fragments of segments
};

using HandshakeTag = std::array<uint8_t, 16>;

// What proves the sender of a handshake packet. The tag covers the packet's body up to itself.
struct Credentials {
  std::array<uint8_t, 32> public_key{};
  HandshakeTag tag{};
};
inline constexpr size_t kInitCookieAt = 24;  // in an Init's body

struct Hello {
  uint32_t segment_bytes = 0;
  uint32_t features = 0;
  std::string algorithm;  // at most 32 bytes
  uint8_t ports = 0;
  std::array<LaneAddress, limits::kMaxPorts> addresses{};
  PrivateData private_data;  // of the application that connects
};

struct InitPacket {
  uint32_t client_connection = 0;
  uint64_t client_nonce = 0;
  uint64_t listener_nonce = 0;
  Cookie cookie{};
  Hello hello;
  Credentials credentials;  // with kFeatureProtected
};
struct CookiePacket {
  uint64_t client_nonce = 0;
  Cookie cookie{};
};
struct AcceptPacket {
  uint64_t client_nonce = 0;
  uint32_t server_connection = 0;
  Hello hello;
  Credentials credentials;  // with kFeatureProtected
};
struct RefusePacket {
  uint64_t client_nonce = 0;
  uint16_t reason = 0;  // CloseReason
  uint8_t version = 0;  // of the server
  bool tagged = false;
  HandshakeTag tag{};
};

// `body`: the packet behind its common header. nullopt: malformed.
std::optional<InitPacket> ParseInit(std::span<const uint8_t> body);
std::optional<CookiePacket> ParseCookie(std::span<const uint8_t> body);
std::optional<AcceptPacket> ParseAccept(std::span<const uint8_t> body);
std::optional<RefusePacket> ParseRefuse(std::span<const uint8_t> body);

// Whole packets into `buffer` (at least limits::kMaxControlBytes); return their size. `connection`: the receiver's.
size_t EncodeInit(const InitPacket& packet, std::span<uint8_t> buffer);
size_t EncodeCookie(const CookiePacket& packet, uint32_t connection, std::span<uint8_t> buffer);
size_t EncodeAccept(const AcceptPacket& packet, uint32_t connection, std::span<uint8_t> buffer);
size_t EncodeRefuse(const RefusePacket& packet, uint32_t connection, std::span<uint8_t> buffer);

// What the tag of a packet that ends with one covers: `body` without its last bytes.
std::span<const uint8_t> SignedBytes(std::span<const uint8_t> body);
// The body of an encoded packet.
std::span<const uint8_t> BodyOf(std::span<const uint8_t> packet);
// Puts the tag into an encoded packet that ends with one.
void PlaceTag(std::span<uint8_t> packet, const HandshakeTag& tag);

}  // namespace paceline::wire
