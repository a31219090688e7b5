// All entropies in turn, past those with a penalty. A mark adds 1 to an entropy's penalty, a trim or loss 4, a time-out
// 15, which is also the most. An entropy whose turn it is while it has a penalty is skipped, which takes one off: so a
// bad path rests for some turns and is then tried again. A scale of 15 and these weights: as the public simulator of
// Ultra Ethernet weighs marks, NACKs and time-outs.
//
// Thread rule: the endpoint's thread. Penalties take no memory until the first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "transport/core/path/round_robin.h"

namespace paceline {

class PenalisedTurn {
 public:
  PenalisedTurn(uint32_t entropies, Random& random) : turn_(entropies, random), entropies_(entropies) {}

  // The next without a penalty; when all have one, the next.
  uint16_t Next() {
    for (uint32_t tries = 0; tries < entropies_; ++tries) {
      const uint16_t entropy = turn_.Next();
      if (!Skip(entropy)) return entropy;
    }
    return turn_.Next();
  }

  // True: this one is to be passed over, and its penalty is one less now.
  bool Skip(uint16_t entropy) {
    if (penalties_.empty() || penalties_[entropy] == 0) return false;
    --penalties_[entropy];
    return true;
  }
  void OnMark(uint16_t entropy) { Add(entropy, kMark); }
  void OnLoss(uint16_t entropy, LossCause cause) { Add(entropy, cause == LossCause::kTimeout ? kTimeout : kLoss); }

 private:
  static constexpr uint8_t kMark = 1, kLoss = 4, kTimeout = 15, kMost = 15;

  void Add(uint16_t entropy, uint8_t by) {
    if (penalties_.empty()) penalties_.resize(entropies_);
    penalties_[entropy] = static_cast<uint8_t>(std::min<int>(kMost, penalties_[entropy] + by));
  }

  RoundRobinPath turn_;
  uint32_t entropies_;
  std::vector<uint8_t> penalties_;  // by entropy
};

}  // namespace paceline
