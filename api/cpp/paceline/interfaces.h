// What a context of this machine can be bound to (ContextOptions::bind): network interfaces, or ports of RDMA cards.
//
// Thread rule: free to call from anywhere; asks the operating system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "paceline/status.h"

namespace paceline::api {

struct Interface {
  std::string name;     // as ContextOptions::bind takes it: "eth0", "mlx5_0:1"
  bool usable = false;  // up, with a carrier and an address
  bool loopback = false;
  bool is_virtual = false;  // no device of its own behind it: lo, veth, bridge, bond, vlan, ...
  uint32_t mtu = 0;         // bytes of an IP packet; lane "verbs": of its payload
  double gbps = 0;          // as the driver states it; 0: it states none
  uint32_t port = 0;        // which of its card's ports, from 1; 0: they are not numbered
  uint64_t guid = 0;        // of the card, the same in every process; 0: not known
  std::string sysfs;        // folder of the card; empty: there is none behind it
  bool places = false;      // its card reads and writes memory by itself
  // Of such a card: why it takes no memory of GPUs by dma-buf; empty when it does.
  std::string dma_buf_problem;
};

// Those of a lane (ContextOptions::lane), in the system's order, usable or not: "verbs": the ports of RDMA cards, every
// other one: the network interfaces. Fails where there is none, with the reason.
Result<std::vector<Interface>> ListInterfaces(const std::string& lane = "udp");

}  // namespace paceline::api
