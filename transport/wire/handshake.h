// Connection set-up packets: kInit (client; first without, then with the cookie), kCookie (server; keeps no state),
// kAccept (server), kRefuse (server). Behind the common header:
//
//  kInit:   client connection(32) | options(32) | client nonce(64) | listener nonce(64) | cookie(16 bytes, zero at
//  first)
//           hello
//  kCookie: client nonce(64) | cookie(16 bytes)
//  kAccept: client nonce(64) | server connection(32) | options(32) | hello
//  kRefuse: client nonce(64) | reason(16) | server version(8) | reserved(8)
//  hello:   segment bytes(32) | features(32) | ports(8) | algorithm name length(8) | reserved(16) | name
//           then per port: address size(8) | address
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
#include "transport/wire/byte_order.h"

namespace paceline::wire {

using Cookie = std::array<uint8_t, 16>;

// Features, a bit each; a side must not use one that the other has not offered. None is needed to talk.
enum Feature : uint32_t {
  kFeaturePayloadCrc = 1,       // payload checksums wanted
  kFeatureRemotePlacement = 2,  // all ports are lanes with remote placement
};

struct Hello {
  uint32_t segment_bytes = 0;
  uint32_t features = 0;
  std::string algorithm;  // at most 32 bytes
  uint8_t ports = 0;
  std::array<LaneAddress, limits::kMaxPorts> addresses{};
};

struct InitPacket {
  uint32_t client_connection = 0;
  uint64_t client_nonce = 0;
  uint64_t listener_nonce = 0;
  Cookie cookie{};
  Hello hello;
};
struct CookiePacket {
  uint64_t client_nonce = 0;
  Cookie cookie{};
};
struct AcceptPacket {
  uint64_t client_nonce = 0;
  uint32_t server_connection = 0;
  Hello hello;
};
struct RefusePacket {
  uint64_t client_nonce = 0;
  uint16_t reason = 0;  // CloseReason
  uint8_t version = 0;  // of the server
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

}  // namespace paceline::wire
