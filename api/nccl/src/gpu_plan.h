// What the plugin does with memory of GPUs on one of its devices: which GPUs' memory the card reaches by itself, and
// what is done with the others'.
//
// Thread rule: plain values; made under the plugin's lock.
#pragma once

#include <string>
#include <vector>

#include "api/nccl/src/nics.h"
#include "gpudirect/registration_path.h"

namespace paceline::nccl {

struct GpuPlan {
  const gpudirect::CudaDriver* driver = nullptr;         // nullptr: there is none, and no memory of GPUs is taken
  bool staging = false;                                  // what no card reaches is taken too, and copied
  std::vector<gpudirect::RegistrationChoice> choices{};  // by ordinal of the GPU

  // `staging`: PACELINE_GPU_STAGING. `encrypt`: payload goes in packets.
  static GpuPlan Make(const gpudirect::CudaDriver* driver, const Nic& nic, bool staging, bool encrypt);

  bool reaches_any() const;  // of some GPU memory needs no copies
  bool takes_any() const { return driver != nullptr && (staging || reaches_any()); }
  int pointer_support() const;  // abi::kPointer... for NCCL
  bool needs_flush() const;     // of some GPU, before its kernels may see what has come
  const gpudirect::RegistrationChoice& ChoiceFor(int gpu) const;
  // For NCCL's log, a text for each group of GPUs with the same fate: "GPU 0, 1: dma-buf (...)".
  std::vector<std::string> Describe() const;
};

}  // namespace paceline::nccl
