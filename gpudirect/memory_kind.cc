#include "gpudirect/memory_kind.h"

#include <filesystem>

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

const char* RegistrationPathName(RegistrationPath path) {
  switch (path) {
    case RegistrationPath::kDmaBuf:
      return "dma-buf";
    case RegistrationPath::kPeerMemory:
      return "nvidia-peermem";
    case RegistrationPath::kStaging:
      return "staging";
  }
  return "?";
}

RegistrationChoice ChooseRegistration(const CudaDriver& driver, int device, bool lane_places, bool peer_memory) {
  if (!lane_places) {
    return {RegistrationPath::kStaging,
            "the lanes of this build place data by the processor, which reaches host memory"};
  }
  int handle = 0, supported = 0;
  const bool asks = driver.cuDeviceGet(&handle, device) == kCudaSuccess &&
                    driver.cuDeviceGetAttribute(&supported, kDeviceDmaBufSupported, handle) == kCudaSuccess;
  if (driver.cuMemGetHandleForAddressRange != nullptr && asks && supported != 0) {
    return {RegistrationPath::kDmaBuf, "driver and GPU give out dma-bufs"};
  }
  const std::string why = driver.cuMemGetHandleForAddressRange == nullptr
                              ? "the driver is older than CUDA 11.7 and gives out no dma-buf"
                              : "the GPU or the kernel gives out no dma-buf";
  if (peer_memory) return {RegistrationPath::kPeerMemory, why + "; the module nvidia_peermem is loaded"};
  return {RegistrationPath::kStaging, why + ", and the module nvidia_peermem is not loaded"};
}

bool PeerMemoryModuleLoaded() {
  std::error_code error;
  return std::filesystem::exists("/sys/module/nvidia_peermem", error);
}

}  // namespace paceline::gpudirect
