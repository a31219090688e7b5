// What an xdp lane has to know of the interface that it is to have, and whether it can have it.
//
// Sources: Linux include/uapi/linux/ethtool.h; Documentation/ABI/testing/sysfs-class-net-queues.
//
// Thread rule: control path, but for CountReceiveQueues; asks the kernel, and may read /sys.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/lane/ethernet/frame.h"

namespace paceline {

struct XdpCard {
  MacAddress mac;
  bool ethernet = true;
  std::string driver;  // as the kernel names it: "mlx5_core", "veth", "bonding"
  // In use now, at least 1 each. Not always as many in both directions.
  uint32_t receive_queues = 1, transmit_queues = 1;
};

// The error names the interface: gone (the kernel's code), or queues that nobody can count (FailedPrecondition).
absl::StatusOr<XdpCard> AskXdpCard(const std::string& interface, uint32_t interface_index);

// Receive queues in use now, 0 where the driver does not tell. `socket`: any of the interface's network namespace. May
// wait for whoever else changes interfaces (the kernel's RTNL).
uint32_t CountReceiveQueues(int socket, const std::string& interface);

// Whether a lane can be made on it: no Ethernet (InvalidArgument), a bond, more than XDP_MAX_QUEUES receive queues
// (FailedPrecondition). The error names the interface and what to do.
absl::Status CheckXdpCard(const std::string& interface, const XdpCard& card);

}  // namespace paceline
