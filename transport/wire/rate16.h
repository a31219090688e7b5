// A rate in 16 bits: 11 bits of mantissa, 5 of exponent, in units of 64 kb/s, rounded down: 64 kb/s to 281 Pb/s with a
// step below 0.1 %. 0: none stated; 0xffff: unlimited.
#pragma once

#include <bit>
#include <cstdint>

#include "transport/base/time.h"

namespace paceline::wire {

inline uint16_t EncodeRate(Rate rate) {
  if (rate.is_unlimited()) return 0xffff;
  const double units = rate.bytes_per_second() * 8 / 64e3;
  if (!(units >= 1)) return rate.is_zero() ? 0 : 1;
  if (units >= 1e18) return 0xfffe;  // beyond any integer
  const auto whole = static_cast<uint64_t>(units);
  const int exponent = std::bit_width(whole) > 11 ? std::bit_width(whole) - 11 : 0;
  const uint64_t encoded = static_cast<uint64_t>(exponent) << 11 | (whole >> exponent);
  return encoded > 0xfffe ? 0xfffe : static_cast<uint16_t>(encoded);
}

inline Rate DecodeRate(uint16_t encoded) {
  if (encoded == 0xffff) return Rate::Unlimited();
  const uint64_t units = static_cast<uint64_t>(encoded & 0x7ff) << (encoded >> 11);
  return Rate::BitsPerSecond(static_cast<double>(units) * 64e3);
}

}  // namespace paceline::wire
