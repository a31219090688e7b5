// What contexts of tests are made with.
#pragma once

#include "paceline/options.h"

namespace paceline::api {

// The thread sanitizer does not see that two mappings of shared memory are one, nor what goes from thread to thread
// that way.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kSeesSharedMemory = false;
#else
inline constexpr bool kSeesSharedMemory = true;
#endif

inline ContextOptions DefaultOptions() {
  ContextOptions options;
  if (!kSeesSharedMemory) options.lane = "udp";
  return options;
}

}  // namespace paceline::api
