#include "api/cpp/src/cuda_copier.h"

#include <string>
#include <utility>

namespace paceline::api {
namespace {

gpudirect::DevicePointer ToPointer(const void* address) { return reinterpret_cast<gpudirect::DevicePointer>(address); }

}  // namespace

Status CudaCopier::Prepare(int device) {
  if (copies_.contains(device)) return Status();
  std::string reason;
  const gpudirect::CudaDriver* driver = gpudirect::CudaDriver::Get(&reason);
  if (driver == nullptr) return Status(StatusCode::kUnavailable, reason);
  auto copy = gpudirect::DeviceCopy::Create(*driver, device);
  if (!copy.ok()) return Status(StatusCode::kUnavailable, std::string(copy.status().message()));
  copies_[device] = *std::move(copy);
  return Status();
}

bool CudaCopier::FromDevice(int device, void* to, const void* from, size_t bytes) {
  const auto found = copies_.find(device);
  return found != copies_.end() && found->second->ToHost(to, ToPointer(from), bytes).ok();
}

bool CudaCopier::ToDevice(int device, void* to, const void* from, size_t bytes) {
  const auto found = copies_.find(device);
  return found != copies_.end() && found->second->ToDevice(ToPointer(to), from, bytes).ok();
}

}  // namespace paceline::api
