// What a net_af_packet port carries. Its driver says 1500 bytes whatever the interface below it has, and drops or cuts
// without a word what does not fit.
//
// Source: Linux net/packet/af_packet.c (tpacket_rcv), packet_mmap.rst; DPDK 22.11, drivers/net/af_packet.
//
// Thread rule: control path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace paceline {

struct AfPacketRoom {
  std::string interface;       // of the kernel
  uint32_t interface_mtu = 0;  // bytes of an IP packet
  uint32_t frame_bytes = 0;    // of a frame's place in the ring (the driver's framesz=), headers of the ring included

  // Bytes of the largest IP packet that a frame's place holds, and that is sent and received whole.
  uint32_t frame_mtu() const;
  uint32_t mtu() const { return std::min(interface_mtu, frame_mtu()); }
};

// `interface_index`: of the interface, in the network namespace of the calling thread. `arguments`: the driver's, as
// "iface=v0,framesz=4096".
absl::StatusOr<AfPacketRoom> AskAfPacket(unsigned interface_index, std::string_view arguments);

}  // namespace paceline
