// In which order a stage of a pipeline works on its micro-batches: one forward, one backward in turns, so that no stage
// holds the activations of more micro-batches than there are stages after it (Narayanan et al., "Efficient large-scale
// language model training on GPU clusters using Megatron-LM", SC 2021, section 2.2).
// Thread rule: pure function.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paceline::tools {

struct PipelineStep {
  bool backward = false;
  uint32_t micro_batch = 0;
};

inline std::vector<PipelineStep> OneForwardOneBackward(uint32_t stage, uint32_t stages, uint32_t micro_batches) {
  std::vector<PipelineStep> steps;
  const uint32_t ahead = std::min(micro_batches, stages - stage - 1);
  for (uint32_t i = 0; i < ahead; ++i) steps.push_back({false, i});
  for (uint32_t i = ahead; i < micro_batches; ++i) {
    steps.push_back({false, i});
    steps.push_back({true, i - ahead});
  }
  for (uint32_t i = micro_batches - ahead; i < micro_batches; ++i) steps.push_back({true, i});
  return steps;
}

}  // namespace paceline::tools
