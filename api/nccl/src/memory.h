// Memory that NCCL has registered. It belongs to the device, not to a comm (regIsGlobal): any comm of the device uses
// it. Memory of a GPU is given to the card where that reaches it (GpuPlan), once however often NCCL registers it, and
// staged elsewhere: also where the card then does not take it, which NCCL's log says.
//
// Thread rule: under the device's lock. Ownership: NCCL's handle; ends with deregMr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "api/nccl/src/device.h"
#include "paceline/context.h"

namespace paceline::nccl {

// What regMrDmaBuf passes beside the memory. The descriptor stays NCCL's, which closes it soon.
struct GivenDmaBuf {
  int descriptor = -1;  // -1: none was passed
  uint64_t offset = 0;
};

class Memory {
 public:
  // `type`: abi::kPointerHost, or kPointerCuda where the device takes that: what only a GPU reaches is its memory, what
  // the processor reaches too is host memory. Fails where it is of a kind that cannot be used here, or of no bytes.
  static api::Result<std::unique_ptr<Memory>> Register(const std::shared_ptr<Device>& device, void* data, size_t bytes,
                                                       int type, const GivenDmaBuf& dma_buf);
  // What is under way with it is aborted, with its comm, unless the same memory of a GPU is registered once more.
  ~Memory();

  // The region for an operation of `device` on [data, data + bytes): that of the context, or, for another device, none.
  api::RegionId RegionFor(const Device& device) const { return IsRegionOf(device) ? region_ : 0; }
  bool Holds(const void* data, size_t bytes) const;
  // The copies that operations of `device` on it need; nullptr: none are needed.
  api::Result<const GpuCopies*> CopiesFor(Device& device) const;
  // Makes what a card of `device` has written here visible to the GPU's kernels, where that takes a call.
  api::Status Flush(Device& device) const;

 private:
  Memory(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  bool IsRegionOf(const Device& device) const;
  // `buffer_id`: as in gpudirect::MemoryInfo.
  api::Result<api::RegionId> GiveToCard(Device& device, uint64_t buffer_id, const GivenDmaBuf& dma_buf);
  api::Result<api::RegionId> RegisterWithCard(Device& device, const GivenDmaBuf& dma_buf) const;
  void Keep(const std::shared_ptr<Device>& device, api::RegionId region);

  std::weak_ptr<Device> device_;  // may have ended before
  const Device* owner_ = nullptr;
  api::RegionId region_ = 0;
  gpudirect::RegistrationCache::Entry* shared_ = nullptr;  // what region_ is of; nullptr: it is of this memory alone
  void* const data_;
  const size_t bytes_;
  int gpu_ = -1;  // whose memory it is; -1: the processor reaches it
};

}  // namespace paceline::nccl
