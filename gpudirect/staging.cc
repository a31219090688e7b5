#include "gpudirect/staging.h"

#include <algorithm>
#include <bit>
#include <new>

#include "absl/strings/str_cat.h"

namespace paceline::gpudirect {
namespace {

constexpr size_t kLeastBuffer = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(const CudaDriver& driver, int device, size_t pool_bytes) {
  if (device < 0 || device >= driver.device_count()) {
    return absl::InvalidArgumentError(absl::StrCat("GPU ", device, "; it may be 0 to ", driver.device_count() - 1));
  }
  std::unique_ptr<Staging> staging(new Staging(driver, device, pool_bytes));
  if (absl::Status status = staging->Open(); !status.ok()) return status;
  return staging;
}

Staging::Staging(const CudaDriver& driver, int device, size_t pool_bytes)
    : driver_(driver), device_(device), pool_bytes_(pool_bytes) {}

absl::Status Staging::Open() {
  if (const CudaResult result = driver_.cuDeviceGet(&handle_, device_); result != kCudaSuccess) {
    return driver_.Error("cuDeviceGet", result);
  }
  if (const CudaResult result = driver_.cuDevicePrimaryCtxRetain(&context_, handle_); result != kCudaSuccess) {
    context_ = nullptr;
    return driver_.Error("cuDevicePrimaryCtxRetain", result);
  }
  const CudaScope scope(driver_, context_);
  if (const CudaResult result = driver_.cuStreamCreate(&stream_, kStreamNonBlocking); result != kCudaSuccess) {
    stream_ = nullptr;
    return driver_.Error("cuStreamCreate", result);
  }
  return absl::OkStatus();
}

Staging::~Staging() {
  if (context_ == nullptr) return;
  {
    const CudaScope scope(driver_, context_);
    if (stream_ != nullptr) {
      driver_.cuStreamSynchronize(stream_);
      driver_.cuStreamDestroy(stream_);
    }
    for (CudaEvent event : all_events_) driver_.cuEventDestroy(event);
    FreeUnused();
    for (const auto& [buffer, bytes] : taken_) driver_.cuMemFreeHost(buffer);
  }
  driver_.cuDevicePrimaryCtxRelease(handle_);
}

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
  const CudaScope scope(driver_, context_);
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
  const CudaScope scope(driver_, context_);
  if (const CudaResult result = driver_.cuMemcpyDtoHAsync(to, from, bytes, stream_); result != kCudaSuccess) {
    return driver_.Error("cuMemcpyDtoHAsync", result);
  }
  return Mark();
}

absl::StatusOr<CudaEvent> Staging::CopyToDevice(DevicePointer to, const void* from, size_t bytes) {
  const CudaScope scope(driver_, context_);
  if (const CudaResult result = driver_.cuMemcpyHtoDAsync(to, from, bytes, stream_); result != kCudaSuccess) {
    return driver_.Error("cuMemcpyHtoDAsync", result);
  }
  return Mark();
}

absl::StatusOr<CudaEvent> Staging::Mark() {
  CudaResult result = kCudaSuccess;
  if (unused_events_.empty()) {
    CudaEvent event = nullptr;
    result = driver_.cuEventCreate(&event, kEventDisableTiming);
    if (result == kCudaSuccess) {
      all_events_.push_back(event);
      unused_events_.push_back(event);
    }
  }
  if (result == kCudaSuccess) result = driver_.cuEventRecord(unused_events_.back(), stream_);
  if (result == kCudaSuccess) {
    CudaEvent event = unused_events_.back();
    unused_events_.pop_back();
    return event;
  }
  driver_.cuStreamSynchronize(stream_);  // the copy runs, and nothing would say when it has ended
  return driver_.Error("cuEventRecord", result);
}

Staging::State Staging::Poll(CudaEvent event) {
  const CudaScope scope(driver_, context_);
  const CudaResult result = driver_.cuEventQuery(event);
  if (result == kCudaNotReady) return State::kPending;
  unused_events_.push_back(event);
  if (result == kCudaSuccess) return State::kDone;
  driver_.cuStreamSynchronize(stream_);  // it may still run
  return State::kFailed;
}

void Staging::Abandon(CudaEvent event) {
  const CudaScope scope(driver_, context_);
  driver_.cuStreamSynchronize(stream_);
  unused_events_.push_back(event);
}

}  // namespace paceline::gpudirect
