// Copies between device memory and pinned host buffers, for lanes that the processor feeds. Copies run on a private
// stream, so that they wait for nobody's kernels and overlap with what the network does; each ends with an event that
// is asked for, never waited for.
//
// The caller has to see to it that device memory it sends is complete before the copy starts, as for any stream (NCCL
// and MPI do).
//
// Thread rule: one thread at a time. Ownership: owns a stream (DeviceStream), events and buffers; pinned memory is
// bounded by `pool_bytes`, kept when given back, and freed with the object; pageable memory is freed when given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "gpudirect/cuda_driver.h"
#include "gpudirect/device_stream.h"

namespace paceline::gpudirect {

class Staging {
 public:
  // For memory of one GPU. `pool_bytes`: of pinned buffers, all together.
  static absl::StatusOr<std::unique_ptr<Staging>> Create(const CudaDriver& driver, int device, size_t pool_bytes);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // A pinned buffer, or nullptr: the pool is in use, ask again when one has been given back. More than `pool_bytes` is
  // never had: see Fits.
  void* Take(size_t bytes);
  // An ordinary, pageable buffer beside the pool, for what must not wait; nullptr: no memory. How many there are is the
  // caller's to bound. Copies to and from it are slower, and may hold up the caller while they run.
  void* TakeBesidePool(size_t bytes);
  // Of either kind.
  void Give(void* buffer);
  bool Fits(size_t bytes) const { return RoundUp(bytes) <= pool_bytes_; }

  // Starts a copy; the event to ask Poll for, or the driver's error.
  absl::StatusOr<CudaEvent> CopyToHost(void* to, DevicePointer from, size_t bytes);
  absl::StatusOr<CudaEvent> CopyToDevice(DevicePointer to, const void* from, size_t bytes);

  enum class State : uint8_t { kPending, kDone, kFailed };
  // After kDone or kFailed the event is gone.
  State Poll(CudaEvent event);
  // Waits until no copy runs any more: before memory of one that is not done is handed back. The event is gone.
  void Abandon(CudaEvent event);

  size_t pinned_bytes() const { return pinned_bytes_; }
  int device() const { return stream_->device(); }

 private:
  Staging(const CudaDriver& driver, std::unique_ptr<DeviceStream> stream, size_t pool_bytes);
  static size_t RoundUp(size_t bytes);
  absl::StatusOr<CudaEvent> Mark();
  void WaitForCopies();
  void FreeUnused();

  const CudaDriver& driver_;
  const std::unique_ptr<DeviceStream> stream_;
  const size_t pool_bytes_;
  size_t pinned_bytes_ = 0;
  std::map<void*, std::unique_ptr<uint8_t[]>> beside_pool_;
  std::map<void*, size_t> taken_;                   // sizes by buffer
  std::map<size_t, std::vector<void*>> available_;  // by size
  std::vector<CudaEvent> all_events_;
  std::vector<CudaEvent> unused_events_;
};

}  // namespace paceline::gpudirect
