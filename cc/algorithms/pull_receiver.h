// The receiver side of the pull schemes: one pacer for the downlink of a port, which pulls a fixed amount from one
// sender after the other.
//
// Per flow, cumulative payload bytes: resolved <= tx_total, and tx_total < granted + a segment. What was sent without
// credit counts as granted.
//
//   pace      a pull of q bytes costs WireBytes(q) / (rate * line * core loop); without anybody to pull from nothing is
//             saved up
//   start     a flow that was quiet for a round trip starts anew with its first data packet: the receiver reckons with
//             the first window as granted. Where senders drop the rest of it on the first news, that is what a sender
//             gets rid of in a round trip at the rate that it states, and after a round trip only what really came
//             counts. Demand of which no data comes for two round trips is pulled all the same.
//   demand    (per_arrival false) a sender is pulled up to what it asks for: tx_total + m, m = min(demand that was not
//             sent, window). With divide_demand it asks for its part only: e + (m - (e - tx_total)) / n, e the credit
//             that it had when it sent its newest packet, n = line rate / stated cap. It had the newest pull if that
//             packet could not have gone without; otherwise the one before counts. A pull may leave a sender without
//             credit for a packet; as a packet goes while there is any credit at all, it may then owe part of one.
//   exact     a pull ends at what was asked for, rounded up to the quantum, instead of being of full size
//   arrival   (per_arrival true) granted + segment <= arrived + trimmed + lost + window: a pull for each of them
//   order     senders with trimmed packets (retransmit_first), then those that ask, then the others, each for up to
//             `idle_credit` beyond what it asks for; round robin in each. The pacer spends the time of a pull also on
//             one of the others that has nothing more, but no grant goes beyond the demand.
//   pool      where other endpoints pull for the port, too (CreditPool), each pulls at an equal part of the rate
//   trimmed   counts at once; the sender's count of losses names the same bytes later
//   silence   credit that is out while nothing comes: the grant is sent again after four round trips, at doubling
//             intervals, eight times
//
// A sender's claims reach no further than its own flow: credit per flow is bounded by its windows.
// Cost: O(1) per arrival, demand and pull, O(log n) for the timers of flows that start or fall silent.
// Owned by the core, one per port. Thread rule: as in cc/congestion_control.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cc/algorithms/flow_heap.h"
#include "cc/algorithms/flow_ring.h"
#include "cc/algorithms/grant_writer.h"
#include "cc/algorithms/pace_clock.h"
#include "cc/algorithms/pull_core_loop.h"
#include "cc/algorithms/pull_rules.h"
#include "cc/congestion_control.h"
#include "cc/credit_pool.h"

namespace paceline {

class PullReceiver : public ReceiverController {
 public:
  PullReceiver(const PullRules& rules, const PortInfo& port, uint64_t seed);

  void AddFlow(uint32_t flow, const FlowInfo& info, Time now) override;
  void RemoveFlow(uint32_t flow, Time now) override;
  void OnDemand(uint32_t flow, uint64_t demand_end, Rate cap, Time now) override;
  void OnArrival(uint32_t flow, const ArrivalSample& sample) override;
  void OnBaseRtt(uint32_t flow, Duration rtt, Time now) override;
  Time PollTimeout() const override;
  size_t PollGrants(Time now, std::span<Grant> out) override;
  uint64_t outstanding_credit_bytes() const override { return outstanding_total_; }

  // For tests and counters.
  double pull_rate() const { return rate_ * (core_ ? core_->rate() : 1) / (1 + others_); }  // wire bytes per second

 private:
  static constexpr uint32_t kMaxFlows = 1u << 24;  // numbers are dense, so larger ones are a caller's mistake
  static constexpr int kMaxRepeats = 8;

  enum class State : uint8_t {
    kQuiet,     // nothing wanted
    kStarting,  // wants something, no data has come yet
    kFirst,     // its first window is arriving
    kOpen,
  };
  enum class Place : uint8_t { kNowhere, kRetransmit, kActive };

  struct Flow {
    uint64_t granted = 0, tx_total = 0, resolved = 0, demand_end = 0, lost_total = 0;
    uint64_t stated = 0;                      // the largest credit that a grant carried
    uint64_t before_last_pull = 0;            // `granted` then
    uint64_t known = 0;                       // credit that the sender had when it sent the newest packet
    uint64_t first_base = 0, first_lost = 0;  // tx_total and lost_total where its first window began
    uint64_t trimmed = 0;                     // bytes cut that lost_total does not name yet
    uint64_t to_retransmit = 0;               // bytes trimmed and not pulled since
    uint64_t outstanding = 0;                 // as last added to the total
    GrantWriter::Place written_at;
    double share = 1;  // of its port's rate that the sender can give it
    PullSizes sizes;
    uint64_t idle_credit = 0, idle_spent = 0;  // idle_spent: on pulls beyond the demand
    Time last_activity;                        // grant or arrival
    uint8_t repeats = 0;
    bool in_use = false;
    bool first_window_due = false;  // to be reckoned with at the first pull
    State state = State::kQuiet;
    Place place = Place::kNowhere;
  };

  Flow* Find(uint32_t flow);
  void SetSizes(Flow& flow, const FlowInfo& info) const;
  uint64_t WireBytes(uint64_t payload) const { return payload + (payload + segment_ - 1) / segment_ * overhead_; }
  // Granted, or sent without credit.
  static uint64_t Committed(const Flow& flow) { return flow.granted > flow.tx_total ? flow.granted : flow.tx_total; }
  uint64_t Target(const Flow& flow) const;
  uint64_t NextPull(const Flow& flow) const;
  void CountSpeculative(Flow& flow) const;
  // Credit beyond `keep` that no grant has told of (of the first window) counts no longer.
  void TakeBack(Flow& flow, uint64_t keep) const;
  bool WantsPull(const Flow& flow) const;
  bool MayHaveIdlePull(const Flow& flow) const;
  Place PlaceOf(const Flow& flow) const;
  FlowRing& Ring(Place place) { return place == Place::kRetransmit ? retransmit_ : active_; }
  const FlowRing* NextRing() const;
  void TellOthers();
  void Settle(uint32_t id, Time now);
  void Leave(uint32_t id);
  void ReckonFirstWindow(Flow& flow);
  bool Pull(uint32_t id, bool idle, Time now);
  void SetTimer(uint32_t id, Time time);
  void RunTimer(uint32_t id, Time now);

  const PullRules rules_;
  const PortInfo port_;
  const uint64_t segment_, overhead_, pull_;
  const double line_rate_, rate_;  // wire bytes per second

  std::vector<Flow> flows_;
  FlowLinks place_links_, idle_links_, repeat_links_;
  FlowRing retransmit_{&place_links_}, active_{&place_links_};
  FlowRing idle_{&idle_links_};      // who is pulled when those are empty; asking does not cost a flow its place here
  FlowRing repeat_{&repeat_links_};  // their grant is to be sent again
  FlowHeap timers_;
  PaceClock clock_;
  std::optional<PullCoreLoop> core_;
  CreditPoolMember pool_;
  uint32_t others_ = 0;  // that pull for the port, as last seen
  uint64_t call_ = 0;
  uint64_t outstanding_total_ = 0;
  Time newest_now_;
};

}  // namespace paceline
