// The clock of real machines: CLOCK_MONOTONIC as Time. Only the engine's surroundings (progress, api, tools) read it;
// the core and the lanes are told the time.
//
// Cost: about 40 ns, so it is read once per poll pass and once per posted operation.
//
// Thread rule: free to call from anywhere.
#pragma once

#include <time.h>

#include "transport/base/time.h"

namespace paceline {

inline Time MonotonicNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time::FromNanos(static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
}

// CPU time used so far by this process, all threads.
inline Duration ProcessCpuTime() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return Duration::Nanos(static_cast<int64_t>(used.tv_sec) * 1'000'000'000 + used.tv_nsec);
}

}  // namespace paceline
