// One device in use: a context of Paceline, that all comms of the process on this device and traffic class share.
// NCCL's threads move data in test(); while none of them calls, the keeper, a thread of the device, does: peers get
// their acknowledgements and answers also when this rank computes.
//
// Thread rule: everything under lock(), which every entry of the plugin takes; NCCL calls from several threads.
// Ownership: shared by its listeners and comms. With the last of them it ends, the keeper is joined and its
// connections are closed in order (ContextOptions::linger_ms at most).
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/nccl/src/abi.h"
#include "api/nccl/src/gpu_plan.h"
#include "api/nccl/src/nics.h"
#include "gpudirect/primary_context.h"
#include "gpudirect/registration_cache.h"
#include "gpudirect/staging.h"
#include "paceline/context.h"

namespace paceline::nccl {

inline constexpr size_t kStagingPoolBytes = size_t{32} << 20;  // pinned, per GPU, device and direction

// Copies of one GPU's memory for sends, out of it, and for receives, into it. Each has a pool of its own: receives,
// which NCCL posts ahead, leave the sends theirs.
struct GpuCopies {
  std::unique_ptr<gpudirect::Staging> out, in;
};

class Comm;
class Listener;

class Device {
 public:
  static api::Result<std::shared_ptr<Device>> Open(const Nic& nic, int number, const api::ContextOptions& options,
                                                   GpuPlan gpus);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::unique_lock<std::mutex> Lock() { return std::unique_lock<std::mutex>(mutex_); }
  int number() const { return number_; }

  // ---- under the lock
  // One pass of a caller: data moves, completions go to their requests, connections are taken.
  void Progress() {
    ++calls_;
    Pass();
  }
  api::Context& context() { return *context_; }
  bool matched_sends() const { return matched_sends_; }
  const GpuPlan& gpus() const { return gpus_; }
  // Made at the first call for this GPU, for which gpus() has a driver; valid as long as the device.
  api::Result<const GpuCopies*> CopiesFor(int gpu);
  api::Result<const gpudirect::PrimaryContext*> ContextOf(int gpu);
  // Of memory of GPUs: regions of context().
  gpudirect::RegistrationCache& registrations() { return registrations_; }
  // In NCCL's log, once for each text.
  void TellOnce(const std::string& text);

  void Add(Listener* listener) { listeners_.push_back(listener); }
  void Remove(Listener* listener) { std::erase(listeners_, listener); }
  // Comms that have something to do in each pass, beside completions.
  void Attend(Comm* comm);
  // Takes over a comm that NCCL has closed, until its connection has ended too.
  void Retire(std::unique_ptr<Comm> comm);

 private:
  Device(api::Context context, const Nic& nic, int number, const api::ContextOptions& options, GpuPlan gpus);
  bool Pass();  // true: something happened
  void Reap();
  void Keep();

  std::mutex mutex_;
  const int number_;
  const std::string name_;
  const bool matched_sends_;
  const GpuPlan gpus_;
  std::map<int, GpuCopies> copies_;                                         // by GPU
  std::map<int, std::unique_ptr<gpudirect::PrimaryContext>> gpu_contexts_;  // by GPU
  std::set<std::string> told_;
  std::unique_ptr<api::Context> context_;
  gpudirect::RegistrationCache registrations_{[this](uint64_t region) { context_->DeregisterMemory(region); }};
  std::vector<Listener*> listeners_;
  std::vector<Comm*> attended_;
  std::vector<std::unique_ptr<Comm>> retired_;
  uint64_t calls_ = 0;
  int stop_descriptor_ = -1;
  std::atomic<bool> stop_{false};
  std::thread keeper_;
};

}  // namespace paceline::nccl
