// `ecmp`: one random entropy for the life of the object, as a network without spraying gives each connection one route.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>

#include "transport/core/path/path_policy.h"

namespace paceline {

class EcmpPath final : public PathPolicy {
 public:
  EcmpPath(uint32_t entropies, Random& random) : entropy_(static_cast<uint16_t>(random.Below(entropies))) {}
  uint16_t Next() override { return entropy_; }

 private:
  uint16_t entropy_;
};

}  // namespace paceline
