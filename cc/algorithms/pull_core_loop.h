// The loop of `rccc` for an oversubscribed core: the port's pull rate follows the share of marked packets. Public
// simulator of the Ultra Ethernet transport (see docs/cc/rccc.md); constants there.
//
//   every 1.5 base round trips, times 0.75 to 1.25 at random, F = marked / full packets since the last time, T =
//   trimmed / all packets:
//     T > 0          rate -= T
//     g <- (1 - gain) g + gain F
//     g > target     rate *= 1 - (g - target) * decrease
//     neither        rate += step * 2^k, k = steps since the last decrease (no doubling when F > 0)
//     floor / oversubscription <= rate <= 1, and not below 0.01
//
// O(1); owned by the receiver of one port. Thread rule: one owner at a time.
#pragma once

#include <cstdint>

#include "transport/base/random.h"
#include "transport/base/time.h"

namespace paceline {

struct PullCoreLoopParameters {
  double gain = 0.5, target = 0.3, decrease = 0.5, step = 0.01, floor = 0.9, interval = 1.5;
};

class PullCoreLoop {
 public:
  PullCoreLoop(const PullCoreLoopParameters& parameters, Duration rtt, double oversubscription, uint64_t seed);

  // `packets` includes the trimmed ones; marks count on the others.
  void OnArrival(uint64_t packets, uint64_t marked, uint64_t trimmed) {
    packets_ += packets;
    marked_ += marked;
    trimmed_ += trimmed;
  }
  // Makes up for the intervals that have passed.
  void Advance(Time now);
  double rate() const { return rate_; }  // of the pull rate
  double congestion() const { return g_; }

 private:
  void Step();
  Duration NextInterval();

  const PullCoreLoopParameters parameters_;
  const Duration rtt_;
  const double floor_;
  Random random_;
  bool started_ = false;
  Time next_;
  uint64_t packets_ = 0, marked_ = 0, trimmed_ = 0;  // in this interval
  double g_ = 0, rate_ = 1;
  int increases_ = 0;
};

}  // namespace paceline
