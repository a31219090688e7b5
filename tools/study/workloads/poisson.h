// Flows that come at random, whatever became of those before (an open loop): times between them exponential, source and
// destination any two hosts, sizes from a distribution.
//
// Thread rule: pure function but for the generator.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/study/workload.h"
#include "tools/study/workloads/flow_sizes.h"
#include "transport/base/random.h"

namespace paceline::tools {

struct PoissonLoad {
  double load = 0.5;                    // mean share of all hosts' sending rate, payload
  uint64_t most_flows = 0;              // stops after so many,
  sim::Picos until = sim::kNeverPicos;  // or at this time
};

// At least two hosts.
std::vector<Flow> PoissonFlows(const PoissonLoad& load, const FlowSizes& sizes, const WorkloadHosts& hosts,
                               sim::Picos start, Random& random);

}  // namespace paceline::tools
