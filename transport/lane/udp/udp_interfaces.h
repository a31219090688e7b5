// The network interfaces of this machine (of this network namespace), as the UDP lane and `paceline info` see them.
//
// Read by rtnetlink and ethtool calls rather than from /sys, which may show another network namespace than ours.
//
// Thread rule: pure functions that ask the kernel; control path only (they allocate).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/time.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {

struct UdpInterface {
  std::string name;
  uint32_t index = 0;
  uint32_t mtu = 0;  // bytes of an IP packet
  bool up = false;   // administratively up and with a carrier
  bool loopback = false;
  bool is_virtual = false;               // no device of its own behind it: lo, veth, tun, bridge, bond, vlan, ...
  Rate speed;                            // zero when not known; never known for virtual ones
  uint64_t hardware_address = 0;         // its first eight bytes, as a number; 0: it has none
  std::vector<SocketAddress> addresses;  // port 0; IPv4 first, then IPv6 with link-local ones last
  std::vector<uint32_t> prefix_bits;     // of each address
};

absl::StatusOr<std::vector<UdpInterface>> ListUdpInterfaces();

// Whether packets to this address come in by the interface: one of its own addresses or, on a loopback, any of a
// prefix. Ports do not matter; of a link-local address the scope does, unless it is 0.
bool Carries(const UdpInterface& interface, const SocketAddress& wanted);

// What a lane binds to: an address of an interface.
struct UdpBindPoint {
  UdpInterface interface;
  SocketAddress address;  // with port (0: the kernel chooses) and, for link-local ones, scope
};

// Resolves "192.0.2.1:0", "[fd00::2]:4791", "eth0" or "eth0:4791" (the interface's first address). The error names what
// was wrong and what there is instead.
absl::StatusOr<UdpBindPoint> ResolveBindAddress(const std::string& text);

}  // namespace paceline
