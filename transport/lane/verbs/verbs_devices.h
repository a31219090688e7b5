// The RDMA devices of this machine and their ports.
//
// Thread rule: functions without state; control path only (they ask the kernel and allocate).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/time.h"
#include "transport/lane/verbs/verbs_address.h"
#include "transport/lane/verbs/verbs_calls.h"

namespace paceline {

struct VerbsPort {
  std::string device;  // "mlx5_0"
  uint8_t number = 1;
  bool ethernet = true;
  bool active = false;
  uint32_t mtu = 0;  // bytes of payload in a packet: 256 to 4096
  Rate rate;         // zero when not known
  uint16_t lid = 0;
  bool has_gid = false;
  VerbsGid gid{};  // on Ethernet of type RoCE v2, an IPv4 one before others, link-local ones last
  uint8_t gid_index = 0;
  int numa_node = -1;           // -1: not known
  uint64_t guid = 0;            // of the card (sys_image_guid), the same for all its ports; 0: not known
  std::string sysfs;            // folder of the card behind the device; empty: none
  std::string dma_buf_problem;  // why the card takes no memory by dma-buf; empty when it does

  std::string name() const;    // "mlx5_0:1"
  std::string reason() const;  // why it cannot be used; empty when it can
};

// Every port of every device, in the library's order.
std::vector<VerbsPort> ListVerbsPorts(VerbsCalls& calls);

// What is known of one port of an open device.
VerbsPort LookAtVerbsPort(VerbsCalls& calls, ibv_context* context, const std::string& device, uint8_t number);

// Whether the port is active and still has the address that was found: the GID, where it stood, and on InfiniBand the
// LID.
bool IsVerbsPortAsFound(VerbsCalls& calls, ibv_context* context, const VerbsPort& found);

// The port that "mlx5_0" (its first that is usable, or its first) or "mlx5_0:1" names. The error says what there is.
absl::StatusOr<VerbsPort> FindVerbsPort(VerbsCalls& calls, const std::string& name);

// Opens a device by name; nullptr when it is gone or may not be opened.
ibv_context* OpenVerbsDevice(VerbsCalls& calls, const std::string& name);

}  // namespace paceline
