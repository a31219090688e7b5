// Round-trip time: smoothed, variation and least, as RFC 6298 with the gains of section 2, samples already without the
// receiver's delay. The least is of the last two windows of ten seconds, so that a changed route is noticed. One sample
// raises the average by its own amount at most, so that a pause of a process or a leap of a clock is soon forgotten.
#pragma once

#include <algorithm>

#include "transport/base/time.h"

namespace paceline {

class RttEstimator {
 public:
  explicit RttEstimator(Duration assumed)
      : smoothed_(assumed), variation_(assumed / 2), least_(assumed), previous_least_(assumed) {}

  void OnSample(Duration rtt, Time now) {
    if (rtt <= Duration() || rtt > kLongest) return;
    if (!measured()) {
      smoothed_ = rtt;
      variation_ = rtt / 2;
      least_ = previous_least_ = rtt;
      window_start_ = now;
      return;
    }
    rtt = std::min(rtt, smoothed_ * 9);
    const Duration error = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
    variation_ = (variation_ * 3 + error) / 4;
    smoothed_ = (smoothed_ * 7 + rtt) / 8;
    if (now - window_start_ > kWindow) {
      previous_least_ = least_;
      least_ = rtt;
      window_start_ = now;
    }
    least_ = std::min(least_, rtt);
  }

  bool measured() const { return !window_start_.is_never(); }
  Duration smoothed() const { return smoothed_; }
  Duration variation() const { return variation_; }
  Duration least() const { return std::min(least_, previous_least_); }

 private:
  static constexpr Duration kLongest = Duration::Seconds(2);  // longer: a clock has leapt, or a process stood still
  static constexpr Duration kWindow = Duration::Seconds(10);
  Duration smoothed_, variation_, least_, previous_least_;
  Time window_start_ = Time::Never();  // until the first sample
};

}  // namespace paceline
