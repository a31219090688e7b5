// Which way the memory of a GPU takes to a card, and why.
//
// A card that places data by itself reaches it by dma-buf (the driver hands out a descriptor, the kernel's RDMA core
// takes it) or by nvidia-peermem (the kernel module knows device pointers, and they are registered like any other).
// Elsewhere it is staged: copied through host memory. What a card writes into a GPU must also become visible to the
// kernels that wait for it: many GPUs see to that themselves, for others the driver flushes (FlushRemoteWrites). Where
// neither is so, memory is staged, as copies need no flush.
//
// Thread rule: any thread; control path.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gpudirect/cuda_driver.h"
#include "gpudirect/primary_context.h"

namespace paceline::gpudirect {

enum class RegistrationPath : uint8_t { kDmaBuf, kPeerMemory, kStaging };
const char* RegistrationPathName(RegistrationPath path);

// The other end: a lane and what is behind it.
struct CardAbilities {
  bool places = false;          // puts data in their place by itself, as the card of a verbs lane does
  std::string dma_buf_problem;  // why it registers no memory by the descriptor of a dma-buf; empty: it does
  bool peer_memory = false;     // the kernel module nvidia_peermem is loaded (PeerMemoryModuleLoaded)
};

struct RegistrationChoice {
  RegistrationPath path = RegistrationPath::kStaging;
  bool needs_flush = false;  // what was written there has to be flushed before a kernel is told of it
  std::string reason;
};

// For memory of the GPU `device`, an ordinal.
RegistrationChoice ChooseRegistration(const CudaDriver& driver, int device, const CardAbilities& card);

bool PeerMemoryModuleLoaded();

// What other devices have written into this GPU's memory until now is visible to its kernels when this returns. The
// error is the driver's.
absl::Status FlushRemoteWrites(const PrimaryContext& gpu);

}  // namespace paceline::gpudirect
