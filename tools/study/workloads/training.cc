#include "tools/study/workloads/training.h"

#include <cmath>

namespace paceline::tools {

sim::Picos TrainingModel::forward_time() const {
  const double operations =
      2.0 * static_cast<double>(parameters) / layers / tp * static_cast<double>(tokens) * micro_batch;
  return std::llround(operations / tflops);  // a teraflops is one operation per picosecond
}

TrainingStep::TrainingStep(const TrainingModel& model, RankGraph& graph)
    : model_(model), graph_(graph), width_(model.tp * model.dp), activations_(model.pp), gradients_(model.pp) {}

void TrainingStep::Add() {
  const uint32_t micro_batches = model_.micro_batches();
  for (uint32_t stage = 0; stage < model_.pp; ++stage) {
    const auto arrivals = [&](bool none) {
      std::vector<Events> events(micro_batches, Events(width_, kAtStart));
      for (Events& of_stage : events) {
        for (Event& event : of_stage) event = none ? kAtStart : graph_.NewEvent(1);
      }
      return events;
    };
    activations_[stage] = arrivals(stage == 0);
    gradients_[stage] = arrivals(stage + 1 == model_.pp);
  }
  for (uint32_t stage = 0; stage < model_.pp; ++stage) {
    computed_ = computed_before_ = gathered_ = Events(width_, kAtStart);
    for (const PipelineStep& step : OneForwardOneBackward(stage, model_.pp, micro_batches)) AddPass(stage, step);
  }
}

void TrainingStep::AddPass(uint32_t stage, const PipelineStep& step) {
  const auto& [backward, micro_batch] = step;
  Events arrived = backward ? gradients_[stage][micro_batch] : activations_[stage][micro_batch];
  const bool reduce = backward && (model_.fsdp || micro_batch + 1 == model_.micro_batches());
  for (uint32_t layer = 0; layer < model_.layers / model_.pp; ++layer) {
    AddLayer(stage, backward, reduce, arrived);
    arrived.assign(width_, kAtStart);
  }
  if (backward ? stage == 0 : stage + 1 == model_.pp) return;
  const uint32_t other = backward ? stage - 1 : stage + 1;
  for (uint32_t i = 0; i < width_; ++i) {
    const uint64_t bytes = PartOf(model_.activation_bytes(), model_.tp, i % model_.tp);
    graph_.Send(Rank(stage, i), Rank(other, i), bytes, computed_[i],
                (backward ? gradients_ : activations_)[other][micro_batch][i]);
  }
}

void TrainingStep::AddLayer(uint32_t stage, bool backward, bool reduce, const Events& arrived) {
  if (model_.fsdp) {
    Events ready(width_);
    for (uint32_t i = 0; i < width_; ++i) ready[i] = graph_.Join({gathered_[i], computed_before_[i]});
    gathered_ = AddAmongReplicas(stage, AddRingAllGather, ready);
  }
  computed_before_ = computed_;
  const uint32_t parts = model_.tp > 1 ? 2 : 1;  // attention and the layer behind it are reduced each
  for (uint32_t part = 0; part < parts; ++part) {
    for (uint32_t i = 0; i < width_; ++i) {
      Events after = {computed_[i]};
      if (part == 0) after.push_back(arrived[i]);
      if (part == 0 && model_.fsdp) after.push_back(gathered_[i]);
      computed_[i] = graph_.Compute(Rank(stage, i), model_.forward_time() * (backward ? 2 : 1) / parts, after);
    }
    if (model_.tp > 1) ReduceTensors(stage);
  }
  if (reduce) AddAmongReplicas(stage, model_.fsdp ? AddRingReduceScatter : AddRingAllReduce, computed_);
}

void TrainingStep::ReduceTensors(uint32_t stage) {
  for (uint32_t replica = 0; replica < model_.dp; ++replica) {
    const uint32_t first = replica * model_.tp;
    Collective what = {.bytes = model_.activation_bytes()};
    for (uint32_t t = 0; t < model_.tp; ++t) {
      what.ranks.push_back(Rank(stage, first + t));
      what.ready.push_back(computed_[first + t]);
    }
    const Events done = AddRingAllReduce(graph_, what);
    for (uint32_t t = 0; t < model_.tp; ++t) computed_[first + t] = done[t];
  }
}

TrainingStep::Events TrainingStep::AddAmongReplicas(uint32_t stage,
                                                    std::vector<Event> (*add)(RankGraph&, const Collective&),
                                                    const Events& ready) {
  Events done = ready;
  for (uint32_t t = 0; t < model_.tp; ++t) {
    Collective what = {.bytes = model_.layer_bytes(), .chunks = model_.chunks};
    for (uint32_t replica = 0; replica < model_.dp; ++replica) {
      what.ranks.push_back(Rank(stage, replica * model_.tp + t));
      what.ready.push_back(ready[replica * model_.tp + t]);
    }
    const Events events = add(graph_, what);
    for (uint32_t replica = 0; replica < model_.dp; ++replica) done[replica * model_.tp + t] = events[replica];
  }
  return done;
}

}  // namespace paceline::tools
