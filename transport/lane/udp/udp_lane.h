// The UDP lane: kernel UDP sockets on one address of one interface. Needs no privilege; works wherever UDP does.
// docs/lanes/udp.md explains it for users and has the measurements.
//
// One bound socket receives. Segments leave by `tx_sockets` sockets of the same address: a source port each, so that
// switches which hash ports (ECMP) take as many routes; entropy e is socket e, and entropy 0 the bound one.
//
// Thread rule: Lane's. CreateUdpLane may be called anywhere; the lane then belongs to one engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "transport/base/time.h"
#include "transport/lane/lane.h"

namespace paceline {

struct UdpLaneOptions {
  // "192.0.2.1:0", "[fd00::2]:4791", "eth0" or "eth0:4791"; port 0 or none: any free one. Must not be empty or 0.0.0.0.
  std::string bind_address;
  uint16_t tx_sockets = 8;          // source ports, each an entropy; 1 to 1024
  bool gso = true;                  // UDP_SEGMENT where the kernel has it
  bool gro = true;                  // UDP_GRO where the kernel has it
  bool ecn = true;                  // send ECT(0) for segments that ask for it, see marks
  bool timestamps = true;           // arrival times from the kernel
  bool bind_to_device = false;      // SO_BINDTODEVICE: for several interfaces in one subnet
  size_t send_buffer = 1 << 20;     // bytes; beyond net.core.wmem_max only with CAP_NET_ADMIN
  size_t receive_buffer = 8 << 20;  // bytes; beyond net.core.rmem_max only with CAP_NET_ADMIN
  uint32_t mtu = 0;                 // bytes of the largest IP packet; 0: the interface's, at most 9,216 (16,384 on lo)
  Rate link_rate;                   // zero: as the driver of a physical interface states it
  uint8_t traffic_class = 0;        // of every packet; the two lowest bits are ECN's and are not taken from here
};

// Fails with a message that names what was wrong and what it may be: malformed or foreign address (InvalidArgument,
// NotFound), interface without address (FailedPrecondition), port in use (AlreadyExists), privileged port
// (PermissionDenied), number out of range (InvalidArgument).
absl::StatusOr<std::unique_ptr<Lane>> CreateUdpLane(const UdpLaneOptions& options);

}  // namespace paceline
