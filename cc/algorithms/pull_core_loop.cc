#include "cc/algorithms/pull_core_loop.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr int kMostCatchUp = 64;    // intervals; after so many quiet ones the rate is back at the line
constexpr int kMostDoublings = 10;  // by then a step is more than the line

constexpr double kLeastRate = 0.01;

}  // namespace

PullCoreLoop::PullCoreLoop(const PullCoreLoopParameters& parameters, Duration rtt, double oversubscription,
                           uint64_t seed)
    : parameters_(parameters),
      rtt_(rtt),
      floor_(std::min(1.0, std::max(parameters.floor / oversubscription, kLeastRate))),
      random_(seed) {}

// The spread keeps ports from acting in step.
Duration PullCoreLoop::NextInterval() { return rtt_.Scaled(parameters_.interval * (0.75 + random_.Unit() / 2)); }

void PullCoreLoop::Advance(Time now) {
  if (!started_) {
    started_ = true;
    next_ = now + NextInterval();
    return;
  }
  for (int i = 0; i < kMostCatchUp && next_ <= now; ++i) {
    Step();
    next_ = next_ + NextInterval();
  }
  if (next_ <= now) next_ = now + NextInterval();
}

void PullCoreLoop::Step() {
  const uint64_t trimmed = std::min(trimmed_, packets_);
  const uint64_t full = packets_ - trimmed;
  const double fraction = full > 0 ? static_cast<double>(std::min(marked_, full)) / static_cast<double>(full) : 0;
  if (trimmed > 0) rate_ -= static_cast<double>(trimmed) / static_cast<double>(packets_);
  packets_ = marked_ = trimmed_ = 0;
  g_ += parameters_.gain * (fraction - g_);
  if (g_ > parameters_.target) rate_ *= 1 - (g_ - parameters_.target) * parameters_.decrease;
  if (trimmed > 0 || g_ > parameters_.target) {
    increases_ = 0;
  } else {
    rate_ += parameters_.step * (fraction > 0 ? 1 : static_cast<double>(uint32_t{1} << increases_));
    increases_ = std::min(increases_ + 1, kMostDoublings);
  }
  rate_ = std::clamp(rate_, floor_, 1.0);
}

}  // namespace paceline
