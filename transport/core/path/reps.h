// `reps`, the default: recycled entropies as in reps_plain.h, together with penalties (penalised_turn.h) as in the
// "mixed" load balancer of Ultra Ethernet's public simulator. What waits to be used again but carries a penalty is
// passed over, and exploration goes in turn past penalised ones instead of at random.
//
// Ours: recycled is only what comes back while at least four bursts are under way. A flow that is one of many from its
// host sends too seldom to know how a path is: what it heard is old when it chooses next, and many such flows crowd the
// routes that were empty a while ago. It goes in turn.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>

#include "transport/core/path/entropy_ring.h"
#include "transport/core/path/path_policy.h"
#include "transport/core/path/penalised_turn.h"

namespace paceline {

class RepsPath final : public PathPolicy {
 public:
  RepsPath(uint32_t entropies, Random& random) : explore_(entropies, random) {}

  uint16_t Next() override {
    while (!ring_.empty()) {
      const uint16_t entropy = ring_.TakeOldest();
      if (!explore_.Skip(entropy)) return entropy;
    }
    return explore_.Next();
  }
  void OnAck(uint16_t entropy, bool marked, uint64_t under_way) override {
    if (marked) {
      explore_.OnMark(entropy);
    } else if (under_way >= kManyUnderWay) {
      ring_.Add(entropy);
    }
  }
  void OnLoss(uint16_t entropy, LossCause cause) override { explore_.OnLoss(entropy, cause); }

 private:
  static constexpr uint64_t kManyUnderWay = 4;

  PenalisedTurn explore_;
  EntropyRing ring_;
};

}  // namespace paceline
