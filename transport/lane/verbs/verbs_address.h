// Addresses of verbs lanes: where datagrams to a lane go.
//
//   byte 0        'v', which no address of another kind of lane begins with
//   bytes 1..16   GID of the port
//   bytes 17..19  number of its datagram QP
//   bytes 20..21  LID of the port; 0 on Ethernet
//   byte 22       1: InfiniBand, 2: Ethernet (RoCE v2)
//
// All numbers are big endian.
//
// Thread rule: pure functions, free to call from anywhere.
#pragma once

#include <array>
#include <cstdint>

#include "transport/base/lane_address.h"

namespace paceline {

using VerbsGid = std::array<uint8_t, 16>;

// On Ethernet: it stands for an IPv4 address (::ffff:a.b.c.d), and what travels to and from it has an IPv4 header.
bool IsIpv4(const VerbsGid& gid);

struct VerbsAddress {
  VerbsGid gid{};
  uint32_t qp_number = 0;  // 24 bits
  uint16_t lid = 0;
  bool ethernet = true;
  bool operator==(const VerbsAddress&) const = default;
};

LaneAddress ToLaneAddress(const VerbsAddress& address);
// False: an address of another kind.
bool ToVerbsAddress(const LaneAddress& address, VerbsAddress& verbs);

}  // namespace paceline
