// `random`: a uniformly random entropy for every burst. Oblivious spraying without any memory.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>

#include "transport/core/path/path_policy.h"

namespace paceline {

class RandomPath final : public PathPolicy {
 public:
  RandomPath(uint32_t entropies, Random& random) : entropies_(entropies), random_(random.Next()) {}
  uint16_t Next() override { return static_cast<uint16_t>(random_.Below(entropies_)); }

 private:
  uint32_t entropies_;
  Random random_;
};

}  // namespace paceline
