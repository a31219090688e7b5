// What kind of memory is behind a pointer, and which way to the network it takes.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "gpudirect/cuda_driver.h"

namespace paceline::gpudirect {

enum class MemoryKind : uint8_t {
  kHost,     // ordinary memory
  kPinned,   // host memory that the driver has pinned: cuMemHostAlloc, cuMemHostRegister
  kManaged,  // moves between host and GPU by itself
  kDevice,   // of one GPU
};
const char* MemoryKindName(MemoryKind kind);

struct MemoryInfo {
  MemoryKind kind = MemoryKind::kHost;
  int device = -1;         // ordinal; -1: none
  uint64_t buffer_id = 0;  // of the allocation, never used again by another; 0: not one of the driver's
};

// The pointer's memory; what the driver does not know is ordinary.
MemoryInfo FindMemory(const CudaDriver& driver, const void* pointer);

// How GPU memory of `device` would be given to a card here, and why.
enum class RegistrationPath : uint8_t { kDmaBuf, kPeerMemory, kStaging };
const char* RegistrationPathName(RegistrationPath path);
struct RegistrationChoice {
  RegistrationPath path = RegistrationPath::kStaging;
  std::string reason;
};
// `lane_places`: the lane's card places data by itself (verbs); no lane of this build does. `peer_memory`: the kernel
// module nvidia_peermem is loaded.
RegistrationChoice ChooseRegistration(const CudaDriver& driver, int device, bool lane_places, bool peer_memory);
bool PeerMemoryModuleLoaded();

}  // namespace paceline::gpudirect
