// The verbs lane: one port of an RDMA card, driven through libibverbs. docs/lanes/verbs.md explains it for users and
// says what flows where.
//
// Packets travel as datagrams (UD). Writes travel on queue pairs of their own, one for each path (UC, or RC by option),
// as RDMA writes with immediate, and the card on the other side places them. In a build without the headers of
// libibverbs all of this answers that it is not there.
//
// Thread rule: Lane's. The functions may be called anywhere; a lane then belongs to one engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/time.h"
#include "transport/lane/lane.h"

namespace paceline {

class VerbsCalls;

inline constexpr uint32_t kMostVerbsEntropies = 64;

struct VerbsLaneOptions {
  std::string device;      // "mlx5_0" or "mlx5_0:1"
  bool reliable = false;   // RC instead of UC: the card sends again by itself
  uint32_t entropies = 8;  // paths to one peer, 1 to 64
  uint32_t mtu = 0;        // bytes of payload in a packet, 256 to 4096; 0: the port's
  Rate link_rate;          // zero: as the card states it
  // Of the IP header or the GRH of every packet and write; the two lowest bits are ECN's and are not taken from here.
  uint8_t traffic_class = 0;
};

// The error names the device or option at fault and what there is instead. `calls`: nullptr: libibverbs.
absl::StatusOr<std::unique_ptr<Lane>> CreateVerbsLane(const VerbsLaneOptions& options, VerbsCalls* calls = nullptr);

// Whether such lanes work here; if not, the status says why.
absl::Status CheckVerbsLane();

// A port, for people.
struct VerbsPortInfo {
  std::string name;             // "mlx5_0:1"
  std::string link;             // "Ethernet" or "InfiniBand"
  std::string address;          // its GID, as an IP address
  Rate rate;                    // zero when not known
  uint32_t mtu = 0;             // bytes of payload in a packet
  int numa_node = -1;           // -1: not known
  uint32_t number = 1;          // of its card's ports
  uint64_t guid = 0;            // of the card, the same for all its ports; 0: not known
  std::string sysfs;            // folder of the card; empty: there is none behind it
  std::string reason;           // why it cannot be used; empty when it can
  std::string dma_buf_problem;  // why its card takes no memory of GPUs by dma-buf; empty when it does
};
std::vector<VerbsPortInfo> ListVerbsLanePorts();

}  // namespace paceline
