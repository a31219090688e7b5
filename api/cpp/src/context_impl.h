// What a context is inside: one engine, or several that share its connections. Memory is registered with each under the
// same number and key, a listener's requests are spread over them, and completions are taken from all.
//
// Thread rule: as the context's; with several engines each has its thread.
// Ownership: shared by Context, Connection, Listener and ReceiveQueue objects; the last one ends it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "api/cpp/src/context_engine.h"
#include "api/cpp/src/engine_group.h"
#include "paceline/context.h"
#include "transport/lane/file_descriptor.h"

namespace paceline::api {

class ContextImpl {
 public:
  static Result<std::shared_ptr<ContextImpl>> Create(const ContextOptions& options);
  ~ContextImpl();

  ContextEngine& front() { return *engines_.front(); }  // to which all requests to connect come
  ContextEngine& LightestEngine();                      // with the fewest connections
  ContextEngine& NextQueueEngine() {                    // of receive queues, which cannot be spread: in turn
    return *engines_[next_queue_.fetch_add(1, std::memory_order_relaxed) % engines_.size()];
  }

  // ---- listeners. `home`: the engine that takes all requests; nullptr: they are spread.
  uint32_t Listen(const ConnectionSetup& setup, uint64_t service, ContextEngine* home);  // 0: the service has one
  void CloseListener(uint32_t listener);
  Handle HandleOf(uint32_t listener);
  struct Accepted {
    ContextEngine* engine = nullptr;
    ConnectionId connection = kNoConnection;  // none: nothing there
  };
  Accepted Accept(uint32_t listener);
  Accepted WaitAccept(uint32_t listener, std::chrono::nanoseconds timeout);

  // ---- memory
  Result<RegionId> RegisterMemory(void* base, uint64_t bytes, uint8_t access, ConnectionId connection);
  Result<RegionId> RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes, uint8_t access);
  Result<RegionId> RegisterDeviceMemory(void* base, uint64_t bytes, uint8_t access, const DeviceMemory& memory);
  void DeregisterMemory(RegionId region);
  // With several engines without what only connections of one of them could use.
  RemoteMemory ExportMemory(RegionId region);

  // ---- progress
  bool threaded() const { return engines_.front()->threaded(); }
  bool Wait(std::chrono::nanoseconds timeout);
  size_t PollCompletions(Completion* out, size_t room);
  bool Arm();
  int descriptor() const { return several() ? epoll_.get() : engines_.front()->descriptor(); }

  std::vector<Counter> Counters();
  std::vector<std::string> LaneNames();

  CompletionQueue& queue() { return queue_; }

 private:
  struct Listening {
    std::vector<uint32_t> numbers;  // by engine; 0: it has none
    uint64_t nonce = 0;
  };

  ContextImpl() : queue_(this) {}
  Status Open(const ContextOptions& options);
  bool several() const { return group_ != nullptr; }
  Listening Find(uint32_t listener);
  template <typename Register>
  Result<RegionId> RegisterWithAll(const Register& register_with);

  std::unique_ptr<EngineGroup> group_;  // of several engines
  std::mutex listeners_mutex_;
  absl::flat_hash_map<uint32_t, Listening> listeners_;
  absl::flat_hash_set<uint64_t> nonces_;  // of all listeners: no two have the same
  uint32_t last_listener_ = 0;
  std::mutex memory_mutex_;  // the first engine gives no number anew before all have let go of it
  FileDescriptor epoll_;     // several engines: over the descriptors of all
  std::atomic<size_t> next_poll_{0}, next_queue_{0};
  CompletionQueue queue_;
  std::vector<std::unique_ptr<ContextEngine>> engines_;  // last: their threads use the group
};

}  // namespace paceline::api
