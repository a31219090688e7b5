// Sequence numbers: 64 bits inside, their low 32 (or 48) bits on the wire. Unwrap once on arrival, then compare
// normally.
#pragma once

#include <cstdint>

namespace paceline {

// The number whose low `kBits` bits are `wire` and that is nearest to `near`. Right as long as the true number is
// within 2^(kBits-1) of `near`. Never below 0.
template <int kBits = 32>
constexpr uint64_t Unwrap(uint64_t wire, uint64_t near) {
  static_assert(kBits > 0 && kBits < 64);
  constexpr uint64_t kSpan = uint64_t{1} << kBits;
  const uint64_t forward = (wire - near) & (kSpan - 1);  // distance going up
  if (forward < kSpan / 2) return near + forward;
  const uint64_t back = kSpan - forward;
  return near >= back ? near - back : near + forward;
}

}  // namespace paceline
