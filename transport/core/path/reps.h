// `reps`, the default: recycled entropies as in reps_plain.h, together with penalties (penalised_turn.h) as in the
// "mixed" load balancer of Ultra Ethernet's public simulator. What waits to be used again but carries a penalty is
// passed over, and exploration goes in turn past penalised ones instead of at random.
//
// Ours: the first 48 choices of an object explore in turn whatever has come back. Short flows gain nothing from
// recycling, and crowd the same routes with it.
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
    if (chosen_ < kExplore) {
      ++chosen_;
      return explore_.NextWhateverItsPenalty();
    }
    while (!ring_.empty()) {
      const uint16_t entropy = ring_.TakeOldest();
      if (!explore_.Skip(entropy)) return entropy;
    }
    return explore_.Next();
  }
  void OnAck(uint16_t entropy, bool marked) override {
    if (marked) {
      explore_.OnMark(entropy);
    } else {
      ring_.Add(entropy);
    }
  }
  void OnLoss(uint16_t entropy, LossCause cause) override { explore_.OnLoss(entropy, cause); }

 private:
  static constexpr uint32_t kExplore = 48;

  PenalisedTurn explore_;
  EntropyRing ring_;
  uint32_t chosen_ = 0;
};

}  // namespace paceline
