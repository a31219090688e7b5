// The shm lane: shared memory between processes of one host and one user. docs/lanes/shm.md explains it for users, says
// what flows where and has the measurements.
//
// To each peer goes a ring of its own (shm_ring.h), made by the sender and offered over a unix socket (shm_socket.h).
// Packets are copied in once and out once, the second time by the core to where the payload belongs. A full ring is
// told by RoomTo and holds up nobody but its own peer; nothing is lost but what a peer that has ended did not read.
//
// Thread rule: Lane's. CreateShmLane may be called anywhere; the lane then belongs to one engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "transport/base/time.h"
#include "transport/lane/lane.h"

namespace paceline {

struct ShmLaneOptions {
  uint64_t ring_bytes = 1 << 20;      // towards each peer; a power of two, 64 KiB to 64 MiB, at least 4 packets
  uint32_t max_packet_bytes = 32768;  // header and payload; 2 KiB to 1 MiB
  Rate link_rate;                     // zero: 400 Gb/s, more than a core copies
};

// Fails with a message that says what is missing (memory without a name, unix sockets), or which option is out of
// range.
absl::StatusOr<std::unique_ptr<Lane>> CreateShmLane(const ShmLaneOptions& options);

// Whether such lanes work here; if not, the status says why.
absl::Status CheckShmLane();

}  // namespace paceline
