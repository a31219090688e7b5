// One step of training a transformer, as steps of ranks that compute and communicate.
//
// Rank t + tp (d + dp p) is part t of the tensors of replica d of stage p. Each replica works through its sequences in
// micro-batches, each stage in the order of pipeline_schedule.h; a layer computes 2 x parameters x tokens operations
// forward and twice as many backward, split over tp. What moves, in values of `bytes_per_value`:
//
//   tensor parallel   four ring all-reduces per layer and micro-batch (two forward, two backward) of its activations,
//                     tokens x hidden; nothing is computed meanwhile
//   pipeline          the activations to the next stage, their gradients back, each rank its tp-th
//   data parallel     a ring all-reduce of each layer's gradients, in the last micro-batch, while the layers before it
//                     compute
//   fully sharded     instead, for every micro-batch: ring all-gathers of each layer's parameters before it computes,
//                     forward and backward, one layer ahead, and a ring reduce-scatter of its gradients behind it
//
// Left out: embeddings, attention's own operations, the optimizer.
//
// Thread rule: as RankGraph.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/study/workloads/collectives.h"
#include "tools/study/workloads/pipeline_schedule.h"
#include "tools/study/workloads/rank_graph.h"

namespace paceline::tools {

struct TrainingModel {
  uint32_t layers = 8;
  uint32_t hidden = 1024;
  uint64_t parameters = 0;   // of all layers
  uint32_t tokens = 2048;    // of a sequence
  uint32_t batch = 16;       // sequences of a step
  uint32_t micro_batch = 1;  // sequences that a replica works on at a time
  uint32_t tp = 1;
  uint32_t pp = 1;
  uint32_t dp = 16;
  bool fsdp = false;
  uint32_t bytes_per_value = 2;
  double tflops = 400;  // of a rank, as it reaches them
  uint32_t chunks = 2;  // that ring steps between hosts are cut into

  uint32_t micro_batches() const { return static_cast<uint32_t>(batch / together()); }
  uint64_t together() const { return uint64_t{dp} * micro_batch; }  // sequences that all replicas work on at a time
  // Of one layer and rank.
  uint64_t layer_bytes() const { return parameters / layers / tp * bytes_per_value; }
  // Of one micro-batch.
  uint64_t activation_bytes() const { return uint64_t{micro_batch} * tokens * hidden * bytes_per_value; }
  // One rank, one layer, one micro-batch, forward.
  sim::Picos forward_time() const;
};

class TrainingStep {
 public:
  // `graph` has tp x pp x dp ranks.
  TrainingStep(const TrainingModel& model, RankGraph& graph);
  void Add();

 private:
  using Events = std::vector<Event>;  // by rank of a stage: t + tp d

  uint32_t Rank(uint32_t stage, uint32_t of_stage) const { return of_stage + width_ * stage; }
  void AddPass(uint32_t stage, const PipelineStep& step);
  void AddLayer(uint32_t stage, bool backward, bool reduce, const Events& arrived);
  void ReduceTensors(uint32_t stage);
  Events AddAmongReplicas(uint32_t stage, std::vector<Event> (*add)(RankGraph&, const Collective&),
                          const Events& ready);

  const TrainingModel& model_;
  RankGraph& graph_;
  const uint32_t width_;  // ranks of a stage
  // By stage and micro-batch: what arrives from the stage before and from the one behind.
  std::vector<std::vector<Events>> activations_, gradients_;
  // Of the stage that is being added.
  Events computed_;         // what its ranks last did
  Events computed_before_;  // a layer earlier
  Events gathered_;         // the last parameters
};

}  // namespace paceline::tools
