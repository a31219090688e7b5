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
  CudaContext context = nullptr;
  if (const CudaResult result = driver.cuDevicePrimaryCtxRetain(&context, handle); result != kCudaSuccess) {
    return driver.Error("cuDevicePrimaryCtxRetain", result);
  }
  return std::unique_ptr<PrimaryContext>(new PrimaryContext(driver, device, handle, context));
}

}  // namespace paceline::gpudirect
