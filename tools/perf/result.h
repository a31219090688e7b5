// What one rank measured at one size, and its way to the rank that reports.
//
// Thread rule: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tools/perf/histogram.h"

namespace paceline::tools {

struct RankResult {
  uint64_t messages = 0;              // that this rank started and saw completed in the timed part
  uint64_t messages_not_started = 0;  // open loop: that were due in the timed part, and held up for as long again
  uint64_t bytes = 0;                 // payload of those it saw completed
  double seconds = 0;                 // from the common start to this rank's last completion
  double cpu_seconds = 0;             // of this process in that time
  uint64_t iterations = 0;            // of a collective operation; else 0
  Histogram latency;                  // nanoseconds, see latency_kind
  Histogram operation;                // collective operations: nanoseconds each
  std::string latency_kind;           // "half round trip", "round trip", "completion"
  bool verified = true;               // every payload that this rank checked was right
  uint64_t checked_bytes = 0;         // payload bytes that this rank checked
  uint64_t retransmits = 0;           // packets sent again, in the whole test
  uint64_t retransmitted_bytes = 0;
  double base_rtt_us = 0;                    // least round trip as this rank measured it last; 0: not
  uint64_t drops = 0;                        // packets dropped by this rank's ports or kernel, in the whole test
  uint64_t impaired_bytes = 0;               // bytes of packets lost or damaged on purpose on their way to this rank
  std::map<std::string, uint64_t> counters;  // all that grew in the whole test, by name
  uint64_t data_bytes = 0;                   // payload bytes sent, retransmissions included, in the whole test

  nlohmann::json ToJson() const;
  static absl::StatusOr<RankResult> FromJson(const std::string& text);
};

}  // namespace paceline::tools
