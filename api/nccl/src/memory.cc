#include "api/nccl/src/memory.h"

#include "api/nccl/src/abi.h"
#include "gpudirect/memory_kind.h"

namespace paceline::nccl {

api::Result<std::unique_ptr<Memory>> Memory::Register(const std::shared_ptr<Device>& device, void* data, size_t bytes,
                                                      int type, const gpudirect::CudaDriver* cuda) {
  if (type != abi::kPointerHost && (type != abi::kPointerCuda || cuda == nullptr)) {
    return api::Status(api::StatusCode::kUnimplemented, "memory of type " + std::to_string(type) +
                                                            "; host memory (1) can be used, that of a GPU (2) where "
                                                            "PACELINE_GPU_STAGING=1 is set and a CUDA driver is there");
  }
  std::unique_ptr<Memory> memory(new Memory());
  memory->data_ = data;
  memory->bytes_ = bytes;
  if (type == abi::kPointerCuda) {
    const gpudirect::MemoryInfo info = gpudirect::FindMemory(*cuda, data);
    if (info.kind == gpudirect::MemoryKind::kDevice || info.kind == gpudirect::MemoryKind::kManaged) {
      memory->cuda_ = cuda;
      memory->gpu_ = info.device;
      const auto copies = device->CopiesFor(*cuda, info.device);
      if (!copies.ok()) return copies.status();
      return memory;
    }
  }
  const auto region = device->context().RegisterMemory(data, bytes, api::kLocalOnly);
  if (!region.ok()) return region.status();
  memory->owner_ = device.get();
  memory->device_ = device;
  memory->region_ = *region;
  return memory;
}

api::Result<const GpuCopies*> Memory::CopiesFor(Device& device) const {
  if (cuda_ == nullptr) return static_cast<const GpuCopies*>(nullptr);
  return device.CopiesFor(*cuda_, gpu_);
}

Memory::~Memory() {
  const std::shared_ptr<Device> device = device_.lock();
  if (device == nullptr) return;
  const auto lock = device->Lock();
  device->context().DeregisterMemory(region_);
}

api::RegionId Memory::RegionFor(const Device& device) const {
  return &device == owner_ && !device_.expired() ? region_ : 0;
}

bool Memory::Holds(const void* data, size_t bytes) const {
  const auto* first = static_cast<const uint8_t*>(data_);
  const auto* at = static_cast<const uint8_t*>(data);
  return at >= first && bytes <= bytes_ && static_cast<size_t>(at - first) <= bytes_ - bytes;
}

}  // namespace paceline::nccl
