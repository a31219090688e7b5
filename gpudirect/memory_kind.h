// What kind of memory is behind a pointer.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

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

}  // namespace paceline::gpudirect
