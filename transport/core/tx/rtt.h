// Round-trip time: smoothed, variation and least, as RFC 6298 with the gains of section 2, samples already without the
// receiver's delay. One sample raises the average by its own amount at most, so that a pause of a process or a leap of
// a clock is soon forgotten.
//
// The least is that of the path: of the last two windows of ten seconds, so that a changed route is noticed. Where it
// becomes much longer at once (kMuchLonger, for eight round trips), the least follows within sixteen.
#pragma once

#include <algorithm>
#include <cstdint>

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
      StartRecent(now);
      return;
    }
    const Duration counted = std::min(rtt, smoothed_ * 9);
    const Duration error = counted > smoothed_ ? counted - smoothed_ : smoothed_ - counted;
    variation_ = (variation_ * 3 + error) / 4;
    smoothed_ = (smoothed_ * 7 + counted) / 8;
    if (now - window_start_ > kWindow) {
      previous_least_ = least_;
      least_ = rtt;
      window_start_ = now;
    }
    least_ = std::min(least_, rtt);
    FollowRecent(rtt, now);
  }

  bool measured() const { return !window_start_.is_never(); }
  Duration smoothed() const { return smoothed_; }
  Duration variation() const { return variation_; }
  Duration least() const { return std::min(least_, previous_least_); }

 private:
  static constexpr Duration kLongest = Duration::Seconds(2);  // longer: a clock has leapt, or a process stood still
  static constexpr Duration kWindow = Duration::Seconds(10);
  static constexpr int kRecentRounds = 8, kRecentSamples = 4;
  static constexpr int64_t kMuchLonger = 3;
  static constexpr Duration kHostDelay = Duration::Micros(500);  // for so long a busy host alone may delay all

  void StartRecent(Time now) {
    recent_start_ = now;
    recent_least_ = kLongest;
    recent_samples_ = 0;
  }
  void FollowRecent(Duration rtt, Time now) {
    recent_least_ = std::min(recent_least_, rtt);
    recent_samples_ = std::min(recent_samples_ + 1, kRecentSamples);
    if (recent_samples_ < kRecentSamples || now - recent_start_ < recent_least_ * kRecentRounds) return;
    if (recent_least_ > least() * kMuchLonger + kHostDelay) least_ = previous_least_ = recent_least_;
    StartRecent(now);
  }

  Duration smoothed_, variation_, least_, previous_least_;
  Time window_start_ = Time::Never();  // until the first sample
  Time recent_start_;
  Duration recent_least_;
  int recent_samples_ = 0;
};

}  // namespace paceline
