// One run of a study: one algorithm, one seed. Every host of the simulated fabric runs the same engine, endpoint and
// controllers as a real machine does; this builds them, posts what the workload asks for, and collects what happened.
//
// Thread rule: everything of a run stays in the thread that calls ExecuteRun; several runs may go on in several
// threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/study/recovery.h"
#include "tools/study/scenario.h"
#include "tools/study/workload.h"
#include "transport/core/counters.h"
#include "transport/lane/sim/counters.h"

namespace paceline::tools {

struct FlowOutcome {
  int64_t start_ns = -1;     // from the start of the run; -1: never started
  int64_t finish_ns = -1;    // the sender's completion; -1: not finished
  int64_t received_ns = -1;  // the receiver has every byte; -1: not yet
  double slowdown = 0;       // over the flow's own ideal; 0: not finished
};

struct PortSeries {
  std::string name;                        // for people: "agg 5, port up 0 to core 4"
  std::vector<uint32_t> queue_peak_bytes;  // by interval
  std::vector<uint64_t> sent_bytes;
};

struct RunOutcome {
  std::string algorithm;
  uint64_t seed = 0;
  Workload workload;
  std::vector<FlowOutcome> flows;
  uint64_t failed_operations = 0;
  double ideal_us = 0;
  std::optional<double> ideal_window_us;  // not less than ideal_us; nothing without a window
  // Of a workload that computes: the end of everything, the least that it could be, and computing without a network.
  int64_t end_ns = -1;  // -1: not over
  double ideal_end_us = 0;
  double compute_us = 0;                    // 0: computes nothing
  bool damaged = false;                     // lasting faults took link capacity
  std::optional<double> ideal_damaged_us;   // nothing when no path is left for some flow
  std::vector<double> victim_alone_fct_us;  // ascending; of the finished victims of a run without the incast
  sim::FabricCounters fabric;
  EndpointCounters endpoints;           // all hosts together
  std::optional<double> pfc_paused_us;  // over all links; nothing unless lossless
  uint64_t packets = 0;
  uint64_t queue_max_bytes = 0;
  uint64_t queue_last_hop_max_bytes = 0;
  uint64_t queue_p99_bytes = 0;
  std::vector<uint64_t> nic_sent_bytes;   // on the wire, by number of the NIC in its host, over all hosts
  int64_t interval_ns = 0;                // of the series
  int64_t first_interval_ns = 0;          // where the series starts, from the start of the run
  std::vector<uint64_t> delivered_bytes;  // by interval, over all hosts
  std::vector<Recovery> recoveries;       // from faults that begin or end while the run goes on
  PortSeries busiest;
  PortSeries last_hop;
  double wall_s = 0;
};

// What simulating a flow costs, in packets: those of its data and some for its beginning and end.
uint64_t EffortOf(const Flow& flow, uint32_t mtu_bytes);
// `progress`: grows by EffortOf() of every flow that finishes, and may be watched from another thread.
absl::StatusOr<RunOutcome> ExecuteRun(const Scenario& scenario, const AlgorithmChoice& algorithm, uint64_t seed,
                                      std::atomic<uint64_t>* progress);

}  // namespace paceline::tools
