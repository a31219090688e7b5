#include "tools/study/workloads/registry.h"

#include "tools/study/workloads/kinds.h"

namespace paceline::tools {

const std::vector<WorkloadKind>& WorkloadKinds() {
  static const std::vector<WorkloadKind> kinds = {
      {"incast", LoadIncast},
      {"alltoall", LoadAllToAll},
      {"permutation", LoadPermutation},
      {"victim", LoadVictim},
      {"connection_matrix", LoadMatrix},
      {"allreduce", LoadAllReduce},
      {"allreduce_ring", LoadAllReduceRing},
      {"allreduce_tree", LoadAllReduceTree},
      {"allreduce_two_level", LoadAllReduceTwoLevel},
      {"reduce_scatter", LoadReduceScatter},
      {"allgather", LoadAllGather},
      {"broadcast", LoadBroadcast},
      {"pipeline", LoadPipeline},
      {"moe", LoadMoe},
      {"storage", LoadStorage},
      {"poisson", LoadPoisson},
      {"training_step", LoadTrainingStep},
  };
  return kinds;
}

}  // namespace paceline::tools
