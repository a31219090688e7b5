// training_step: one step of training a transformer (training.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/study/workloads/kinds.h"
#include "tools/study/workloads/training.h"

namespace paceline::tools {
namespace {

constexpr uint64_t kMostRanks = uint64_t{65536} * 64;  // the most hosts, the most ranks of each

class Training : public Pattern {
 public:
  explicit Training(PatternReader& reader) {
    model_.layers = reader.Count("layers", model_.layers, 1, 100'000);
    model_.hidden = reader.Count("hidden", model_.hidden, 1, 1'000'000);
    // Four matrices of attention, and two of four times the width behind it.
    model_.parameters = reader.Integer("parameters", uint64_t{12} * model_.layers * model_.hidden * model_.hidden,
                                       model_.layers, uint64_t{1} << 50);
    model_.tokens = reader.Count("tokens", model_.tokens, 1, 1u << 24);
    model_.batch = reader.Count("batch", model_.batch, 1, 1u << 24);
    model_.micro_batch = reader.Count("micro_batch", model_.micro_batch, 1, 1u << 16);
    model_.tp = reader.Count("tp", model_.tp, 1, 1024);
    model_.pp = reader.Count("pp", model_.pp, 1, 1024);
    model_.dp = reader.Count("dp", model_.dp, 1, 65536);
    model_.fsdp = reader.Bool("fsdp", model_.fsdp);
    model_.bytes_per_value = reader.Count("bytes_per_value", model_.bytes_per_value, 1, 8);
    model_.tflops = reader.Number("tflops", model_.tflops, 0.001, 1e6);
    model_.chunks = reader.Count("chunks", model_.chunks, 1, 4096);
    keys_.ranks_per_host = reader.Count("ranks_per_host", 8, 1, 64);
    keys_.nvlink_gbps = reader.Number("nvlink_gbps", keys_.nvlink_gbps, 0.001, 1e6);
    const uint64_t ranks = uint64_t{model_.tp} * model_.pp * model_.dp;
    if (ranks > kMostRanks) {
      reader.Fail("dp",
                  absl::StrCat("= ", model_.dp, ": workload.tp x pp x dp = ", ranks, " must be at most ", kMostRanks));
    }
    keys_.ranks = static_cast<uint32_t>(std::min(ranks, kMostRanks));
    Check(reader);
  }

  absl::Status Build(WorkloadBuilder& builder) const override {
    if (keys_.ranks > builder.hosts().count * keys_.ranks_per_host) {
      return absl::InvalidArgumentError(absl::StrCat("workload.tp x pp x dp = ", keys_.ranks,
                                                     " ranks do not fit into fabric.hosts = ", builder.hosts().count,
                                                     " with workload.ranks_per_host = ", keys_.ranks_per_host));
    }
    absl::StatusOr<RankGraph> graph = RankGraph::Create(builder, keys_);
    if (!graph.ok()) return graph.status();
    TrainingStep(model_, *graph).Add();
    return builder.workload().flows.empty()
               ? absl::InvalidArgumentError("workload.ranks_per_host: nothing of this step leaves a host")
               : absl::OkStatus();
  }

  bool independent() const override { return false; }

 private:
  void Check(PatternReader& reader) const {
    if (model_.layers % model_.pp != 0) {
      reader.Fail("layers", absl::StrCat("= ", model_.layers, " must be a multiple of workload.pp = ", model_.pp));
    }
    if (model_.batch % model_.together() != 0) {
      reader.Fail("batch", absl::StrCat("= ", model_.batch,
                                        " must be a multiple of workload.dp x micro_batch = ", model_.together()));
    }
    if (keys_.ranks % keys_.ranks_per_host != 0) {
      reader.Fail("ranks_per_host",
                  absl::StrCat("= ", keys_.ranks_per_host, " must divide workload.tp x pp x dp = ", keys_.ranks));
    }
  }

  TrainingModel model_;
  RankKeys keys_;
};

}  // namespace

LoadedPattern LoadTrainingStep(PatternReader& reader) { return std::make_unique<Training>(reader); }

}  // namespace paceline::tools
