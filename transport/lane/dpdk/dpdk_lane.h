// The dpdk lane: a port that DPDK drives, polled by the engine's thread, with an Ethernet, IP and UDP of its own.
// docs/lanes/dpdk.md explains it for users.
//
// The code that needs DPDK is a module of its own, libpaceline-dpdk.so, which is loaded when the first lane asks for
// it: one binary runs on machines with and without DPDK. In a build without DPDK's headers all of this answers that it
// is not there.
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

struct DpdkLaneOptions {
  // A lane each: a port's name or PCI address as DPDK writes it, what its driver takes behind it, and what is ours, see
  // ParseDpdkDevice: "0000:3b:00.0,address=192.0.2.1/24",
  // "net_memif0,role=server,socket=/run/a.sock,address=192.0.2.1". Empty: one end of a net_memif pair, see
  // OpenMemifPair.
  std::vector<std::string> devices;
  std::string eal_arguments;  // instead of, or beside those that EalArguments chooses; only the first lane starts EAL
  uint32_t mtu = 0;           // bytes of the largest IP packet; 0: the port's
  Rate link_rate;             // zero: as the driver of a physical port states it
  uint8_t traffic_class = 0;  // of every packet, but for its two ECN bits
};

// The error names the device, setting or package at fault and what may be done.
absl::StatusOr<std::vector<std::unique_ptr<Lane>>> CreateDpdkLanes(const DpdkLaneOptions& options);

// Whether such lanes can be made here; if not, the status says why. Does not start DPDK.
absl::Status CheckDpdkLane();

}  // namespace paceline
