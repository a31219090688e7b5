#include "tests/interop/nccl/gpu.h"

#include <dlfcn.h>

#include <string>

#include "tests/interop/nccl/proxy.h"

namespace paceline::nccl_test {
namespace {

using gpudirect::CudaDriver;
using gpudirect::CudaResult;
using gpudirect::CudaScope;
using gpudirect::DevicePointer;

const CudaDriver& Driver() {
  std::string reason;
  const CudaDriver* driver = CudaDriver::Get(&reason);
  Expect(driver != nullptr, reason);
  return *driver;
}

void CheckCuda(CudaResult result, const std::string& what) {
  Expect(result == gpudirect::kCudaSuccess, what + " answered " + std::to_string(result));
}

template <typename Function>
void Find(void* library, const char* name, Function& function) {
  function = library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
  Expect(function != nullptr, std::string("the CUDA driver has no ") + name);
}

}  // namespace

Gpu::Gpu(int device) : driver_(Driver()) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  Find(library, "cuMemAlloc_v2", alloc_);
  Find(library, "cuMemFree_v2", free_);
  Find(library, "cuMemcpyDtoH_v2", to_host_);
  Find(library, "cuMemcpyHtoD_v2", to_device_);
  int handle = 0;
  CheckCuda(driver_.cuDeviceGet(&handle, device), "cuDeviceGet");
  CheckCuda(driver_.cuDevicePrimaryCtxRetain(&context_, handle), "cuDevicePrimaryCtxRetain");
}

DevicePointer Gpu::Alloc(size_t bytes) {
  const CudaScope scope(driver_, context_);
  DevicePointer pointer = 0;
  CheckCuda(alloc_(&pointer, bytes), "cuMemAlloc");
  return pointer;
}

void Gpu::Free(DevicePointer pointer) {
  const CudaScope scope(driver_, context_);
  CheckCuda(free_(pointer), "cuMemFree");
}

void Gpu::Write(DevicePointer to, const void* from, size_t bytes) {
  const CudaScope scope(driver_, context_);
  if (bytes > 0) CheckCuda(to_device_(to, from, bytes), "cuMemcpyHtoD");
}

void Gpu::Read(void* to, DevicePointer from, size_t bytes) {
  const CudaScope scope(driver_, context_);
  if (bytes > 0) CheckCuda(to_host_(to, from, bytes), "cuMemcpyDtoH");
}

}  // namespace paceline::nccl_test
