// Measurements of many ranks in which everybody sends to a fixed set of others: all-to-all, incast (all to rank 0) and
// permutation (each to one other, drawn from the seed).
//
// An all-to-all is a collective operation: a rank begins the next one when its sends and receives of the last are done,
// and `operation` holds the time of each. Incast and permutation are streams: a rank keeps its window full. Receives
// are posted ahead in both. `latency` is per message, from the post to the sender's completion.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/perf/result.h"
#include "tools/perf/session.h"
#include "tools/perf/spec.h"

namespace paceline::tools {

// To whom each rank sends, in its order.
std::vector<std::vector<uint32_t>> ExchangeTargets(const std::string& kind, uint32_t world, uint64_t seed);

// Messages outstanding per rank when the user names no window.
uint32_t DefaultExchangeWindow(const std::string& kind);

absl::StatusOr<RankResult> RunExchangeTest(Session& session, const TestSpec& spec, uint64_t size);

}  // namespace paceline::tools
