// A private stream on the primary context of one GPU, and the copies that it carries between that GPU's memory and the
// host's. Being private, it waits for nobody's kernels: device memory that is copied from has to be complete before.
//
// Thread rule: one thread at a time. Ownership: holds the context; its end waits for the copies that still run.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpudirect/cuda_driver.h"
#include "gpudirect/primary_context.h"

namespace paceline::gpudirect {

class DeviceStream {
 public:
  // `device`: ordinal of the GPU. Fails where there is none of that number, or with the driver's error. `driver`
  // outlives the stream.
  static absl::StatusOr<std::unique_ptr<DeviceStream>> Create(const CudaDriver& driver, int device);
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  // Start a copy, which comes after those started before; or the driver's error, and none has started.
  absl::Status StartToHost(void* to, DevicePointer from, size_t bytes);
  absl::Status StartToDevice(DevicePointer to, const void* from, size_t bytes);
  // Returns when no copy runs any more; an error: what was copied is not to be relied on.
  absl::Status Wait();

  // Makes the context current while it lives, for calls about this stream's events and memory.
  CudaScope Enter() const { return context_->Enter(); }
  CudaStream stream() const { return stream_; }
  int device() const { return context_->device(); }

 private:
  DeviceStream(std::unique_ptr<PrimaryContext> context, CudaStream stream)
      : context_(std::move(context)), driver_(context_->driver()), stream_(stream) {}

  const std::unique_ptr<PrimaryContext> context_;
  const CudaDriver& driver_;
  CudaStream stream_;
};

}  // namespace paceline::gpudirect
