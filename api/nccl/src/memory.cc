#include "api/nccl/src/memory.h"

#include "api/nccl/src/abi.h"

namespace paceline::nccl {

api::Result<std::unique_ptr<Memory>> Memory::Register(std::shared_ptr<Device> device, void* data, size_t bytes,
                                                      int type) {
  if (type != abi::kPointerHost) {
    return api::Status(api::StatusCode::kUnimplemented,
                       "memory of type " + std::to_string(type) + "; only host memory (1) can be used");
  }
  const auto region = device->context().RegisterMemory(data, bytes, api::kLocalOnly);
  if (!region.ok()) return region.status();
  std::unique_ptr<Memory> memory(new Memory());
  memory->owner_ = device.get();
  memory->device_ = std::move(device);
  memory->region_ = *region;
  memory->data_ = data;
  memory->bytes_ = bytes;
  return memory;
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
