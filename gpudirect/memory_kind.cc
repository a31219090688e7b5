#include "gpudirect/memory_kind.h"

namespace paceline::gpudirect {

const char* MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHost:
      return "host";
    case MemoryKind::kPinned:
      return "pinned";
    case MemoryKind::kManaged:
      return "managed";
    case MemoryKind::kDevice:
      return "device";
  }
  return "?";
}

MemoryInfo FindMemory(const CudaDriver& driver, const void* pointer) {
  unsigned type = 0;
  int managed = 0, ordinal = -1;
  unsigned long long buffer_id = 0;
  int attributes[] = {kAttributeMemoryType, kAttributeIsManaged, kAttributeDeviceOrdinal, kAttributeBufferId};
  void* data[] = {&type, &managed, &ordinal, &buffer_id};
  // Unlike its singular sister this call answers success for memory that the driver does not know, with zeros.
  const CudaResult result =
      driver.cuPointerGetAttributes(4, attributes, data, reinterpret_cast<DevicePointer>(pointer));
  if (result != kCudaSuccess || type == 0) return {};
  MemoryInfo info{.device = ordinal, .buffer_id = buffer_id};
  if (managed != 0) {
    info.kind = MemoryKind::kManaged;
  } else {
    info.kind = type == kMemoryTypeDevice ? MemoryKind::kDevice : MemoryKind::kPinned;
  }
  return info;
}

}  // namespace paceline::gpudirect
