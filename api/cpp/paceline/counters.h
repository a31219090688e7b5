// Counters: a snapshot inside the process, and a page in shared memory that any process of the same user may read while
// the owner runs. docs/counters.md lists them all.
//
// The page is the file /dev/shm/paceline-<pid>-<number>. Everything is little endian; offsets in bytes:
//
//     0  magic         8 bytes "PCLCNTRS"
//     8  version       u32, 1. Readers refuse others.
//    12  header_bytes  u32, 64: where the records start
//    16  record_bytes  u32, 64: name (40 bytes, zero padded), unit (16 bytes, zero padded), value (u64)
//    20  records       u32
//    24  pid           u64
//    32  started       u64, nanoseconds since 1970
//    40  updated       u64, nanoseconds since 1970, of the last update
//    48  (zero)
//
// Each value is written whole (one 8-byte store) and only grows; values of one update are not taken at one instant. The
// owner updates about 50 times a second while it makes progress, and holds an exclusive lock (flock) on the file while
// it lives: a page whose lock is free is left over from a process that was killed, and is removed by who finds it.
//
// Thread rule: functions are free to call from anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "paceline/status.h"

namespace paceline::api {

struct Counter {
  std::string name;
  std::string unit;
  std::string meaning;  // empty when read from a page
  uint64_t value = 0;
};

struct CountersSnapshot {
  uint64_t pid = 0;
  uint64_t started_unix_nanos = 0;
  uint64_t updated_unix_nanos = 0;
  std::vector<Counter> counters;
};

// Names of the pages of living contexts, sorted; removes pages left over by processes that died.
std::vector<std::string> ListCounterPages();

// Reads a page by the name from ListCounterPages or Context::counters_page.
Result<CountersSnapshot> ReadCounterPage(const std::string& name);

}  // namespace paceline::api
