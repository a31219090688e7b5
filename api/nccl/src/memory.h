// Memory that NCCL has registered. It belongs to the device, not to a comm (regIsGlobal): any comm of the device uses
// it.
//
// Thread rule: under the device's lock. Ownership: NCCL's handle; ends with deregMr.
#pragma once

#include <cstddef>
#include <memory>

#include "api/nccl/src/device.h"
#include "paceline/context.h"

namespace paceline::nccl {

class Memory {
 public:
  // `type`: abi::kPointerHost, or kPointerCuda, for which `cuda` is needed: memory that only a GPU reaches is staged,
  // what the processor reaches too is host memory. Fails where it is of a kind that cannot be used here, or of no
  // bytes.
  static api::Result<std::unique_ptr<Memory>> Register(const std::shared_ptr<Device>& device, void* data, size_t bytes,
                                                       int type, const gpudirect::CudaDriver* cuda);
  // What is under way with it is aborted, with its comm.
  ~Memory();

  // The region for an operation of `device` on [data, data + bytes): that of the context, or, for another device, none.
  api::RegionId RegionFor(const Device& device) const;
  bool Holds(const void* data, size_t bytes) const;
  // The copies that operations of `device` on it need; nullptr: none are needed.
  api::Result<const GpuCopies*> CopiesFor(Device& device) const;

 private:
  Memory() = default;

  std::weak_ptr<Device> device_;  // may have ended before
  const Device* owner_ = nullptr;
  api::RegionId region_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  const gpudirect::CudaDriver* cuda_ = nullptr;  // staged
  int gpu_ = -1;
};

}  // namespace paceline::nccl
