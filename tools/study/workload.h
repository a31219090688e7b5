// What a study sends: a list of flows with their starts, made from the [workload] table or read from a connection
// matrix.
//
// A flow starts at its time or when a trigger fires. Triggers are fired by flows that complete, and start either all of
// their flows once enough have fired them, or the next of their flows each time. A window of outstanding messages per
// source is such a trigger.
//
// Thread rule: values. Times are picoseconds from the start of the run, hosts are numbers in [0, hosts).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/lane/sim/sim_time.h"

namespace paceline::tools {

inline constexpr uint32_t kNoTrigger = 0xffffffff;

struct Flow {
  uint32_t source = 0;
  uint32_t destination = 0;
  uint64_t bytes = 0;
  sim::Picos start = 0;           // not used with a trigger
  uint32_t trigger = kNoTrigger;  // that starts it
  uint32_t fires_when_sent = kNoTrigger;
  uint32_t fires_when_received = kNoTrigger;
  bool victim = false;  // of the permutation beside an incast
};

struct Trigger {
  bool one_at_a_time = false;  // each firing starts the next flow; else the last of `firings` starts all
  uint32_t firings = 1;
  std::vector<uint32_t> flows;
};

struct Workload {
  std::vector<Flow> flows;
  std::vector<Trigger> triggers;
};

struct WorkloadConfig {
  std::string kind = "incast";
  uint32_t fan_in = 8;
  uint64_t bytes = 1'000'000;
  uint64_t victim_bytes = 1'000'000;
  uint32_t ranks = 0;   // 0: as many as hosts
  uint32_t window = 0;  // 0: all at once
  bool posted_ahead = false;
  sim::Picos start = 0;
  sim::Picos start_jitter = 0;  // each start is later by a random part of this
  std::string file;             // connection_matrix
};

// The flows for `hosts` hosts. The seed chooses hosts, permutations and jitter. Refuses what cannot be, naming the key.
absl::StatusOr<Workload> BuildWorkload(const WorkloadConfig& config, uint32_t hosts, uint64_t seed);

// The same without all flows but the victims, which keep their hosts and starts.
Workload VictimsAlone(const Workload& workload);

}  // namespace paceline::tools
