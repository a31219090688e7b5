// The latency part of a measurement between two ranks: one operation at a time, there and back.
//
//   send       both sides send; the reply leaves when the message has arrived
//   write_imm  the same with writes that tell the target
//   write      the same with plain writes: the target looks into its memory until every 512th byte and the last one
//   have
//              the new value (a packet never holds less, so all packets have arrived), as perftest does with the last
//   read, atomic   one side works on the other's memory; a sample is the whole operation
//
// Thread rule: one thread.
#pragma once

#include <cstdint>

#include "tools/perf/stream.h"

namespace paceline::tools {

struct PingPongPlan {
  PairOp op = PairOp::kSend;
  uint32_t peer = 0;
  bool initiator = false;
  uint64_t iterations = 0;  // 0: until `length` has passed
  Duration length;
  uint64_t phase = 0;
};

// The initiator's round trips in nanoseconds; on the other side empty, and `operations` says how many there were.
struct PingPongResult {
  Histogram round_trip;
  uint64_t operations = 0;
};

absl::StatusOr<PingPongResult> RunPingPong(Session& session, PairMemory& memory, const PingPongPlan& plan);

}  // namespace paceline::tools
