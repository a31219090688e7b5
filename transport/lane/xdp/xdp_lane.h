// The xdp lane: AF_XDP sockets on the receive queues of one Ethernet interface, past the kernel's protocol stack.
// docs/lanes/xdp.md explains it for users and has the measurements.
//
// On the wire it is UDP, as of the udp lane, and addresses are the same: the two kinds of lane reach each other. UDP
// sockets hold the ports, so that no other process gets them, and carry what is sent to a peer whose card is not known
// yet. All other traffic of the interface goes to the kernel as ever.
//
// Needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, libxdp and libbpf, and an interface without another XDP program. In a
// build without the headers of these libraries or without clang all of this answers that it is not there.
//
// Thread rule: Lane's. The functions may be called anywhere; a lane then belongs to one engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/time.h"
#include "transport/lane/lane.h"

namespace paceline {

struct XdpLaneOptions {
  // "eth0", "eth0:4791", "192.0.2.1:0" or "[fd00::2]:4791"; port 0 or none: any free one.
  std::string bind_address;
  uint16_t entropies = 8;  // source ports, each an entropy; 1 to 1024
  bool ecn = true;         // send ECT(0) for segments that ask for it, see marks
  bool driver = true;      // false: the kernel's generic code runs the program, also where the driver could
  uint32_t mtu = 0;        // bytes of the largest IP packet; 0: the interface's, at most 9,216, and at most 3,826 (one
                           // chunk of memory) where the kernel or the driver takes no frames of several
  Rate link_rate;          // zero: as the driver of a physical interface states it
  uint8_t traffic_class = 0;  // of every packet; the two lowest bits are ECN's and are not taken from here
};

// The error names what was wrong and what it may be: malformed or foreign address (InvalidArgument, NotFound), the
// loopback or no Ethernet interface (InvalidArgument), privilege (PermissionDenied), another XDP program there or a
// port in use (AlreadyExists), number out of range (InvalidArgument), locked memory (ResourceExhausted), libraries
// (Unavailable).
absl::StatusOr<std::unique_ptr<Lane>> CreateXdpLane(const XdpLaneOptions& options);

// Whether such lanes work here; if not, the status says why.
absl::Status CheckXdpLane();

}  // namespace paceline
