// A network plugin of NCCL, loaded by its path and called through the table of one version: whatever the version, one
// set of calls. What a version lacks is said by `version()` and the has_* questions.
//
// Thread rule: as NCCL's: any thread, one at a time per comm. Ownership: the library is unloaded with the object.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "api/nccl/src/abi.h"

namespace paceline::nccl_test {

namespace abi = nccl::abi;

inline constexpr int kOldestVersion = 6, kNewestVersion = 12;

// One send, or one slot of a grouped receive.
struct Slot {
  void* data = nullptr;
  size_t bytes = 0;
  int tag = 0;
  void* memory = nullptr;
  void* parent = nullptr;  // for the profiler, v10 and up
};

class Net {
 public:
  // `version` 0: the newest that the library has, as NCCL looks for it.
  static absl::StatusOr<std::unique_ptr<Net>> Load(const std::string& path, int version);
  virtual ~Net() = default;

  virtual int version() const = 0;
  virtual const char* name() const = 0;
  bool has_profiler() const { return version() >= 10; }

  // `communicator`: stays nullptr before v11.
  virtual abi::Result Init(void** communicator, uint64_t id, int traffic_class, abi::Logger logger,
                           abi::Profiler profiler) = 0;
  virtual abi::Result Finalize(void* communicator) = 0;                                      // before v11: nothing
  virtual abi::Result SetAttributes(void* communicator, abi::NetAttributes attributes) = 0;  // before v11: nothing
  virtual abi::Result Devices(int* count) = 0;
  // What a version does not state is as it was in *properties.
  virtual abi::Result Properties(int device, abi::PropertiesV12* properties) = 0;
  virtual abi::Result MakeVirtualDevice(int* device, int first, int count) = 0;  // of devices first, first + 1, ...

  virtual abi::Result Listen(void* communicator, int device, void* handle, void** listener) = 0;
  virtual abi::Result Connect(void* communicator, int device, int traffic_class, void* handle, void** comm) = 0;
  virtual abi::Result Accept(void* listener, void** comm) = 0;
  virtual abi::Result Register(void* comm, void* data, size_t bytes, int type, void** memory) = 0;
  virtual abi::Result RegisterDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd,
                                     void** memory) = 0;
  virtual abi::Result Deregister(void* comm, void* memory) = 0;
  virtual abi::Result Send(void* comm, const Slot& slot, void** request) = 0;
  virtual abi::Result Receive(void* comm, const Slot* slots, int count, void** request) = 0;
  virtual abi::Result Flush(void* comm, const Slot* slots, int count, void** request) = 0;
  virtual abi::Result Test(void* request, int* done, int* bytes) = 0;
  virtual abi::Result CloseSend(void* comm) = 0;
  virtual abi::Result CloseReceive(void* comm) = 0;
  virtual abi::Result CloseListen(void* listener) = 0;
};

}  // namespace paceline::nccl_test
