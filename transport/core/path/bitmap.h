// `bitmap`: round robin over all entropies, past those with a penalty (penalised_turn.h): the load balancer of that
// name in Ultra Ethernet's public simulator.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>

#include "transport/core/path/path_policy.h"
#include "transport/core/path/penalised_turn.h"

namespace paceline {

class BitmapPath final : public PathPolicy {
 public:
  BitmapPath(uint32_t entropies, Random& random) : turn_(entropies, random) {}
  uint16_t Next() override { return turn_.Next(); }
  void OnAck(uint16_t entropy, bool marked, uint64_t) override {
    if (marked) turn_.OnMark(entropy);
  }
  void OnLoss(uint16_t entropy, LossCause cause) override { turn_.OnLoss(entropy, cause); }

 private:
  PenalisedTurn turn_;
};

}  // namespace paceline
