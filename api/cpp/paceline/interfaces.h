// The network interfaces of this machine that a context can be bound to (ContextOptions::bind, lane "udp").
//
// Thread rule: free to call from anywhere; asks the operating system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "paceline/status.h"

namespace paceline::api {

struct Interface {
  std::string name;
  bool usable = false;  // up, with a carrier and an address
  bool loopback = false;
  bool is_virtual = false;  // no device of its own behind it: lo, veth, bridge, bond, vlan, ...
  uint32_t mtu = 0;         // bytes of an IP packet
  double gbps = 0;          // as the driver states it; 0: it states none
};

// In the kernel's order, usable or not.
Result<std::vector<Interface>> ListInterfaces();

}  // namespace paceline::api
