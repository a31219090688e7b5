// `round_robin`: the next of all entropies, from a random start. Oblivious spraying that gives every path its equal
// share of a flow.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>

#include "transport/core/path/path_policy.h"

namespace paceline {

class RoundRobinPath final : public PathPolicy {
 public:
  RoundRobinPath(uint32_t entropies, Random& random)
      : entropies_(entropies), next_(static_cast<uint32_t>(random.Below(entropies))) {}
  uint16_t Next() override {
    const uint32_t entropy = next_;
    next_ = next_ + 1 == entropies_ ? 0 : next_ + 1;
    return static_cast<uint16_t>(entropy);
  }

 private:
  uint32_t entropies_, next_;
};

}  // namespace paceline
