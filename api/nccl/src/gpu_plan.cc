#include "api/nccl/src/gpu_plan.h"

#include <algorithm>
#include <map>

#include "api/nccl/src/abi.h"

namespace paceline::nccl {
namespace {

using gpudirect::RegistrationChoice;
using gpudirect::RegistrationPath;

}  // namespace

GpuPlan GpuPlan::Make(const gpudirect::CudaDriver* driver, const Nic& nic, bool staging, bool encrypt) {
  GpuPlan plan{.driver = driver, .staging = staging};
  if (driver == nullptr) return plan;
  gpudirect::CardAbilities card = nic.card;
  card.peer_memory = gpudirect::PeerMemoryModuleLoaded();
  for (int gpu = 0; gpu < driver->device_count(); ++gpu) {
    plan.choices.push_back(encrypt && card.places
                               ? RegistrationChoice{.reason = "encrypted payload goes in packets, which the processor "
                                                              "places"}
                               : ChooseRegistration(*driver, gpu, card));
  }
  return plan;
}

bool GpuPlan::reaches_any() const {
  return std::any_of(choices.begin(), choices.end(),
                     [](const RegistrationChoice& choice) { return choice.path != RegistrationPath::kStaging; });
}

int GpuPlan::pointer_support() const {
  const bool dma_buf = std::any_of(choices.begin(), choices.end(), [](const RegistrationChoice& choice) {
    return choice.path == RegistrationPath::kDmaBuf;
  });
  return abi::kPointerHost | (takes_any() ? abi::kPointerCuda : 0) | (dma_buf ? abi::kPointerDmaBuf : 0);
}

bool GpuPlan::needs_flush() const {
  return std::any_of(choices.begin(), choices.end(),
                     [](const RegistrationChoice& choice) { return choice.needs_flush; });
}

const RegistrationChoice& GpuPlan::ChoiceFor(int gpu) const {
  static const RegistrationChoice unknown{.reason = "the driver says of no GPU that it has this memory"};
  return gpu >= 0 && gpu < static_cast<int>(choices.size()) ? choices[static_cast<size_t>(gpu)] : unknown;
}

std::vector<std::string> GpuPlan::Describe() const {
  std::map<std::string, std::string> gpus;  // by fate
  for (size_t gpu = 0; gpu < choices.size(); ++gpu) {
    const RegistrationChoice& choice = choices[gpu];
    const bool taken = choice.path != RegistrationPath::kStaging || takes_any();
    std::string& list = gpus[(taken ? gpudirect::RegistrationPathName(choice.path) : std::string("not taken")) + " (" +
                             choice.reason + ")"];
    list += (list.empty() ? "" : ", ") + std::to_string(gpu);
  }
  std::vector<std::string> texts;
  texts.reserve(gpus.size());
  for (const auto& [fate, list] : gpus) texts.push_back("GPU " + list + ": " + fate);
  return texts;
}

}  // namespace paceline::nccl
