// What a study sends: a list of flows with their starts and dependencies.
//
// A flow starts at its time or when a trigger goes off. A trigger goes off once enough flows or other triggers have
// fired it, after a delay (a GPU that computes, a copy inside a host), and starts all of its flows; or it starts the
// next of its flows each time that it is fired, which is how a window of outstanding messages per source is made.
//
// Thread rule: values. Times are picoseconds from the start of the run, hosts are numbers in [0, hosts).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/lane/sim/sim_time.h"

namespace paceline::tools {

inline constexpr uint32_t kNoTrigger = 0xffffffff;
inline constexpr uint8_t kAllNics = 0xff;

struct Flow {
  uint32_t source = 0;
  uint32_t destination = 0;
  uint64_t bytes = 0;
  sim::Picos start = 0;           // with a trigger that starts one at a time: none is earlier; with others: not used
  uint32_t trigger = kNoTrigger;  // that starts it
  uint32_t fires_when_sent = kNoTrigger;
  uint32_t fires_when_received = kNoTrigger;
  uint8_t nic = kAllNics;   // that it leaves its source and enters its destination by
  bool victim = false;      // of the permutation beside an incast
  bool background = false;  // beside the workload: the run does not wait for it
};

struct Trigger {
  bool one_at_a_time = false;  // each firing starts the next flow; else the last of `firings` starts all
  uint32_t firings = 1;        // 0: goes off by itself, `delay` after `start`
  sim::Picos start = 0;        // with firings = 0
  sim::Picos delay = 0;        // from the last firing until it goes off; not with one_at_a_time
  bool computes = false;       // the delay is computing; else a copy inside the host
  uint32_t host = 0;           // where the delay passes
  std::vector<uint32_t> flows;
  std::vector<uint32_t> fires;  // other triggers, when it goes off
};

struct Workload {
  std::vector<Flow> flows;
  std::vector<Trigger> triggers;
};

class FlowSizes;
class Pattern;

// Flows at random beside the workload, from its start on.
struct Background {
  double load = 0;  // of the hosts' sending rate; 0: none
  std::shared_ptr<const FlowSizes> sizes;
  sim::Picos lasts = 0;
};

// A [workload] table as read.
struct WorkloadConfig {
  std::string kind;
  std::shared_ptr<const Pattern> pattern;  // of this kind, with its own keys
  uint32_t window = 0;                     // 0: all at once
  bool posted_ahead = false;
  sim::Picos start = 0;
  sim::Picos start_jitter = 0;  // each start is later by a random part of this
  Background background;
};

// What a workload may know of the hosts that it runs on.
struct WorkloadHosts {
  uint32_t count = 0;
  uint32_t nics = 1;  // of each
  double gbps = 100;  // of all NICs of one host
};

// The flows for these hosts. The seed chooses hosts, permutations and jitter. Refuses what cannot be, naming the key.
absl::StatusOr<Workload> BuildWorkload(const WorkloadConfig& config, const WorkloadHosts& hosts, uint64_t seed);

// The same without the background, which comes after all other flows.
Workload WithoutBackground(const Workload& workload);

// The same without all flows but the victims, which keep their hosts and starts.
Workload VictimsAlone(const Workload& workload);

}  // namespace paceline::tools
