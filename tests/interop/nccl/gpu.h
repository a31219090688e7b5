// A GPU as a program uses it that gives memory of it to a plugin: the calls of the CUDA driver that the transport
// itself has no use for. The driver is the one that the loader finds, real or not.
//
// Thread rule: any thread. Ownership: what Alloc gave is the caller's to free; the primary context stays.
#pragma once

#include <cstdint>
#include <vector>

#include "gpudirect/cuda_driver.h"

namespace paceline::nccl_test {

class Gpu {
 public:
  // Ends the process with a message where there is no driver.
  explicit Gpu(int device = 0);

  const gpudirect::CudaDriver& driver() const { return driver_; }
  gpudirect::CudaContext context() const { return context_; }

  gpudirect::DevicePointer Alloc(size_t bytes);
  void Free(gpudirect::DevicePointer pointer);
  void Write(gpudirect::DevicePointer to, const void* from, size_t bytes);
  void Read(void* to, gpudirect::DevicePointer from, size_t bytes);

 private:
  const gpudirect::CudaDriver& driver_;
  gpudirect::CudaContext context_ = nullptr;
  gpudirect::CudaResult (*alloc_)(gpudirect::DevicePointer*, size_t) = nullptr;
  gpudirect::CudaResult (*free_)(gpudirect::DevicePointer) = nullptr;
  gpudirect::CudaResult (*to_host_)(void*, gpudirect::DevicePointer, size_t) = nullptr;
  gpudirect::CudaResult (*to_device_)(gpudirect::DevicePointer, const void*, size_t) = nullptr;
};

}  // namespace paceline::nccl_test
