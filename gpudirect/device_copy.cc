#include "gpudirect/device_copy.h"

#include <utility>

namespace paceline::gpudirect {

absl::StatusOr<std::unique_ptr<DeviceCopy>> DeviceCopy::Create(const CudaDriver& driver, int device) {
  auto stream = DeviceStream::Create(driver, device);
  if (!stream.ok()) return stream.status();
  return std::unique_ptr<DeviceCopy>(new DeviceCopy(*std::move(stream)));
}

absl::Status DeviceCopy::ToHost(void* to, DevicePointer from, size_t bytes) {
  const absl::Status started = stream_->StartToHost(to, from, bytes);
  return started.ok() ? stream_->Wait() : started;
}

absl::Status DeviceCopy::ToDevice(DevicePointer to, const void* from, size_t bytes) {
  const absl::Status started = stream_->StartToDevice(to, from, bytes);
  return started.ok() ? stream_->Wait() : started;
}

}  // namespace paceline::gpudirect
