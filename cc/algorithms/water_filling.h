// Max-min fair division of one capacity among demands with upper bounds: the level `lambda` at which
// sum_i min(bound_i, lambda) = capacity (Bertsekas and Gallager, "Data Networks", section 6.5.2).
//
// Thread rule: pure function, callable anywhere.
#pragma once

#include <vector>

namespace paceline {

// The level, or infinity when the bounds together do not reach `capacity` (or there are none). Bounds below zero count
// as zero; bounds may be infinite. Sorts `bounds`; O(n log n).
double WaterLevel(double capacity, std::vector<double>& bounds);

}  // namespace paceline
