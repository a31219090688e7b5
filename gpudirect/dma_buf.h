// A dma-buf: a descriptor by which the kernel gives memory of one device, here a GPU, to another, here a card.
//
// Thread rule: control path, any thread. Ownership: owns the descriptor; the memory is its allocator's, and has to be
// there as long as a card uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "gpudirect/cuda_driver.h"
#include "gpudirect/primary_context.h"

namespace paceline::gpudirect {

class DmaBuf {
 public:
  // Of device memory [base, base + bytes) of `gpu`; bytes > 0. The driver gives out whole pages of the host only, so
  // the dma-buf may begin before `base`. Fails with the driver's error, and where it has no dma-bufs.
  static absl::StatusOr<DmaBuf> Export(const PrimaryContext& gpu, DevicePointer base, size_t bytes);

  DmaBuf(DmaBuf&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), offset_(other.offset_) {}
  DmaBuf& operator=(DmaBuf&&) = delete;
  ~DmaBuf();

  int descriptor() const { return descriptor_; }
  uint64_t offset() const { return offset_; }  // of `base` in it, in bytes

 private:
  DmaBuf(int descriptor, uint64_t offset) : descriptor_(descriptor), offset_(offset) {}

  int descriptor_;  // -1: moved away
  const uint64_t offset_;
};

}  // namespace paceline::gpudirect
