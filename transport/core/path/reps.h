// `reps`, the default: recycled entropies as in reps_plain.h, together with penalties (penalised_turn.h) as in the
// "mixed" load balancer of Ultra Ethernet's public simulator. What waits to be used again but carries a penalty is
// passed over, and exploration goes in turn past penalised ones instead of at random.
//
// Ours: recycled is only what comes back while at least four bursts are under way. A flow that is one of many from its
// host sends too seldom to know how a path is: what it heard is old when it chooses next, and many such flows crowd the
// routes that were empty a while ago. It goes in turn.
//
// A loss without a trim and without an ECN mark among the last four bursts suggests a dead path, because a full queue
// would have marked. For 64 choices after such a loss the policy explores nothing: it reuses every acknowledged
// entropy, and the newest one while none waits (the "freezing mode" of REPS, Bonato et al. 2024; there a time-out
// starts it). Retransmissions take the newest one as well, unless it was marked. It may have died since: after eight
// uses without another acknowledgement the policy explores again.
#pragma once

#include <algorithm>
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
    if (frozen_ > 0) {
      --frozen_;
      if (any_alive_ && TrustsAlive()) return alive_;
    }
    return explore_.Next();
  }
  // (A mark on the newest one says that queues are full: then a loss is no sign of a dead path.)
  uint16_t NextForLost(uint16_t alive) override {
    return (frozen_ > 0 || unmarked_ > 0) && TrustsAlive() ? alive : Next();
  }
  void OnAck(uint16_t entropy, bool marked, uint64_t under_way) override {
    unmarked_ = marked ? 0 : std::min(unmarked_ + 1, kUnmarked);
    if (marked) {
      explore_.OnMark(entropy);
    } else if (under_way >= kManyUnderWay || frozen_ > 0) {
      ring_.Add(entropy);
    }
    alive_ = entropy;
    any_alive_ = true;
    uses_of_alive_ = 0;
  }
  void OnLoss(uint16_t entropy, LossCause cause) override {
    explore_.OnLoss(entropy, cause);
    if (entropy == alive_) any_alive_ = false;
    if (cause != LossCause::kTrimmed && unmarked_ >= kUnmarked) frozen_ = kFrozenChoices;
  }

 private:
  static constexpr uint64_t kManyUnderWay = 4;
  static constexpr uint32_t kFrozenChoices = 64, kUnmarked = 4, kUsesOfAlive = 8;

  // The acknowledged path may have died since: it is reused a few times until another acknowledgement comes.
  bool TrustsAlive() { return uses_of_alive_ < kUsesOfAlive && ++uses_of_alive_ > 0; }

  PenalisedTurn explore_;
  EntropyRing ring_;
  uint32_t frozen_ = 0;            // choices left without exploration
  uint32_t unmarked_ = kUnmarked;  // bursts acknowledged since the last ECN mark, at most kUnmarked
  uint16_t alive_ = 0;             // acknowledged last
  bool any_alive_ = false;
  uint32_t uses_of_alive_ = 0;  // since the last acknowledgement
};

}  // namespace paceline
