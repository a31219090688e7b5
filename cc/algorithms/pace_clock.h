// When the next piece of something paced is due: a point in time with a fraction of a nanosecond, so that pacing at
// 332.8 ns per packet does not lose a quarter of a per mille to rounding.
//
// Thread rule: a value; one owner at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/base/time.h"

namespace paceline {

class PaceClock {
 public:
  // Due from this time on (rounded up to the nanosecond).
  Time time() const { return Time::FromNanos(nanos_ + (fraction_ > 0 ? 1 : 0)); }

  // Not due before `floor`.
  void RaiseTo(Time floor) {
    if (nanos_ >= floor.nanos()) return;
    nanos_ = floor.nanos();
    fraction_ = 0;
  }

  // Later by `nanos` (0 or more; more than an hour counts as an hour, so that nothing overflows).
  void Advance(double nanos) {
    const double sum = fraction_ + std::min(nanos, 3.6e12);
    const auto whole = static_cast<int64_t>(sum);
    nanos_ += whole;
    fraction_ = sum - static_cast<double>(whole);
  }

 private:
  int64_t nanos_ = 0;
  double fraction_ = 0;
};

}  // namespace paceline
