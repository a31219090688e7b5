// `reps_plain`: recycled entropies (Bonato et al., "REPS", 2024). An entropy that came back unmarked is used again, the
// oldest first; when none is waiting, a random one explores. Congested and dead paths drop out because nothing of
// theirs comes back unmarked.
//
// Different from the paper: exploration is not frozen after a time-out.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>

#include "transport/core/path/entropy_ring.h"
#include "transport/core/path/path_policy.h"
#include "transport/core/path/random_path.h"

namespace paceline {

class RepsPlainPath final : public PathPolicy {
 public:
  RepsPlainPath(uint32_t entropies, Random& random) : explore_(entropies, random) {}
  uint16_t Next() override { return ring_.empty() ? explore_.Next() : ring_.TakeOldest(); }
  void OnAck(uint16_t entropy, bool marked, uint64_t) override {
    if (!marked) ring_.Add(entropy);
  }

 private:
  RandomPath explore_;
  EntropyRing ring_;
};

}  // namespace paceline
