#include "gpudirect/device_stream.h"

#include "absl/strings/str_cat.h"

namespace paceline::gpudirect {

absl::StatusOr<std::unique_ptr<DeviceStream>> DeviceStream::Create(const CudaDriver& driver, int device) {
  if (device < 0 || device >= driver.device_count()) {
    return absl::InvalidArgumentError(absl::StrCat("GPU ", device, "; it may be 0 to ", driver.device_count() - 1));
  }
  std::unique_ptr<DeviceStream> stream(new DeviceStream(driver, device));
  if (absl::Status status = stream->Open(); !status.ok()) return status;
  return stream;
}

absl::Status DeviceStream::Open() {
  if (const CudaResult result = driver_.cuDeviceGet(&handle_, device_); result != kCudaSuccess) {
    return driver_.Error("cuDeviceGet", result);
  }
  if (const CudaResult result = driver_.cuDevicePrimaryCtxRetain(&context_, handle_); result != kCudaSuccess) {
    context_ = nullptr;
    return driver_.Error("cuDevicePrimaryCtxRetain", result);
  }
  const CudaScope scope = Enter();
  if (const CudaResult result = driver_.cuStreamCreate(&stream_, kStreamNonBlocking); result != kCudaSuccess) {
    stream_ = nullptr;
    return driver_.Error("cuStreamCreate", result);
  }
  return absl::OkStatus();
}

DeviceStream::~DeviceStream() {
  if (context_ == nullptr) return;
  if (stream_ != nullptr) {
    const CudaScope scope = Enter();
    driver_.cuStreamSynchronize(stream_);
    driver_.cuStreamDestroy(stream_);
  }
  driver_.cuDevicePrimaryCtxRelease(handle_);
}

absl::Status DeviceStream::StartToHost(void* to, DevicePointer from, size_t bytes) {
  const CudaScope scope = Enter();
  const CudaResult result = driver_.cuMemcpyDtoHAsync(to, from, bytes, stream_);
  return result == kCudaSuccess ? absl::OkStatus() : driver_.Error("cuMemcpyDtoHAsync", result);
}

absl::Status DeviceStream::StartToDevice(DevicePointer to, const void* from, size_t bytes) {
  const CudaScope scope = Enter();
  const CudaResult result = driver_.cuMemcpyHtoDAsync(to, from, bytes, stream_);
  return result == kCudaSuccess ? absl::OkStatus() : driver_.Error("cuMemcpyHtoDAsync", result);
}

absl::Status DeviceStream::Wait() {
  const CudaScope scope = Enter();
  const CudaResult result = driver_.cuStreamSynchronize(stream_);
  return result == kCudaSuccess ? absl::OkStatus() : driver_.Error("cuStreamSynchronize", result);
}

}  // namespace paceline::gpudirect
