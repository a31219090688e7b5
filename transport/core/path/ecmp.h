// `ecmp`: one random entropy, as a network without spraying gives each connection one route; after a time-out another,
// as hosts do that repath a flow whose route is dead (Protective ReRoute, SIGCOMM 2023;
// txhash in Linux).
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>

#include "transport/core/path/path_policy.h"

namespace paceline {

class EcmpPath final : public PathPolicy {
 public:
  EcmpPath(uint32_t entropies, Random& random) : entropies_(entropies), random_(random) { Choose(); }
  uint16_t Next() override { return entropy_; }
  void OnLoss(uint16_t entropy, LossCause cause) override {
    if (cause == LossCause::kTimeout && entropy == entropy_) Choose();
  }

 private:
  void Choose() { entropy_ = static_cast<uint16_t>(random_.Below(entropies_)); }

  const uint32_t entropies_;
  Random& random_;
  uint16_t entropy_ = 0;
};

}  // namespace paceline
