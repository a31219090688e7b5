// A domain: one context of Paceline, that all endpoints, queues and memory of the domain share. Whoever reads a queue
// or a counter moves data for all of it.
//
// Thread rule: every call of the provider takes the Guard of its domain. There is a second thread even where the
// program promises to have but one: the stand-in. Ownership: of the context and of operations; queues, endpoints and
// memory are the program's, who closes them first.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "api/libfabric/src/info.h"
#include "api/libfabric/src/operation.h"
#include "api/libfabric/src/stand_in.h"
#include "api/libfabric/src/use.h"
#include "paceline/context.h"
#include "transport/base/pool.h"

namespace paceline::libfabric {

struct CounterBinding;
class DeferredQueue;
class Endpoint;
class Eq;
class PassiveEndpoint;

class Domain : public fid_domain {
 public:
  Domain(fid_fabric* fabric, api::Context paceline, const fi_info& info);
  ~Domain();

  class Guard {
   public:
    explicit Guard(Domain* domain) : lock_(domain->mutex_) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    const std::lock_guard<std::recursive_mutex> lock_;
  };

  // Once: from now on data moves, slowly, and connections are taken also while the program does not call. Nonzero: why
  // not, as FI_E*.
  int StartStandIn();

  // ---- under the guard
  // One pass: completions go to their queues and counters; without any, and now and then, new connections are taken.
  void Progress();
  // From completion queues: the number of those that are full.
  void OnQueueFull() { ++full_queues_; }
  void OnQueueRead() { --full_queues_; }
  bool is_held_up() const { return full_queues_ > 0; }
  // A send has ended for the program and has yet to leave: the next look at a queue makes it, whatever the queue holds.
  void Owe() { owes_ = true; }
  bool owes() const { return owes_; }
  Operation* NewOperation() { return operations_.New(); }
  void Delete(Operation* operation) {
    injected_bytes_ -= operation->staged_injected;
    operations_.Delete(operation);
  }
  // Whether so many more bytes may be copied for the time of an operation; they are given back with it.
  bool TakeInjected(Operation* operation, uint64_t bytes) {
    if (bytes > kMostInjectedBytes - injected_bytes_) return false;
    injected_bytes_ += operation->staged_injected = bytes;
    return true;
  }
  void Add(Endpoint* endpoint) { endpoints_.push_back(endpoint); }
  void Remove(Endpoint* endpoint) { std::erase(endpoints_, endpoint); }
  // Whose domain this is; nullptr: the program's.
  void SetPassive(PassiveEndpoint* passive) { passive_ = passive; }
  api::Context& paceline() { return paceline_; }
  DeferredQueue& deferred() { return *deferred_; }
  int mr_mode() const { return mr_mode_; }
  fid_fabric* fabric() const { return fabric_; }
  // The event queue of endpoints that have none; nullptr: they have none.
  Eq* eq() const { return eq_.get(); }
  // Regions tell of what peers do with them.
  bool has_remote_events() const { return remote_events_; }
  // The counters that a region is bound to, in place of those it was; none: it is gone.
  void SetCountersOf(api::RegionId region, const std::vector<CounterBinding>& counters);

  // Not under the guard: as fi_domain_bind, or with nullptr its end.
  void BindEq(Eq* eq);

  // Takes and leaves the guard: progress until `ready` (under the guard) is true, sleeping in between; false: `timeout`
  // milliseconds (negative: for ever) have passed, or *interrupted.
  template <typename Ready>
  bool WaitUntil(Ready ready, int timeout);
  // The same without end, for what is over in any case and waits for no queue to be read.
  template <typename Ready>
  void WaitForLast(Ready ready);
  void Interrupt() { paceline_.Interrupt(); }
  int descriptor() { return paceline_.completions().descriptor(); }
  // Under the guard: nothing is to be done until the descriptor is readable.
  bool Arm() { return armed_ = paceline_.completions().Arm(); }

  std::atomic<int> references{0};  // objects that still use it; changes in any thread

 private:
  bool TakeCompletions();
  void CareForConnections();
  bool StandInForProgram();
  void Hand(const api::Completion& completion);
  void HandRemoteAccess(const api::Completion& completion);
  static int64_t NowMillis();
  void Sleep(int64_t until);

  fid_fabric* const fabric_;
  api::Context paceline_;
  std::recursive_mutex mutex_;
  const int mr_mode_;
  const bool remote_events_;
  uint32_t idle_passes_ = 0;
  uint32_t busy_passes_ = 0;
  uint32_t full_queues_ = 0;
  uint32_t waits_for_last_ = 0;
  uint64_t injected_bytes_ = 0;
  bool owes_ = false;     // see Owe
  bool present_ = false;  // the program has called since the stand-in last looked
  bool armed_ = false;    // since its last call: it may be waiting for the descriptor
  bool drained_ = false;  // the context had no more completions, since connections were last cared for
  Pool<Operation> operations_;
  std::vector<Endpoint*> endpoints_;
  PassiveEndpoint* passive_ = nullptr;
  Use<Eq> eq_;
  std::unique_ptr<DeferredQueue> deferred_;
  absl::flat_hash_map<api::RegionId, std::vector<CounterBinding>> region_counters_;
  std::unique_ptr<StandIn> stand_in_;  // the last member: ends before what it moves
};

// Where a domain binds that is opened with a src_addr which names a port.
enum class Places {
  kAny,          // somewhere else: the port is another's
  kPreferNamed,  // there, if it is free
  kNamed,        // there, or it is -FI_EADDRINUSE
};
// 0, or a negative error.
int NewDomain(fid_fabric* fabric, const fi_info& info, Places places, Domain** domain);
int OpenDomain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);

template <typename Ready>
void Domain::WaitForLast(Ready ready) {
  const auto count = [this](uint32_t by) {
    const Guard guard(this);
    waits_for_last_ += by;
  };
  count(1);
  WaitUntil(ready, -1);
  count(-1u);
}

template <typename Ready>
bool Domain::WaitUntil(Ready ready, int timeout) {
  const int64_t deadline = timeout < 0 ? INT64_MAX : NowMillis() + timeout;
  while (true) {
    bool asleep = false;
    {
      const Guard guard(this);
      Progress();
      if (ready()) return true;
      asleep = Arm();
    }
    if (NowMillis() >= deadline) return false;
    if (asleep) Sleep(deadline);
  }
}

}  // namespace paceline::libfabric
