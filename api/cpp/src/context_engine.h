// One engine of a context: its lanes, progress by the caller or by a thread, the states of its connections and the way
// from the core's completions and events to the API's queues.
//
// Thread rule: everything goes through Locked(), which is a plain call with manual progress and a lock with a thread.
// Ownership: the context's (context_impl.h).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "api/cpp/src/convert.h"
#include "api/cpp/src/counters_page.h"
#include "api/cpp/src/cuda_copier.h"
#include "api/cpp/src/engine_group.h"
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

class ContextEngine final : public RequestTaker, private RequestRouter {
 public:
  // The one with this number of ContextOptions::engines. `group`: of several; outlives it. `lanes`: instead of those
  // that the options name; none: those.
  static Result<std::unique_ptr<ContextEngine>> Create(const ContextOptions& options, size_t number, EngineGroup* group,
                                                       std::vector<std::unique_ptr<Lane>> lanes = {});
  ~ContextEngine() override;

  // Of several that end together: each begins before the first one waits for its peers.
  void StartClosing();

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
  uint64_t NonceOf(uint32_t listener);
  ListenAddress AddressFor(uint64_t nonce) const;                // by which requests for it come here
  ConnectionId Accept(uint32_t listener);                        // kNoConnection: nothing there
  bool HasRequest(uint32_t listener) const;                      // inside Locked
  ConnectionState StateUnlocked(ConnectionId connection) const;  // inside Locked
  ConnectionState StateOf(ConnectionId connection);
  CloseCode CloseCodeOf(ConnectionId connection);
  std::string CloseReasonOf(ConnectionId connection);
  std::vector<uint8_t> PrivateDataOf(ConnectionId connection);
  void Close(ConnectionId connection, bool at_once);
  void Forget(ConnectionId connection);  // its Connection object is gone: closed in the background

  bool Bring(const ConnectionRequest& request) override;
  size_t load() const override { return load_.load(std::memory_order_relaxed); }

  // ---- memory (`same_as`: in the context's first engine, of others)
  Result<RegionId> RegisterMemory(void* base, uint64_t bytes, uint8_t access, ConnectionId connection,
                                  const RegionName& same_as);
  Result<RegionId> RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes, uint8_t access,
                                    const RegionName& same_as);
  Result<RegionId> RegisterDeviceMemory(void* base, uint64_t bytes, uint8_t access, const DeviceMemory& memory,
                                        const RegionName& same_as);
  void DeregisterMemory(RegionId region);
  RemoteMemory ExportMemory(RegionId region);

  // ---- progress
  bool Pass();      // manual only: one pass
  void Transmit();  // manual only: what is posted and owed leaves, nothing is looked for
  // Makes progress until `done` (asked with the engine to itself) answers true. False: the time is over.
  bool WaitUntil(const std::function<bool()>& done, std::chrono::nanoseconds timeout);
  void Interrupt();
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  bool TakeInterrupt() { return interrupted() && interrupted_.exchange(false); }
  size_t PollCompletions(Completion* out, size_t room);
  bool Arm();
  int descriptor() const { return threaded_ ? notify_ : progress_->descriptor(); }
  bool threaded() const { return threaded_; }
  bool crowded() const { return progress_->crowded(); }
  Duration spin() const { return spin_; }

  // Manual only: Context::Wait.
  bool WaitManually(std::chrono::nanoseconds timeout);
  // Progress thread: who waits for descriptor() here and elsewhere joins, looks, and leaves in the end. JoinWait is
  // called again after each sleep; true: something is there, and he has left.
  bool ready() const { return ready_.load(std::memory_order_acquire); }  // a hint
  bool JoinWait(bool* joined);
  void LeaveWait(bool* joined);

  // ---- looking in
  std::vector<Counter> Counters(size_t first_port = 0);
  std::string PageName() const { return page_ != nullptr ? page_->name() : std::string(); }
  size_t ports() const { return engine_->lanes().size(); }
  std::vector<std::string> LaneNames();

 private:
  struct ConnectionRecord {
    ConnectionState state = ConnectionState::kConnecting;
    bool forgotten = false;
    uint32_t listener = 0;  // not 0: a request that nobody has accepted yet
    CloseCode code = CloseCode::kNone;
    std::string reason;
    std::vector<uint8_t> private_data;
  };

  // A request that came to another engine.
  struct Brought {
    ConnectionRequest request;
    std::vector<uint8_t> body;
  };

  ContextEngine() = default;
  Status Open(const ContextOptions& options, size_t number, EngineGroup* group,
              std::vector<std::unique_ptr<Lane>> lanes);
  PassedOn PassOn(const ConnectionRequest& request, Time now) override;
  bool TakeBrought();  // false: there was none
  std::string MemoryProblems() const;
  void EndConnections(void (Endpoint::*end)(ConnectionId, Time));
  void CloseAll();   // at the end, without a progress thread
  Time AfterPass();  // events, notification, counters page; when it wants the next pass at the latest
  void DrainEvents();
  bool FillRing();
  void PublishCounters();
  void NotifyWaiters();
  void Notify();
  bool TakeReady();  // inside Locked: a completion is there, or an event has been
  bool TakeNewsForThread();
  static uint64_t NextNumber();
  // Inside Locked: takes in the notice; if nothing is ready, whoever brings something gives the next one.
  bool ArmUnlessReady();
  void EndWait(bool* joined);
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
  bool event_seen_ = false;               // something happened to a connection since the last Wait
  uint64_t events_seen_ = 0;              // bursts of such events so far: each thread that waits is to see each
  const uint64_t number_ = NextNumber();  // of this engine in the process
  Duration spin_;
  Duration linger_;
  std::optional<Time> end_;  // of waiting for peers that are told that all is over; nothing: it has not begun
  Time published_;
  bool page_is_old_ = false;

  bool threaded_ = false;           // there is a progress thread; set before it runs, unlike thread_
  int notify_ = -1;                 // progress thread: eventfd behind descriptor()
  bool armed_ = false;              // progress thread: somebody waits for notify_
  bool armed_by_caller_ = false;    // by the last Arm, which watches descriptor() on its own
  uint32_t waiters_ = 0;            // progress thread: threads that sleep in Wait
  std::atomic<bool> ready_{false};  // progress thread: a completion or event waits; a hint without the lock
  std::atomic<bool> interrupted_{false};
  std::atomic<size_t> load_{0};

  EngineGroup* group_ = nullptr;  // of several engines
  std::mutex brought_mutex_;
  std::vector<Brought> brought_;
  std::atomic<bool> any_brought_{false};

  std::unique_ptr<ProgressThread> thread_;  // last: it uses all of the above
};

}  // namespace paceline::api
