// What a context is inside: the engine with its lanes, progress by the caller or by a thread, the states of connections
// and the way from the core's completions and events to the API's queues.
//
// Thread rule: everything goes through Locked(), which is a plain call with manual progress and a lock with a thread.
// Ownership: shared by Context, Connection and Listener objects; the last one ends it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "api/cpp/src/convert.h"
#include "api/cpp/src/counters_page.h"
#include "api/cpp/src/cuda_copier.h"
#include "paceline/context.h"
#include "transport/engine/clock.h"
#include "transport/engine/engine.h"
#include "transport/engine/progress.h"
#include "transport/engine/progress_thread.h"
#include "transport/lane/file_descriptor.h"

namespace paceline {
class ImpairLane;
}

namespace paceline::api {

class ContextImpl {
 public:
  // `lanes`: instead of those that the options name; none: those.
  static Result<std::shared_ptr<ContextImpl>> Create(const ContextOptions& options,
                                                     std::vector<std::unique_ptr<Lane>> lanes = {});
  ~ContextImpl();

  // Runs `function` with the engine to itself. `posted`: it gives the engine something to do.
  template <typename Function>
  auto Locked(bool posted, Function&& function) {
    if (threaded_) return thread_->Locked(posted, std::forward<Function>(function));
    if (posted) progress_->Kick();
    return function();
  }
  Endpoint& endpoint() { return engine_->endpoint(); }

  // Posts by the member function `post` of Endpoint.
  template <typename Request>
  PostResult Post(paceline::PostResult (Endpoint::*post)(ConnectionId, const Request&, Time, paceline::OperationId*),
                  ConnectionId connection, const Request& request, OperationId* id) {
    return FromCore(Locked(true, [&] { return (endpoint().*post)(connection, request, MonotonicNow(), id); }));
  }

  // ---- connections
  Result<ConnectionId> Connect(const Handle& handle, const ConnectionSetup& setup, const PrivateData& private_data);
  uint32_t Listen(const ConnectionSetup& setup, uint64_t nonce);
  void CloseListener(uint32_t listener);
  Handle ListenHandle(uint32_t listener);
  ConnectionId Accept(uint32_t listener);                        // kNoConnection: nothing there
  bool HasRequest(uint32_t listener) const;                      // inside Locked
  ConnectionState StateUnlocked(ConnectionId connection) const;  // inside Locked
  ConnectionState StateOf(ConnectionId connection);
  CloseCode CloseCodeOf(ConnectionId connection);
  std::string CloseReasonOf(ConnectionId connection);
  std::vector<uint8_t> PrivateDataOf(ConnectionId connection);
  void Close(ConnectionId connection, bool at_once);
  void Forget(ConnectionId connection);  // its Connection object is gone: closed in the background

  // ---- memory
  Result<RegionId> RegisterMemory(void* base, uint64_t bytes, uint8_t access, ConnectionId connection);
  Result<RegionId> RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes, uint8_t access);
  Result<RegionId> RegisterDeviceMemory(void* base, uint64_t bytes, uint8_t access, const DeviceMemory& memory);
  void DeregisterMemory(RegionId region);

  // ---- progress
  bool Pass();      // manual only: one pass
  void Transmit();  // manual only: what is posted and owed leaves, nothing is looked for
  // Makes progress until `done` (asked with the engine to itself) answers true. False: the time is over.
  bool WaitUntil(const std::function<bool()>& done, std::chrono::nanoseconds timeout);
  bool Wait(std::chrono::nanoseconds timeout);
  void Interrupt();
  size_t PollCompletions(Completion* out, size_t room);
  bool Arm();
  int descriptor() const { return threaded_ ? notify_ : progress_->descriptor(); }
  bool threaded() const { return threaded_; }
  bool crowded() const { return progress_->crowded(); }

  // ---- looking in
  std::vector<Counter> Counters();
  std::string PageName() const { return page_ != nullptr ? page_->name() : std::string(); }
  std::vector<std::string> LaneNames();

  CompletionQueue& queue() { return queue_; }

 private:
  struct ConnectionRecord {
    ConnectionState state = ConnectionState::kConnecting;
    bool forgotten = false;
    uint32_t listener = 0;  // not 0: a request that nobody has accepted yet
    CloseCode code = CloseCode::kNone;
    std::string reason;
    std::vector<uint8_t> private_data;
  };

  ContextImpl();
  Status Open(const ContextOptions& options, std::vector<std::unique_ptr<Lane>> lanes);
  std::string MemoryProblems() const;
  void CloseAll();   // at the end, without a progress thread
  Time AfterPass();  // events, notification, counters page; when it wants the next pass at the latest
  void DrainEvents();
  bool FillRing();
  void PublishCounters();
  void NotifyWaiters();
  void Notify();
  // Inside Locked: takes in the notice; if not `ready`, whoever brings something gives the next one.
  bool ArmUnless(const std::function<bool()>& ready);
  // False: all of the time until the deadline has gone by, and nothing came.
  bool IdleOnce(Time deadline);

  CudaCopier copier_;
  absl::flat_hash_map<RegionId, FileDescriptor> dma_bufs_;  // of regions: lanes may be told of one again
  std::unique_ptr<Engine> engine_;
  std::vector<const ImpairLane*> impaired_;  // by port; empty without impairment
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<CountersPage> page_;
  absl::flat_hash_map<ConnectionId, ConnectionRecord> connections_;
  absl::flat_hash_map<uint32_t, std::deque<ConnectionId>> requests_;  // by listener
  std::array<ConnectionEvent, 16> events_;
  std::array<paceline::Completion, 64> ring_;  // taken from the core and not yet by the caller
  size_t ring_next_ = 0;
  size_t ring_count_ = 0;
  bool event_seen_ = false;  // something happened to a connection since the last Wait
  Duration spin_;
  Duration linger_;
  Time published_;
  bool page_is_old_ = false;

  bool threaded_ = false;           // there is a progress thread; set before it runs, unlike thread_
  int notify_ = -1;                 // progress thread: eventfd behind descriptor()
  bool armed_ = false;              // progress thread: somebody waits for notify_
  bool armed_by_caller_ = false;    // by the last Arm, which watches descriptor() on its own
  uint32_t waiters_ = 0;            // progress thread: threads that sleep in Wait
  std::atomic<bool> ready_{false};  // progress thread: a completion or event waits; a hint without the lock
  std::atomic<bool> interrupted_{false};

  CompletionQueue queue_;
  std::unique_ptr<ProgressThread> thread_;  // last: it uses all of the above
};

}  // namespace paceline::api
