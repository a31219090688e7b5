// What the counters of a rank grew by during a test.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tools/perf/result.h"
#include "tools/perf/session.h"

namespace paceline::tools {

class CounterDelta {
 public:
  // Starts to count now.
  explicit CounterDelta(Session& session) : session_(session), before_(session.Counters()) {}

  void AddTo(RankResult& result) const {
    for (const auto& [name, value] : session_.Counters()) {
      if (name == "base_rtt_nanos") {  // a level
        result.base_rtt_us = static_cast<double>(value) / 1e3;
        continue;
      }
      const auto found = before_.find(name);
      const uint64_t grown = value - (found == before_.end() ? 0 : found->second);
      if (grown > 0) result.counters[name] = grown;
      if (name == "retransmits") result.retransmits += grown;
      if (name == "retransmitted_bytes") result.retransmitted_bytes += grown;
      if (name == "tx_data_bytes") result.data_bytes += grown;
      if (name.ends_with("_drops")) result.drops += grown;
      if (name.ends_with("_impair_lost_bytes") || name.ends_with("_impair_corrupted_bytes")) {
        result.impaired_bytes += grown;
      }
    }
  }

 private:
  Session& session_;
  std::map<std::string, uint64_t> before_;
};

}  // namespace paceline::tools
