#include "cc/algorithms/pull_core_loop.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr int kMostCatchUp = 64;    // intervals; after so many quiet ones the rate is back at the line
constexpr int kMostDoublings = 10;  // by then a step is more than the line

}  // namespace

void PullCoreLoop::Advance(Time now) {
  if (!started_) {
    started_ = true;
    next_ = now + interval_;
    return;
  }
  for (int i = 0; i < kMostCatchUp && next_ <= now; ++i) {
    Step();
    next_ = next_ + interval_;
  }
  if (next_ <= now) next_ = now + interval_;
}

void PullCoreLoop::Step() {
  const double fraction =
      packets_ > 0 ? static_cast<double>(std::min(marked_, packets_)) / static_cast<double>(packets_) : 0;
  packets_ = marked_ = 0;
  g_ += parameters_.gain * (fraction - g_);
  if (g_ > parameters_.target) {
    rate_ *= 1 - (g_ - parameters_.target) * parameters_.decrease;
    increases_ = 0;
  } else {
    const double doubled = fraction > 0 ? 1 : static_cast<double>(uint32_t{1} << increases_);
    rate_ += parameters_.step * doubled;
    increases_ = std::min(increases_ + 1, kMostDoublings);
  }
  rate_ = std::clamp(rate_, parameters_.floor, 1.0);
}

}  // namespace paceline
