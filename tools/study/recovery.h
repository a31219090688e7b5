// How long a run takes to get over a fault: from each moment at which a fault begins or ends to the moment from which
// the hosts together receive at 95 % of the rate that they settle at.
//
//   rate      payload delivered in a window of one longest base round trip (at least one interval of the series)
//   settled   the median of these rates from the change to the next change, or to where 90 % of all payload of the run
//             has been delivered: flows that end one by one are no fault
//   dip       the first window below 95 % of the settled rate that starts within eight windows of the change
//   recovery  from the change to the start of the first window at or above 95 % behind the dip; 0 without a dip
// Nothing where fewer than eight windows lie between the change and the end of what counts, or the rate never returns.
//
// Thread rule: pure function. Times are nanoseconds from the start of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace paceline::tools {

struct Recovery {
  double at_us = 0;
  std::optional<double> recovery_us;
};

// `delivered`: bytes by interval; the first one begins at `first_ns`. `changes_ns`: ascending.
std::vector<Recovery> MeasureRecoveries(const std::vector<uint64_t>& delivered, int64_t interval_ns, int64_t first_ns,
                                        int64_t window_ns, const std::vector<int64_t>& changes_ns);

}  // namespace paceline::tools
