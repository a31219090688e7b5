#include "gpudirect/dma_buf.h"

#include <unistd.h>

namespace paceline::gpudirect {

absl::StatusOr<DmaBuf> DmaBuf::Export(const PrimaryContext& gpu, DevicePointer base, size_t bytes) {
  const CudaDriver& driver = gpu.driver();
  if (driver.cuMemGetHandleForAddressRange == nullptr) {
    return absl::UnimplementedError("the driver has no cuMemGetHandleForAddressRange");
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const DevicePointer first = base & ~(page - 1);
  const DevicePointer end = (base + bytes + page - 1) & ~(page - 1);
  const CudaScope scope = gpu.Enter();
  int descriptor = -1;
  const CudaResult result = driver.cuMemGetHandleForAddressRange(&descriptor, first, end - first, kHandleTypeDmaBuf, 0);
  if (result != kCudaSuccess) return driver.Error("cuMemGetHandleForAddressRange", result);
  return DmaBuf(descriptor, base - first);
}

DmaBuf::~DmaBuf() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace paceline::gpudirect
