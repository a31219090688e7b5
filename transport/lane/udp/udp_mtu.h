// What headers leave of an interface's MTU, for lanes whose packets are UDP datagrams.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "transport/lane/udp/udp_interfaces.h"

namespace paceline {

inline constexpr uint32_t kJumboMtu = 9216;  // bytes of an IP packet: jumbo frames as switches know them

inline constexpr uint32_t kEthernetOverhead = 38;  // bytes on the wire: header, checksum, preamble and gap

// Bytes of the IP and UDP headers of a packet from `address`.
uint32_t UdpOverhead(const SocketAddress& address);

// Bytes of the largest IP packet: `wanted`, from what IP demands of every link (RFC 791, RFC 8200) to `most`; or
// `usual` when `wanted` is 0. The error names the interface and what it may be.
absl::StatusOr<uint32_t> ChooseMtu(const UdpBindPoint& point, uint32_t wanted, uint32_t usual, uint32_t most);

}  // namespace paceline
