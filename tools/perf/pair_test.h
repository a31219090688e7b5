// A measurement between two ranks at one size: warm-up, latency one at a time, throughput with a window (or an open
// loop), and then, outside the timed parts, the same with every byte checked. Rank 1 starts the operations; with
// `bidirectional` both do.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "tools/perf/result.h"
#include "tools/perf/session.h"
#include "tools/perf/spec.h"

namespace paceline::tools {

// Messages outstanding when the user names no window: 8 MiB worth of them, 4 to 64.
uint32_t DefaultPairWindow(uint64_t size);

absl::StatusOr<RankResult> RunPairTest(Session& session, const TestSpec& spec, uint64_t size);

}  // namespace paceline::tools
