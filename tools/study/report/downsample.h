// Making recorded series small enough for a page without losing what one looks for in them.
//
// Who calls it: the report only; pure functions, any thread. Pairs with a value that is not finite are left out, and a
// series whose two lists differ in length counts as far as the shorter one.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/study/report/report.h"

namespace paceline::tools {

// Keeps the lowest and the highest value of each stretch (for queues: no peak is lost), first and last point included.
TimeSeries KeepPeaks(const TimeSeries& series, size_t max_points);

// Replaces each stretch by its mean, at the stretch's middle (for rates: no byte is lost).
TimeSeries KeepMeans(const TimeSeries& series, size_t max_points);

// A cumulative distribution: fractions[i] of all values are at most values[i]. Both ascend.
struct Distribution {
  std::vector<double> values;
  std::vector<double> fractions;
  size_t count = 0;  // how many values it was made from
};

// With more values than points, half of the points are spread evenly and half lie ever denser towards the largest
// value, so that p99 and p99.9 stay right.
Distribution MakeDistribution(std::vector<double> values, size_t max_points);

// The value that `fraction` of the ascending values do not exceed (nearest rank); 0 for an empty list.
double Quantile(const std::vector<double>& ascending, double fraction);

}  // namespace paceline::tools
