// How early everything of a workload with dependencies can happen when each flow takes a given least time: the longest
// chain through flows, triggers and their delays.
//
// Thread rule: pure function. Times are picoseconds from the start of the run.
#pragma once

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tools/study/workload.h"

namespace paceline::tools {

// The least that a flow takes from its start.
struct FlowCost {
  sim::Picos sent = 0;      // until the sender has the completion
  sim::Picos received = 0;  // until the receiver has every byte
};

// What is asked about flows and groups of them.
struct CostModel {
  absl::FunctionRef<FlowCost(const Flow&)> flow;
  // When all of these flows can have been received at the earliest; `starts`: how early each flow of the workload
  // starts.
  absl::FunctionRef<std::optional<sim::Picos>(const std::vector<uint32_t>& flows,
                                              const std::vector<sim::Picos>& starts)>
      together;
};

struct CriticalPath {
  sim::Picos flows = 0;  // the last sender's completion
  sim::Picos end = 0;    // of everything, computing too
};

// Flows and triggers that wait for each other in a circle are left out. Nothing when `together` has no answer.
std::optional<CriticalPath> FindCriticalPath(const Workload& workload, const CostModel& cost);

// The same with flows and copies that take no time: what computing alone takes.
sim::Picos ComputingAlone(const Workload& workload);

}  // namespace paceline::tools
