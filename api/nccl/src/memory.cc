#include "api/nccl/src/memory.h"

#include <optional>

#include "api/nccl/src/abi.h"
#include "gpudirect/dma_buf.h"
#include "gpudirect/memory_kind.h"

namespace paceline::nccl {

api::Result<std::unique_ptr<Memory>> Memory::Register(const std::shared_ptr<Device>& device, void* data, size_t bytes,
                                                      int type, const GivenDmaBuf& dma_buf) {
  const bool takes_gpus = device->gpus().takes_any();
  if (type != abi::kPointerHost && (type != abi::kPointerCuda || !takes_gpus)) {
    return api::Status(api::StatusCode::kUnimplemented,
                       "memory of type " + std::to_string(type) +
                           "; host memory (1) can be used, that of a GPU (2) where a CUDA driver is there and the card "
                           "reaches it or PACELINE_GPU_STAGING=1 is set");
  }
  std::unique_ptr<Memory> memory(new Memory(data, bytes));
  gpudirect::MemoryInfo info;
  if (type == abi::kPointerCuda) info = gpudirect::FindMemory(*device->gpus().driver, data);
  const bool on_gpu = info.kind == gpudirect::MemoryKind::kDevice;
  if (!on_gpu && info.kind != gpudirect::MemoryKind::kManaged) {
    const auto region = device->context().RegisterMemory(data, bytes, api::kLocalOnly);
    if (!region.ok()) return region.status();
    memory->Keep(device, *region);
    return memory;
  }
  memory->gpu_ = info.device;
  const auto region = on_gpu ? memory->GiveToCard(*device, info.buffer_id, dma_buf)
                             : api::Status(api::StatusCode::kUnimplemented, "it is managed memory, which moves");
  if (region.ok()) {
    memory->Keep(device, *region);
    return memory;
  }
  device->TellOnce("memory of GPU " + std::to_string(info.device) + " is staged: " + region.status().message());
  const auto copies = device->CopiesFor(info.device);
  if (!copies.ok()) return copies.status();
  return memory;
}

// The region; or why the memory has to be staged.
api::Result<api::RegionId> Memory::GiveToCard(Device& device, uint64_t buffer_id, const GivenDmaBuf& given) {
  if (buffer_id == 0) return RegisterWithCard(device, given);
  const auto base = reinterpret_cast<uintptr_t>(data_);
  shared_ = device.registrations().Find(base, bytes_, buffer_id);
  if (shared_ == nullptr) {
    const auto region = RegisterWithCard(device, given);
    if (!region.ok()) return region.status();
    shared_ = device.registrations().Add(base, bytes_, buffer_id, *region);
  }
  return shared_->registration;
}

api::Result<api::RegionId> Memory::RegisterWithCard(Device& device, const GivenDmaBuf& given) const {
  const gpudirect::RegistrationChoice& choice = device.gpus().ChoiceFor(gpu_);
  if (choice.path == gpudirect::RegistrationPath::kStaging) {
    return api::Status(api::StatusCode::kUnimplemented, choice.reason);
  }
  api::DeviceMemory memory{.ordinal = gpu_};
  std::optional<gpudirect::DmaBuf> own;
  if (choice.path == gpudirect::RegistrationPath::kDmaBuf && given.descriptor >= 0) {
    memory.dma_buf = given.descriptor;
    memory.dma_buf_offset = given.offset;
  } else if (choice.path == gpudirect::RegistrationPath::kDmaBuf) {
    const auto gpu = device.ContextOf(gpu_);
    if (!gpu.ok()) return gpu.status();
    auto made = gpudirect::DmaBuf::Export(**gpu, reinterpret_cast<gpudirect::DevicePointer>(data_), bytes_);
    if (!made.ok()) return api::Status(api::StatusCode::kUnavailable, std::string(made.status().message()));
    own.emplace(*std::move(made));
    memory.dma_buf = own->descriptor();
    memory.dma_buf_offset = own->offset();
  }
  return device.context().RegisterDeviceMemory(data_, bytes_, api::kLocalOnly, memory);
}

void Memory::Keep(const std::shared_ptr<Device>& device, api::RegionId region) {
  owner_ = device.get();
  device_ = device;
  region_ = region;
}

api::Result<const GpuCopies*> Memory::CopiesFor(Device& device) const {
  if (gpu_ < 0 || IsRegionOf(device)) return static_cast<const GpuCopies*>(nullptr);
  return device.CopiesFor(gpu_);
}

api::Status Memory::Flush(Device& device) const {
  if (gpu_ < 0 || !IsRegionOf(device) || !device.gpus().ChoiceFor(gpu_).needs_flush) return {};
  const auto gpu = device.ContextOf(gpu_);
  if (!gpu.ok()) return gpu.status();
  const absl::Status flushed = gpudirect::FlushRemoteWrites(**gpu);
  return flushed.ok() ? api::Status() : api::Status(api::StatusCode::kInternal, std::string(flushed.message()));
}

Memory::~Memory() {
  const std::shared_ptr<Device> device = device_.lock();
  if (device == nullptr) return;
  const auto lock = device->Lock();
  if (shared_ != nullptr) {
    device->registrations().Release(shared_);
  } else {
    device->context().DeregisterMemory(region_);
  }
}

bool Memory::IsRegionOf(const Device& device) const { return &device == owner_ && !device_.expired(); }

bool Memory::Holds(const void* data, size_t bytes) const {
  const auto* first = static_cast<const uint8_t*>(data_);
  const auto* at = static_cast<const uint8_t*>(data);
  return at >= first && bytes <= bytes_ && static_cast<size_t>(at - first) <= bytes_ - bytes;
}

}  // namespace paceline::nccl
