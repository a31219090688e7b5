// The fake CUDA driver for tests of this folder: loaded once, with the calls that only tests make.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "gpudirect/cuda_driver.h"
#include "tests/support/fake_cuda/fake_cuda.h"

namespace paceline::gpudirect {

class FakeGpu {
 public:
  FakeGpu() {
    auto loaded = CudaDriver::Load(PACELINE_FAKE_CUDA);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    driver_ = *std::move(loaded);
    void* library = dlopen(PACELINE_FAKE_CUDA, RTLD_NOW);
    Find(library, "fake_cuda_fail", fail);
    Find(library, "fake_cuda_hold", hold);
    Find(library, "fake_cuda_live", live);
    Find(library, "fake_cuda_flushes", flushes);
    Find(library, "cuMemAlloc_v2", alloc_);
    Find(library, "cuMemAllocManaged", alloc_managed_);
    Find(library, "cuMemFree_v2", free_);
    Find(library, "cuMemcpyDtoH_v2", to_host_);
    Find(library, "cuMemcpyHtoD_v2", to_device_);
    driver_->cuDevicePrimaryCtxRetain(&context_, 0);
  }

  const CudaDriver& driver() const { return *driver_; }
  CudaContext context() const { return context_; }

  DevicePointer Alloc(size_t bytes) {
    const CudaScope scope(*driver_, context_);
    DevicePointer pointer = 0;
    EXPECT_EQ(alloc_(&pointer, bytes), kCudaSuccess);
    return pointer;
  }
  DevicePointer AllocManaged(size_t bytes) {
    const CudaScope scope(*driver_, context_);
    DevicePointer pointer = 0;
    EXPECT_EQ(alloc_managed_(&pointer, bytes, 1), kCudaSuccess);
    return pointer;
  }
  void Free(DevicePointer pointer) {
    const CudaScope scope(*driver_, context_);
    EXPECT_EQ(free_(pointer), kCudaSuccess);
  }
  void Write(DevicePointer to, const std::vector<uint8_t>& from) {
    const CudaScope scope(*driver_, context_);
    EXPECT_EQ(to_device_(to, from.data(), from.size()), kCudaSuccess);
  }
  std::vector<uint8_t> Read(DevicePointer from, size_t bytes) {
    const CudaScope scope(*driver_, context_);
    std::vector<uint8_t> to(bytes);
    EXPECT_EQ(to_host_(to.data(), from, bytes), kCudaSuccess);
    return to;
  }

  fake_cuda::Fail fail = nullptr;
  fake_cuda::Hold hold = nullptr;
  fake_cuda::Live live = nullptr;
  fake_cuda::Flushes flushes = nullptr;

 private:
  template <typename Function>
  static void Find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    EXPECT_NE(function, nullptr) << name;
  }

  std::unique_ptr<CudaDriver> driver_;
  CudaContext context_ = nullptr;
  CudaResult (*alloc_)(DevicePointer*, size_t) = nullptr;
  CudaResult (*alloc_managed_)(DevicePointer*, size_t, unsigned) = nullptr;
  CudaResult (*free_)(DevicePointer) = nullptr;
  CudaResult (*to_host_)(void*, DevicePointer, size_t) = nullptr;
  CudaResult (*to_device_)(DevicePointer, const void*, size_t) = nullptr;
};

inline FakeGpu& Gpu() {
  static auto* gpu = new FakeGpu();
  return *gpu;
}

}  // namespace paceline::gpudirect
