// The simulated fabric's clock: signed 64-bit picoseconds since the start of the run (range 106 days), so that a
// 64-byte packet at 800 Gb/s still has an exact length. The transport's clock counts nanoseconds
// (transport/base/time.h); what crosses over is rounded up, so that nothing is ever seen before it has happened.
//
// Thread rule: values.
#pragma once

#include <cstdint>
#include <limits>

#include "transport/base/time.h"

namespace paceline::sim {

using Picos = int64_t;

inline constexpr Picos kNeverPicos = std::numeric_limits<Picos>::max();
inline constexpr Picos kPicosPerNano = 1000;

// The transport's time at or just after `picos`.
constexpr Time ToTime(Picos picos) { return Time::FromNanos((picos + kPicosPerNano - 1) / kPicosPerNano); }

constexpr Picos ToPicos(Time time) {
  return time.is_never() || time.nanos() > kNeverPicos / kPicosPerNano ? kNeverPicos : time.nanos() * kPicosPerNano;
}

constexpr double PicosToMicros(Picos picos) { return static_cast<double>(picos) / 1e6; }

// Time that `bytes` take at `bits_per_second`, rounded to the nearest picosecond. Exact integer arithmetic, good up to
// two megabytes.
constexpr Picos SerialisationPicos(uint64_t bytes, uint64_t bits_per_second) {
  return static_cast<Picos>((bytes * 8 * 1'000'000'000'000 + bits_per_second / 2) / bits_per_second);
}

}  // namespace paceline::sim
