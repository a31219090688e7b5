#include "gpudirect/device_stream.h"

namespace paceline::gpudirect {

absl::StatusOr<std::unique_ptr<DeviceStream>> DeviceStream::Create(const CudaDriver& driver, int device) {
  auto context = PrimaryContext::Create(driver, device);
  if (!context.ok()) return context.status();
  CudaStream stream = nullptr;
  {
    const CudaScope scope = (*context)->Enter();
    if (const CudaResult result = driver.cuStreamCreate(&stream, kStreamNonBlocking); result != kCudaSuccess) {
      return driver.Error("cuStreamCreate", result);
    }
  }
  return std::unique_ptr<DeviceStream>(new DeviceStream(*std::move(context), stream));
}

DeviceStream::~DeviceStream() {
  const CudaScope scope = Enter();
  driver_.cuStreamSynchronize(stream_);
  driver_.cuStreamDestroy(stream_);
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
