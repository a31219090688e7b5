// `least_delay`: of two entropies the one whose newest round trip was shorter (the power of two choices, Mitzenmacher
// 1996, with delay for the load). One is the oldest that has come back and was not used since, the other a random one;
// every eighth time, and while none has come back, both are random. What is known of a path wears off: after eight mean
// round trips it counts as an average one again, and so is tried again. A loss counts as four mean round trips, a
// time-out as sixteen, and is remembered twice as long with every further one in a row. Ours, but for the idea.
//
// Thread rule: the endpoint's thread. Takes no memory until the first feedback.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/core/path/entropy_ring.h"
#include "transport/core/path/path_policy.h"

namespace paceline {

class LeastDelayPath final : public PathPolicy {
 public:
  LeastDelayPath(uint32_t entropies, Random& random) : entropies_(entropies), random_(random.Next()) {}

  uint16_t Next() override;
  void OnAck(uint16_t entropy, bool marked, uint64_t under_way) override;
  void OnDelay(uint16_t entropy, Duration rtt, Time now) override;
  void OnLoss(uint16_t entropy, LossCause cause) override;

 private:
  static constexpr uint8_t kMostLosses = 6;
  struct Path {
    Duration delay;  // zero: nothing known
    Time heard;
    uint8_t losses = 0;  // since something arrived
  };

  Path& At(uint16_t entropy);
  Duration Estimate(uint16_t entropy) const;

  uint32_t entropies_;
  Random random_;
  Duration mean_;  // over all paths, newest count more; zero: nothing known
  Time now_;       // of the newest feedback with a time
  std::vector<Path> paths_;
  EntropyRing returned_;
  uint32_t choices_ = 0;
};

}  // namespace paceline
