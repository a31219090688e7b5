#include "gpudirect/registration_path.h"

#include <filesystem>

namespace paceline::gpudirect {
namespace {

// 0 also where the driver does not know the attribute.
int Attribute(const CudaDriver& driver, int device, int attribute) {
  int handle = 0, value = 0;
  const bool answered = driver.cuDeviceGet(&handle, device) == kCudaSuccess &&
                        driver.cuDeviceGetAttribute(&value, attribute, handle) == kCudaSuccess;
  return answered ? value : 0;
}

// Empty: nothing keeps this GPU's memory from travelling as a dma-buf.
std::string WhyNoDmaBuf(const CudaDriver& driver, int device, const CardAbilities& card) {
  if (driver.cuMemGetHandleForAddressRange == nullptr) {
    return "the driver is older than CUDA 11.7 and gives out no dma-buf";
  }
  if (Attribute(driver, device, kDeviceDmaBufSupported) == 0) return "the GPU or the kernel gives out no dma-buf";
  return card.dma_buf_problem.empty() ? "" : "the card takes no dma-buf (" + card.dma_buf_problem + ")";
}

RegistrationChoice ChooseReach(const CudaDriver& driver, int device, const CardAbilities& card) {
  const std::string why = WhyNoDmaBuf(driver, device, card);
  if (why.empty()) return {.path = RegistrationPath::kDmaBuf, .reason = "GPU and card have dma-bufs"};
  if (!card.peer_memory) return {.reason = why + ", and the module nvidia_peermem is not loaded"};
  if (Attribute(driver, device, kDeviceGpuDirectRdmaSupported) == 0) {
    return {.reason = why + ", and the GPU has no GPUDirect RDMA, which the module nvidia_peermem needs"};
  }
  return {.path = RegistrationPath::kPeerMemory, .reason = why + "; the module nvidia_peermem is loaded"};
}

}  // namespace

const char* RegistrationPathName(RegistrationPath path) {
  switch (path) {
    case RegistrationPath::kDmaBuf:
      return "dma-buf";
    case RegistrationPath::kPeerMemory:
      return "nvidia-peermem";
    case RegistrationPath::kStaging:
      return "staging";
  }
  return "?";
}

RegistrationChoice ChooseRegistration(const CudaDriver& driver, int device, const CardAbilities& card) {
  if (!card.places) return {.reason = "the lane places data by the processor, which reaches host memory"};
  RegistrationChoice choice = ChooseReach(driver, device, card);
  if (choice.path == RegistrationPath::kStaging) return choice;
  choice.needs_flush = Attribute(driver, device, kDeviceWritesOrdering) < kOrderedToOwner;
  const bool can_flush = driver.cuFlushGPUDirectRDMAWrites != nullptr &&
                         (Attribute(driver, device, kDeviceFlushWritesOptions) & kFlushByHost) != 0;
  if (choice.needs_flush && !can_flush) {
    return {.reason = "what a card writes into this GPU has to be flushed, and the host cannot do that"};
  }
  return choice;
}

bool PeerMemoryModuleLoaded() {
  std::error_code error;
  return std::filesystem::exists("/sys/module/nvidia_peermem", error);
}

absl::Status FlushRemoteWrites(const PrimaryContext& gpu) {
  const CudaScope scope = gpu.Enter();
  const CudaResult result = gpu.driver().cuFlushGPUDirectRDMAWrites(kFlushCurrentContext, kFlushToOwner);
  return result == kCudaSuccess ? absl::OkStatus() : gpu.driver().Error("cuFlushGPUDirectRDMAWrites", result);
}

}  // namespace paceline::gpudirect
