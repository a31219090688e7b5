// A host of a study: an engine on its simulated NICs, and the application that posts sends and receives when they are
// due. What happens to a flow is told to FlowEvents.
//
// Thread rule: the fabric's thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "transport/base/time.h"
#include "transport/engine/engine.h"
#include "transport/lane/sim/fabric.h"
#include "transport/lane/sim/sim_lane.h"

namespace paceline::tools {

class FlowEvents {
 public:
  virtual ~FlowEvents() = default;
  virtual void OnStarted(uint32_t flow, Time due) = 0;            // posted; `due`: when it should have been
  virtual void OnSent(uint32_t flow, bool ok, Time now) = 0;      // the sender has the completion
  virtual void OnReceived(uint32_t flow, bool ok, Time now) = 0;  // the receiver has every byte
  virtual void OnTimer(uint32_t timer, Time due) = 0;             // a time asked for with StartTimer has come
};

// What a host has to post for one flow.
struct Posting {
  uint32_t flow = 0;
  bool send = false;
  ConnectionId connection = kNoConnection;
  uint64_t bytes = 0;
  Time due;
};

class Host : public sim::HostDriver {
 public:
  // `lanes`: the host's NICs. `largest_message`: bytes of the largest send or receive.
  static absl::StatusOr<std::unique_ptr<Host>> Create(const EngineOptions& options,
                                                      std::vector<std::unique_ptr<sim::SimLane>> lanes,
                                                      uint64_t largest_message, FlowEvents* events);

  Engine& engine() { return *engine_; }
  Endpoint& endpoint() { return engine_->endpoint(); }

  // Before the run: postings with their time.
  void Schedule(const Posting& posting) { scheduled_.push_back(posting); }
  // Instead of a posting of a receive: one for whichever send arrives over this connection without one, posted when its
  // first packet has arrived. `largest_bytes`: of the sends meant; the largest of all calls counts.
  void AwaitFirstPacket(uint32_t source_host, ConnectionId connection, uint64_t largest_bytes);
  // Sorts; returns when to be polled first.
  Time Prepare();
  // During the run: as soon as possible. The caller requests a poll.
  void PostNow(const Posting& posting) { Ready(posting).push_back(posting); }
  // At any time: OnTimer(timer) at `due`. During the run the caller requests a poll for then.
  void StartTimer(uint32_t timer, Time due) { timers_.emplace(due, timer); }

  Time Poll(Time now) override;

 private:
  class SourceRecorder;  // a lane, noting whom arrivals come from

  Host(FlowEvents* events, uint32_t nics) : events_(events), nics_(nics) {}
  void TellTimers(Time now);
  bool PostDue(Time now);
  bool Post(const Posting& posting, Time now);
  bool TakeCompletions(Time now);
  bool PostForUnexpected(Time now);
  std::deque<Posting>& Ready(const Posting& posting) { return posting.send ? ready_sends_ : ready_receives_; }
  bool any_ready() const { return !ready_sends_.empty() || !ready_receives_.empty(); }

  FlowEvents* const events_;
  const uint32_t nics_;            // of each host
  std::vector<uint32_t> sources_;  // NICs from which something came in this pass
  std::unique_ptr<Engine> engine_;
  RegionId region_ = kUnregistered;
  std::vector<Posting> scheduled_;  // ascending by time
  size_t next_scheduled_ = 0;
  // Met a bound of the endpoint, or are due; a send does not wait for a receive, which waits for the peer's sends.
  std::deque<Posting> ready_sends_, ready_receives_;
  std::set<std::pair<Time, uint32_t>> timers_;  // in order of time, then of number
  struct Awaited {
    ConnectionId connection = kNoConnection;
    uint64_t largest_bytes = 0;
  };
  // By source host, the connections from there; empty when all receives are posted ahead.
  std::vector<absl::InlinedVector<Awaited, 1>> awaited_;
  uint64_t unexpected_seen_ = 0;
  std::array<Completion, 16> completions_;
};

}  // namespace paceline::tools
