// What a process has of the plugin: its devices, the communicators that NCCL has announced, and the entries behind all
// versions of NCCL's table (tables.cc has the shims). Every entry answers with one of NCCL's results and says why in
// NCCL's log; none throws, none blocks but the last close of a device (ContextOptions::linger_ms).
//
// Thread rule: any thread; a lock of its own for what the process shares, a device's lock for the rest.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "api/nccl/src/abi.h"
#include "api/nccl/src/comm.h"
#include "api/nccl/src/device.h"
#include "api/nccl/src/gpu_plan.h"
#include "api/nccl/src/memory.h"
#include "api/nccl/src/nics.h"

namespace paceline::nccl {

// By device, traffic class and handle: NCCL comes back with the same 128 bytes. Two threads may connect to one handle
// at a time; each takes one of the attempts.
using Attempts = std::multimap<std::tuple<int, int, std::string>, Attempt>;

// One communicator of NCCL (v11 and up: from init to finalize; before: one for the process, without end).
struct Communicator {
  uint64_t id = 0;
  int traffic_class = abi::kUndefined;
  abi::NetAttributes attributes{};
  std::set<Comm*> comms;  // open ones, so that finalize leaves none
  std::set<Listener*> listeners;
  Attempts attempts;
};

struct DeviceProperties {
  const Nic* nic;
  int pointer_support;
  bool force_flush;
  size_t most_bytes;  // of a message
};

class Plugin {
 public:
  static Plugin& Get();

  // v11 and up. `traffic_class`: abi::kUndefined for what PACELINE_TRAFFIC_CLASS says.
  abi::Result Init(Communicator** communicator, uint64_t id, int traffic_class, abi::Logger logger,
                   abi::Profiler profiler);
  abi::Result InitOnce(abi::Logger logger, abi::Profiler profiler);  // before
  abi::Result Finalize(Communicator* communicator);
  abi::Result SetAttributes(Communicator* communicator, const abi::NetAttributes& attributes);

  abi::Result Devices(int* count);
  abi::Result Properties(int device, DeviceProperties* properties);
  abi::Result MakeVirtualDevice(int* device, const std::vector<int>& parts);

  // `communicator`: nullptr before v11.
  abi::Result Listen(Communicator* communicator, int device, void* handle, Listener** listener);
  // *comm stays nullptr until the connection is there. `traffic_class` as in Init, over the communicator's.
  abi::Result Connect(Communicator* communicator, int device, int traffic_class, const void* handle, Comm** comm);
  abi::Result Accept(Listener* listener, Comm** comm);

  // `doing`: NCCL's name for the call.
  abi::Result RegisterMemory(const char* doing, Comm* comm, void* data, size_t bytes, int type,
                             const GivenDmaBuf& dma_buf, Memory** memory);
  abi::Result Close(Comm* comm);
  abi::Result Close(Listener* listener);

 private:
  Plugin() = default;
  // Where the library is unloaded, and at the very end of a process. Not with what has static storage: the threads of a
  // process that ends by exit() with comms open, NCCL's and ours, go on until it is gone.
  [[gnu::destructor]] static void Free();
  abi::Result Start(abi::Logger logger, abi::Profiler profiler);               // under mutex_
  abi::Result FindCuda(const api::ContextOptions& options, const Nics& nics);  // under mutex_
  GpuPlan PlanFor(const Nic& nic) const;                                       // under mutex_
  Communicator* Known(Communicator* communicator);                             // under mutex_; nullptr: never announced
  // As they are now: a later Init of another thread may change them.
  abi::Profiler CurrentProfiler();
  // The device, opened if it was not, and whose comms these are. *traffic_class: abi::kUndefined, or as asked for; then
  // as it is.
  abi::Result Reach(Communicator* communicator, int number, int* traffic_class, std::shared_ptr<Device>* device,
                    Communicator** owner);
  // Before v11 nothing else says that NCCL is done with the plugin.
  Attempts AbandonedAttempts();  // under mutex_

  std::mutex mutex_;
  abi::Profiler profiler_ = nullptr;
  std::optional<api::ContextOptions> options_;  // once started
  std::optional<Nics> nics_;
  // Virtual devices that were there when the last communicator went. NCCL may keep the plugin beyond that
  // (NCCL_NET_PLUGIN_REF_COUNT=1), and then goes on with their numbers; where it begins anew, it counts devices first.
  std::vector<std::vector<int>> merged_;
  bool merged_again_ = false;                                     // nics_ has them
  const gpudirect::CudaDriver* cuda_ = nullptr;                   // nullptr: no memory of GPUs is taken
  bool gpu_staging_ = false;                                      // PACELINE_GPU_STAGING
  std::map<std::pair<int, int>, std::weak_ptr<Device>> devices_;  // by number and traffic class
  std::map<Communicator*, std::unique_ptr<Communicator>> communicators_;
  Communicator process_;  // stands for all before v11
};

}  // namespace paceline::nccl
