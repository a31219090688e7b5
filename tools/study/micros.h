// Times in scenarios are microseconds, inside a run picoseconds.
// Thread rule: pure functions.
#pragma once

#include <cmath>

#include "transport/lane/sim/sim_time.h"

namespace paceline::tools {

inline constexpr double kMaxMicros = 1e9;  // 1000 s

inline sim::Picos MicrosToPicos(double micros) { return static_cast<sim::Picos>(std::llround(micros * 1e6)); }

}  // namespace paceline::tools
