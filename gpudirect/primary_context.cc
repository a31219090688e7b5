#include "gpudirect/primary_context.h"

#include "absl/strings/str_cat.h"

namespace paceline::gpudirect {

absl::StatusOr<std::unique_ptr<PrimaryContext>> PrimaryContext::Create(const CudaDriver& driver, int device) {
  if (device < 0 || device >= driver.device_count()) {
    return absl::InvalidArgumentError(absl::StrCat("GPU ", device, "; it may be 0 to ", driver.device_count() - 1));
  }
  int handle = 0;
  if (const CudaResult result = driver.cuDeviceGet(&handle, device); result != kCudaSuccess) {
    return driver.Error("cuDeviceGet", result);
  }
  unsigned flags = 0;
  int active = 0;
  if (const CudaResult result = driver.cuDevicePrimaryCtxGetState(handle, &flags, &active); result != kCudaSuccess) {
    return driver.Error("cuDevicePrimaryCtxGetState", result);
  }
  if (active == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("GPU ", device, " has no primary context, and it is the program's to make one (cudaSetDevice and ",
                     "cudaFree(0), or cuDevicePrimaryCtxRetain) before memory of that GPU is registered"));
  }
  CudaContext context = nullptr;
  if (const CudaResult result = driver.cuDevicePrimaryCtxRetain(&context, handle); result != kCudaSuccess) {
    return driver.Error("cuDevicePrimaryCtxRetain", result);
  }
  return std::unique_ptr<PrimaryContext>(new PrimaryContext(driver, device, handle, context));
}

}  // namespace paceline::gpudirect
