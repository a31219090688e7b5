// allreduce (algorithm), allreduce_ring, allreduce_tree, allreduce_two_level, reduce_scatter, allgather, broadcast: one
// operation among all ranks.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tools/study/workloads/collectives.h"
#include "tools/study/workloads/kinds.h"

namespace paceline::tools {
namespace {

using AddCollective = std::vector<Event> (*)(RankGraph&, const Collective&);

class OneCollective : public Pattern {
 public:
  OneCollective(PatternReader& reader, AddCollective add, uint32_t ranks_per_host = 1)
      : keys_(RankKeys::Read(reader, ranks_per_host)),
        bytes_(reader.Bytes("bytes", 10'000'000)),
        chunks_(reader.Count("chunks", 4, 1, 4096)),
        add_(add) {}

  absl::Status Build(WorkloadBuilder& builder) const override {
    absl::StatusOr<RankGraph> graph = RankGraph::Create(builder, keys_);
    if (!graph.ok()) return graph.status();
    Collective what = {.ranks = std::vector<uint32_t>(graph->ranks()), .bytes = bytes_, .chunks = chunks_};
    std::iota(what.ranks.begin(), what.ranks.end(), 0u);
    if (bytes_ < uint64_t{chunks_} * graph->ranks()) {
      return absl::InvalidArgumentError(absl::StrCat("workload.bytes = ", bytes_,
                                                     " must be at least workload.chunks = ", chunks_, " times the ",
                                                     graph->ranks(), " ranks"));
    }
    add_(*graph, what);
    return builder.workload().flows.empty() ? absl::InvalidArgumentError("workload.ranks must be on more than one host")
                                            : absl::OkStatus();
  }

  bool independent() const override { return false; }

 private:
  const RankKeys keys_;
  const uint64_t bytes_;
  const uint32_t chunks_;
  const AddCollective add_;
};

}  // namespace

LoadedPattern LoadAllReduceRing(PatternReader& reader) {
  return std::make_unique<OneCollective>(reader, AddRingAllReduce);
}
LoadedPattern LoadAllReduceTree(PatternReader& reader) {
  return std::make_unique<OneCollective>(reader, AddTreeAllReduce);
}
LoadedPattern LoadAllReduceTwoLevel(PatternReader& reader) {
  return std::make_unique<OneCollective>(reader, AddTwoLevelAllReduce, 8);
}
LoadedPattern LoadReduceScatter(PatternReader& reader) {
  return std::make_unique<OneCollective>(reader, AddRingReduceScatter);
}
LoadedPattern LoadAllGather(PatternReader& reader) { return std::make_unique<OneCollective>(reader, AddRingAllGather); }

LoadedPattern LoadAllReduce(PatternReader& reader) {
  const std::string algorithm = reader.Choice("algorithm", "ring", {"ring", "tree", "two_level"});
  if (algorithm == "tree") return LoadAllReduceTree(reader);
  return algorithm == "two_level" ? LoadAllReduceTwoLevel(reader) : LoadAllReduceRing(reader);
}

LoadedPattern LoadBroadcast(PatternReader& reader) {
  const std::string algorithm = reader.Choice("algorithm", "chain", {"chain", "binomial"});
  return std::make_unique<OneCollective>(reader, algorithm == "chain" ? AddChainBroadcast : AddBinomialBroadcast);
}

}  // namespace paceline::tools
