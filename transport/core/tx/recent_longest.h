// The longest of the last waits: each one that is shorter takes an eighth off it. How long "no news" is usual, so that
// only what is longer is a reason to ask.
//
// Thread rule: a value.
#pragma once

#include <algorithm>

#include "transport/base/time.h"

namespace paceline {

class RecentLongest {
 public:
  void Add(Duration wait) { longest_ = std::max(wait, longest_ - longest_ / kForget); }
  Duration get() const { return longest_; }

 private:
  static constexpr int64_t kForget = 8;
  Duration longest_;
};

}  // namespace paceline
