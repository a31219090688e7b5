// Copies between device and host memory that wait: when a call returns, the bytes are there. For the rare copy of one
// who cannot do anything else meanwhile; Staging has those that overlap. Device memory that is copied from has to be
// complete before, as for any stream.
//
// Thread rule: one thread at a time. Ownership: a stream of its own (DeviceStream).
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpudirect/cuda_driver.h"
#include "gpudirect/device_stream.h"

namespace paceline::gpudirect {

class DeviceCopy {
 public:
  // `device`: ordinal of the GPU whose memory is copied. Fails where there is none of that number, or with the driver's
  // error. `driver` outlives the object.
  static absl::StatusOr<std::unique_ptr<DeviceCopy>> Create(const CudaDriver& driver, int device);

  // `bytes` > 0; host memory of any kind. After an error, which has the driver's name for it, what the destination
  // holds is undefined.
  absl::Status ToHost(void* to, DevicePointer from, size_t bytes);
  absl::Status ToDevice(DevicePointer to, const void* from, size_t bytes);

 private:
  explicit DeviceCopy(std::unique_ptr<DeviceStream> stream) : stream_(std::move(stream)) {}

  const std::unique_ptr<DeviceStream> stream_;
};

}  // namespace paceline::gpudirect
