// The loop of `rccc` for an oversubscribed core: the port's pull rate follows the share of marked packets. Public
// simulator of the Ultra Ethernet transport (see docs/cc/rccc.md); constants there.
//
//   every `interval`, F = marked / full packets since the last time:
//     g <- (1 - gain) g + gain F
//     g > target     rate *= 1 - (g - target) * decrease
//     otherwise      rate += step * 2^k, k = steps since the last decrease (no doubling when F > 0)
//     floor <= rate <= 1
//
// O(1); owned by the receiver of one port. Thread rule: one owner at a time.
#pragma once

#include <cstdint>

#include "transport/base/time.h"

namespace paceline {

struct PullCoreLoopParameters {
  double gain = 0.5, target = 0.3, decrease = 0.5, step = 0.01, floor = 0.01;
};

class PullCoreLoop {
 public:
  PullCoreLoop(const PullCoreLoopParameters& parameters, Duration interval)
      : parameters_(parameters), interval_(interval) {}

  void OnArrival(uint64_t full_packets, uint64_t marked_packets) {
    packets_ += full_packets;
    marked_ += marked_packets;
  }
  // Makes up for the intervals that have passed.
  void Advance(Time now);
  double rate() const { return rate_; }  // of the pull rate
  double congestion() const { return g_; }

 private:
  void Step();

  const PullCoreLoopParameters parameters_;
  const Duration interval_;
  bool started_ = false;
  Time next_;
  uint64_t packets_ = 0, marked_ = 0;  // in this interval
  double g_ = 0, rate_ = 1;
  int increases_ = 0;
};

}  // namespace paceline
