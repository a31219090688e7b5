// The throughput part of a measurement between two ranks: one side (or both) keeps a window of operations under way,
// the other posts its receives ahead and counts what comes. Also used, with contents, to verify payloads.
//
// Slots: the window is an array of equal slots of memory on each side; operation k uses the slot that became free
// first, and writes and reads use the slot of the same number at the peer.
//
// The end: the side that starts operations sends a last message with their number; the other ends when it has them all,
// and cancels the receives that are left.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/perf/result.h"
#include "tools/perf/session.h"
#include "transport/base/time.h"

namespace paceline::tools {

enum class PairOp { kSend, kWrite, kWriteImmediate, kRead, kAtomic };
absl::StatusOr<PairOp> ParsePairOp(const std::string& name);

// Memory of both sides of a pair.
struct PairMemory {
  uint32_t window = 0;  // slots
  uint64_t size = 0;    // bytes of a message
  uint64_t stride = 0;  // bytes from slot to slot
  Block tx, rx;         // own slots: what is sent (and read by the peer), what is received into (and written to)
  api::RegionId tx_region = 0, rx_region = 0;
  api::RemoteMemory peer_tx, peer_rx;

  uint8_t* tx_slot(uint64_t slot) const { return tx.data() + slot * stride; }
  uint8_t* rx_slot(uint64_t slot) const { return rx.data() + slot * stride; }
};

struct StreamPlan {
  PairOp op = PairOp::kSend;
  uint32_t peer = 0;
  bool active = false;   // starts operations
  bool passive = false;  // the peer starts operations
  uint64_t target = 0;   // operations to start; 0: until `length` has passed, or, open loop, all that are due before
  Duration length;
  double bits_per_second = 0;   // open loop; 0: closed loop
  bool verify = false;          // fill and check payloads; for writes target must not exceed the window
  uint64_t phase = 0;           // keeps the messages of one stream apart from those of another
  uint64_t atomics_before = 0;  // verify: value of the peer's word when the stream begins
  // Called about every `interval` with seconds since the start, operations and bytes so far.
  Duration interval = Duration::Infinite();
  std::function<void(double, uint64_t, uint64_t)> report;
};

struct StreamResult {
  uint64_t started = 0;      // operations that this side started and saw completed
  uint64_t not_started = 0;  // open loop: due within `length`, but held up until twice that had passed
  uint64_t arrived = 0;  // operations of the peer that were seen here (send, write_imm) or told (write, read, atomic)
  double seconds = 0;    // until the last completion of an operation of this side, or the last arrival
  Histogram latency;     // post (or, open loop, the time it was due) to completion, nanoseconds
  bool verified = true;
  uint64_t checked_bytes = 0;
};

absl::StatusOr<StreamResult> RunStream(Session& session, PairMemory& memory, const StreamPlan& plan);

}  // namespace paceline::tools
