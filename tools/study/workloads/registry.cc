#include "tools/study/workloads/registry.h"

#include "tools/study/workloads/kinds.h"

namespace paceline::tools {

const std::vector<WorkloadKind>& WorkloadKinds() {
  static const std::vector<WorkloadKind> kinds = {
      {"incast", LoadIncast}, {"alltoall", LoadAllToAll},        {"permutation", LoadPermutation},
      {"victim", LoadVictim}, {"connection_matrix", LoadMatrix},
  };
  return kinds;
}

const std::vector<std::string>& PlannedWorkloadKinds() {
  static const std::vector<std::string> kinds = {"allreduce",
                                                 "allreduce_ring",
                                                 "allreduce_tree",
                                                 "allreduce_two_level",
                                                 "reduce_scatter",
                                                 "allgather",
                                                 "broadcast",
                                                 "pipeline",
                                                 "moe",
                                                 "storage",
                                                 "poisson",
                                                 "training_step"};
  return kinds;
}

}  // namespace paceline::tools
