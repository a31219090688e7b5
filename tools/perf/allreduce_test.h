// All-reduce of many ranks over send and receive, as a ring: the sum of 32-bit integers, size bytes on each rank. N - 1
// steps that add, N - 1 steps that pass the sums on; each step sends a part of size / N to the next rank.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "tools/perf/result.h"
#include "tools/perf/session.h"
#include "tools/perf/spec.h"

namespace paceline::tools {

absl::StatusOr<RankResult> RunAllreduceTest(Session& session, const TestSpec& spec, uint64_t size);

}  // namespace paceline::tools
