#include "gpudirect/staging.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace paceline::gpudirect {
namespace {

constexpr size_t kLeastBuffer = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(const CudaDriver& driver, int device, size_t pool_bytes) {
  auto stream = DeviceStream::Create(driver, device);
  if (!stream.ok()) return stream.status();
  return std::unique_ptr<Staging>(new Staging(driver, *std::move(stream), pool_bytes));
}

Staging::Staging(const CudaDriver& driver, std::unique_ptr<DeviceStream> stream, size_t pool_bytes)
    : driver_(driver), stream_(std::move(stream)), pool_bytes_(pool_bytes) {}

Staging::~Staging() {
  const CudaScope scope = stream_->Enter();
  WaitForCopies();
  for (CudaEvent event : all_events_) driver_.cuEventDestroy(event);
  FreeUnused();
  for (const auto& [buffer, bytes] : taken_) driver_.cuMemFreeHost(buffer);
}

// Its error changes nothing: a copy that is waited for here has failed already, or nobody asks for it any more.
void Staging::WaitForCopies() { stream_->Wait().IgnoreError(); }

// Powers of two, so that buffers fit the next message too.
size_t Staging::RoundUp(size_t bytes) { return std::bit_ceil(std::max(bytes, kLeastBuffer)); }

void* Staging::Take(size_t bytes) {
  const size_t size = RoundUp(bytes);
  if (std::vector<void*>& same = available_[size]; !same.empty()) {
    void* buffer = same.back();
    same.pop_back();
    taken_[buffer] = size;
    return buffer;
  }
  const CudaScope scope = stream_->Enter();
  if (pinned_bytes_ + size > pool_bytes_) FreeUnused();
  if (pinned_bytes_ + size > pool_bytes_) return nullptr;
  void* buffer = nullptr;
  if (driver_.cuMemHostAlloc(&buffer, size, 0) != kCudaSuccess) return nullptr;
  pinned_bytes_ += size;
  taken_[buffer] = size;
  return buffer;
}

void* Staging::TakeBesidePool(size_t bytes) {
  auto* const buffer = new (std::nothrow) uint8_t[bytes];
  if (buffer != nullptr) beside_pool_[buffer].reset(buffer);
  return buffer;
}

void Staging::Give(void* buffer) {
  if (beside_pool_.erase(buffer) > 0) return;
  const auto found = taken_.find(buffer);
  if (found == taken_.end()) return;
  available_[found->second].push_back(buffer);
  taken_.erase(found);
}

void Staging::FreeUnused() {
  for (auto& [size, buffers] : available_) {
    for (void* buffer : buffers) driver_.cuMemFreeHost(buffer);
    pinned_bytes_ -= size * buffers.size();
    buffers.clear();
  }
}

absl::StatusOr<CudaEvent> Staging::CopyToHost(void* to, DevicePointer from, size_t bytes) {
  if (absl::Status started = stream_->StartToHost(to, from, bytes); !started.ok()) return started;
  return Mark();
}

absl::StatusOr<CudaEvent> Staging::CopyToDevice(DevicePointer to, const void* from, size_t bytes) {
  if (absl::Status started = stream_->StartToDevice(to, from, bytes); !started.ok()) return started;
  return Mark();
}

absl::StatusOr<CudaEvent> Staging::Mark() {
  const CudaScope scope = stream_->Enter();
  CudaResult result = kCudaSuccess;
  if (unused_events_.empty()) {
    CudaEvent event = nullptr;
    result = driver_.cuEventCreate(&event, kEventDisableTiming);
    if (result == kCudaSuccess) {
      all_events_.push_back(event);
      unused_events_.push_back(event);
    }
  }
  if (result == kCudaSuccess) result = driver_.cuEventRecord(unused_events_.back(), stream_->stream());
  if (result == kCudaSuccess) {
    CudaEvent event = unused_events_.back();
    unused_events_.pop_back();
    return event;
  }
  WaitForCopies();  // the copy runs, and nothing would say when it has ended
  return driver_.Error("cuEventRecord", result);
}

Staging::State Staging::Poll(CudaEvent event) {
  const CudaScope scope = stream_->Enter();
  const CudaResult result = driver_.cuEventQuery(event);
  if (result == kCudaNotReady) return State::kPending;
  unused_events_.push_back(event);
  if (result == kCudaSuccess) return State::kDone;
  WaitForCopies();  // it may still run
  return State::kFailed;
}

void Staging::Abandon(CudaEvent event) {
  const CudaScope scope = stream_->Enter();
  WaitForCopies();
  unused_events_.push_back(event);
}

}  // namespace paceline::gpudirect
