// How many rounds a measurement of many ranks takes: as given, or as many as are expected to fill the time, which rank
// 0 reckons from the warm-up and tells the others.
//
// Thread rule: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "tools/perf/session.h"
#include "tools/perf/spec.h"

namespace paceline::tools {

inline constexpr uint64_t kCollectiveWarmup = 10;  // rounds
inline constexpr uint64_t kCheckedRounds = 3;      // rounds with every byte checked, after the timed ones

inline absl::StatusOr<uint64_t> AgreeOnIterations(Session& session, const TestSpec& spec, uint64_t warm_rounds,
                                                  double warm_seconds) {
  if (spec.iterations != 0) return spec.iterations;
  const double one = std::max(warm_seconds / static_cast<double>(warm_rounds), 1e-6);
  const auto own = static_cast<uint64_t>(std::clamp(spec.seconds / one, 1.0, static_cast<double>(kMostIterations)));
  const auto all = session.rendezvous().AllGather(std::to_string(own));
  if (!all.ok()) return all.status();
  uint64_t agreed = 0;
  if (!absl::SimpleAtoi((*all)[0], &agreed) || agreed == 0)
    return absl::InternalError("rank 0 gave no number of rounds");
  return agreed;
}

}  // namespace paceline::tools
