// The primary context of one GPU, which the CUDA runtime and everybody else in the process use too, held while the
// object lives. It is the program's: none is made here, as it takes hundreds of megabytes of the GPU, and stays.
//
// Thread rule: any thread, as the driver allows; what Enter answers belongs to its thread.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "gpudirect/cuda_driver.h"

namespace paceline::gpudirect {

class PrimaryContext {
 public:
  // `device`: ordinal of the GPU. Fails where there is none of that number, where the program has not made its primary
  // context, or with the driver's error. `driver` outlives the object.
  static absl::StatusOr<std::unique_ptr<PrimaryContext>> Create(const CudaDriver& driver, int device);
  ~PrimaryContext() { driver_.cuDevicePrimaryCtxRelease(handle_); }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  // Current for this thread while the answer lives.
  CudaScope Enter() const { return {driver_, context_}; }
  const CudaDriver& driver() const { return driver_; }
  int device() const { return device_; }

 private:
  PrimaryContext(const CudaDriver& driver, int device, int handle, CudaContext context)
      : driver_(driver), device_(device), handle_(handle), context_(context) {}

  const CudaDriver& driver_;
  const int device_;
  const int handle_;
  CudaContext context_;
};

}  // namespace paceline::gpudirect
