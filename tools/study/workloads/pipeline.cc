// pipeline: each rank is a stage; micro-batches go forward through all stages and back again, and each stage computes
// on one at a time (pipeline_schedule.h).
#include "tools/study/micros.h"
#include "tools/study/workloads/kinds.h"
#include "tools/study/workloads/pipeline_schedule.h"
#include "tools/study/workloads/rank_graph.h"

namespace paceline::tools {
namespace {

class Pipeline : public Pattern {
 public:
  explicit Pipeline(PatternReader& reader)
      : keys_(RankKeys::Read(reader, 1)),
        bytes_(reader.Bytes("bytes", 1'000'000)),
        micro_batches_(reader.Count("micro_batches", 8, 1, 65536)),
        forward_(MicrosToPicos(reader.Number("forward_us", 100, 0, kMaxMicros))),
        backward_(MicrosToPicos(reader.Number("backward_us", 200, 0, kMaxMicros))) {}

  absl::Status Build(WorkloadBuilder& builder) const override {
    absl::StatusOr<RankGraph> graph = RankGraph::Create(builder, keys_);
    if (!graph.ok()) return graph.status();
    const uint32_t stages = graph->ranks();
    // By stage and micro-batch: activations from before it, gradients from behind it.
    std::vector<std::vector<Event>> activations(stages), gradients(stages);
    for (uint32_t stage = 0; stage < stages; ++stage) {
      for (uint32_t i = 0; i < micro_batches_; ++i) {
        activations[stage].push_back(stage == 0 ? kAtStart : graph->NewEvent(1));
        gradients[stage].push_back(stage + 1 == stages ? kAtStart : graph->NewEvent(1));
      }
    }
    for (uint32_t stage = 0; stage < stages; ++stage) {
      Event last = kAtStart;
      for (const auto& [backward, i] : OneForwardOneBackward(stage, stages, micro_batches_)) {
        last = graph->Compute(stage, backward ? backward_ : forward_,
                              {last, backward ? gradients[stage][i] : activations[stage][i]});
        if (backward && stage > 0) graph->Send(stage, stage - 1, bytes_, last, gradients[stage - 1][i]);
        if (!backward && stage + 1 < stages) graph->Send(stage, stage + 1, bytes_, last, activations[stage + 1][i]);
      }
    }
    return absl::OkStatus();
  }

  bool independent() const override { return false; }

 private:
  const RankKeys keys_;
  const uint64_t bytes_;
  const uint32_t micro_batches_;
  const sim::Picos forward_;
  const sim::Picos backward_;
};

}  // namespace

LoadedPattern LoadPipeline(PatternReader& reader) { return std::make_unique<Pipeline>(reader); }

}  // namespace paceline::tools
