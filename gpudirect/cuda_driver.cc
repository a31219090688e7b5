#include "gpudirect/cuda_driver.h"

#include <dlfcn.h>

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace paceline::gpudirect {
namespace {

// What Get gives. It goes with the library that has this code, or with the process, behind all objects of static
// storage, which may use it to their end.
const absl::StatusOr<std::unique_ptr<CudaDriver>>* the_driver = nullptr;
// (101: behind all that has no number.)
[[gnu::destructor(101)]] void FreeTheDriver() { delete the_driver; }

}  // namespace

absl::Status CudaDriver::Resolve(void* library) {
  std::string missing;
  // The driver's current functions have a version in their name where an older one of other meaning exists.
  const auto find = [&](auto& function, const char* name, bool needed = true) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && needed && missing.empty()) missing = name;
  };
  find(cuInit, "cuInit");
  find(cuDriverGetVersion, "cuDriverGetVersion");
  find(cuGetErrorName, "cuGetErrorName");
  find(cuDeviceGetCount, "cuDeviceGetCount");
  find(cuDeviceGet, "cuDeviceGet");
  find(cuDeviceGetName, "cuDeviceGetName");
  find(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId");
  find(cuDeviceGetAttribute, "cuDeviceGetAttribute");
  find(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState");
  find(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  find(cuCtxPushCurrent, "cuCtxPushCurrent_v2");
  find(cuCtxPopCurrent, "cuCtxPopCurrent_v2");
  find(cuPointerGetAttributes, "cuPointerGetAttributes");
  find(cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", false);
  find(cuFlushGPUDirectRDMAWrites, "cuFlushGPUDirectRDMAWrites", false);
  find(cuMemHostAlloc, "cuMemHostAlloc");
  find(cuMemFreeHost, "cuMemFreeHost");
  find(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  find(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  find(cuStreamCreate, "cuStreamCreate");
  find(cuStreamDestroy, "cuStreamDestroy_v2");
  find(cuStreamSynchronize, "cuStreamSynchronize");
  find(cuEventCreate, "cuEventCreate");
  find(cuEventDestroy, "cuEventDestroy_v2");
  find(cuEventRecord, "cuEventRecord");
  find(cuEventQuery, "cuEventQuery");
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("it lacks the function ", missing));
}

absl::StatusOr<std::unique_ptr<CudaDriver>> CudaDriver::Load(const std::string& library) {
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return absl::NotFoundError(absl::StrCat("no CUDA driver can be loaded: ", dlerror()));
  std::unique_ptr<CudaDriver> driver(new CudaDriver());
  if (absl::Status status = driver->Resolve(loaded); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(library, ": ", status.message()));
  }
  if (const CudaResult result = driver->cuInit(0); result != kCudaSuccess) return driver->Error("cuInit", result);
  if (driver->cuDeviceGetCount(&driver->device_count_) != kCudaSuccess || driver->device_count_ == 0) {
    return absl::NotFoundError("the CUDA driver sees no device");
  }
  driver->cuDriverGetVersion(&driver->version_);
  return driver;
}

const CudaDriver* CudaDriver::Get(std::string* reason) {
  static const auto& driver = *(the_driver = new absl::StatusOr(Load()));
  if (driver.ok()) return driver->get();
  if (reason != nullptr) *reason = std::string(driver.status().message());
  return nullptr;
}

absl::Status CudaDriver::Error(const char* call, CudaResult result) const {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != kCudaSuccess || name == nullptr) name = "unknown error";
  return absl::InternalError(absl::StrCat(call, ": ", name, " (", result, ")"));
}

}  // namespace paceline::gpudirect
