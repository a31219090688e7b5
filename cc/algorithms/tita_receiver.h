// The receiver side of `tita`: all credit for the downlink of one port. See docs/cc/tita.md for why; here is what.
//
// Per flow, cumulative payload bytes: resolved <= tx_total <= granted. `granted` is the credit given, `tx_total` what
// the sender has put on the way, `resolved` what of it arrived or is known lost. Credit that can still land is granted
// - resolved. What the sender sent without credit counts as granted.
//
//   pacing    one clock for the port: a grant of q bytes costs WireBytes(q) / (rho * C), plus the wire bytes of control
//             packets that came in meanwhile. Blocked or without demand, the clock does not save up.
//   budget    the sum of charges stays within TitaSizes::Budget. A flow's charge is its credit that can still land
//             and that it has a use for (up to demand_end), at most its bucket. Where other endpoints hand out credit
//             for the port (CreditPool), what they have charged counts too, down to an equal part for each.
//   path      where the round trip is measured, the sizes follow the flow with the longest one. The budget is then at
//             most the lane's receive buffer plus what the path holds in flight (rate received times round trip).
//   bucket    at most TitaSizes::bucket per flow. A flow that still holds credit from a check interval ago gets a
//             bucket of what it delivered in that interval (two grains at least); it grows by a quarter of what
//             arrives.
//   ahead     of flows that are silent, and trusted to begin one after the other rather than together, the credit does
//             not count and is given beside the port's clock, up to TitaForecast's bounds.
//   order     round robin among flows that want credit and have room in their bucket, neighbours in the order of their
//             posting far apart; with `srpt` every other grant goes to the one with least left.
//   rates     r = min(cap, core, lambda), lambda by water filling; only flows bound by their cap or the core are paced
//             on their own.
//   silence   a flow with credit from which nothing came for `park` is parked: what it had on the way is written off,
//             what it holds no longer counts, its grant is sent again (with a grain more when it wants more), at
//             doubling intervals, eight times; anything that it sends ends that. So lost grants heal and posted
//             receives that nobody sends to do not hold the budget. Credit ahead of data is waited for four round
//             trips; when that was in vain, next time for two, then for one, and the grant is sent again only if there
//             is more.
//   core      a CoreLimit per remote group (per flow once marked where the group is not known), remembered after its
//             flows are gone, and one for the port over all other groups.
//
// Nothing that a sender claims is trusted further than its own flow: tx_total beyond the credit is charged up to one
// bucket, and a port that got no grant out for `park` because of its budget grants one grain regardless.
//
// Cost: O(1) per arrival and grant, O(log n) for flows paced on their own; idle flows cost memory only.
// Owned by the core, one per port; refers to the TitaPort of its Tita, which outlives it. Thread rule: as in
// cc/congestion_control.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cc/algorithms/core_limit.h"
#include "cc/algorithms/flow_heap.h"
#include "cc/algorithms/flow_ring.h"
#include "cc/algorithms/grant_writer.h"
#include "cc/algorithms/pace_clock.h"
#include "cc/algorithms/tita.h"
#include "cc/algorithms/tita_budget.h"
#include "cc/algorithms/tita_forecast.h"
#include "cc/algorithms/tita_parameters.h"
#include "cc/congestion_control.h"
#include "cc/credit_pool.h"

namespace paceline {

class TitaReceiver : public ReceiverController {
 public:
  TitaReceiver(const TitaParameters& parameters, const PortInfo& port, TitaPort& shared);

  void AddFlow(uint32_t flow, const FlowInfo& info, Time now) override;
  void RemoveFlow(uint32_t flow, Time now) override;
  void OnDemand(uint32_t flow, uint64_t demand_end, Rate cap, Time now) override;
  void OnArrival(uint32_t flow, const ArrivalSample& sample) override;
  void OnBaseRtt(uint32_t flow, Duration rtt, Time now) override;
  Time PollTimeout() const override;
  size_t PollGrants(Time now, std::span<Grant> out) override;
  // All credit that can still land, parked flows included.
  uint64_t outstanding_credit_bytes() const override { return outstanding_total_; }

  // For tests and counters.
  uint64_t charged_bytes() const { return charged_total_; }
  uint64_t budget_bytes() const { return sizes_.Budget(cap_sum_ + others_.caps); }
  const TitaSizes& sizes() const { return sizes_; }
  double fair_rate() const { return lambda_; }
  size_t wanting_flows() const { return wanting_.size(); }
  double port_core_limit() const { return port_core_.limit(); }

 private:
  static constexpr uint32_t kNoGroup = UINT32_MAX;
  static constexpr uint32_t kMaxFlows = 1u << 24;  // numbers are dense, so larger ones are a caller's mistake
  static constexpr size_t kMaxGroups = 4096;       // beyond, flows have no group of their own
  static constexpr int kMaxReissues = 8;
  static constexpr uint8_t kMostInVain = 2;

  // Where a flow that may be granted waits; it moves from later to earlier ones.
  enum class Place : uint8_t {
    kNowhere,
    kRing,   // for the port's clock
    kCore,   // for the port's core limit, then as above
    kGroup,  // for its group's limit
    kTimed,  // for its own pace; when parked, for the next reissue
    kAhead,  // for credit beyond the budget
  };

  // Of a flow with demand of more than a grain: whether its sender has said anything since, or within a round trip
  // before.
  enum class Silence : uint8_t { kNone, kFresh, kTrusted };

  struct Flow {
    uint64_t granted = 0, tx_total = 0, resolved = 0, demand_end = 0;
    uint64_t lost_total = 0;
    uint64_t trimmed = 0;  // arrived as trimmed, not yet reported in lost_total
    uint64_t outstanding = 0, charge = 0, ahead_charge = 0, ready = 0;  // as last added to the totals
    uint64_t most_ready = 0;                                            // what its cap lets through in a round trip
    uint64_t bucket = 0;
    Duration base_rtt;                          // as measured; zero: not yet
    uint64_t arrived = 0;                       // bytes; what the sender says does not change it
    uint64_t check_due = 0, check_arrived = 0;  // what was to come, and had, when the check interval began
    uint64_t parked_arrived = 0;                // when it was last parked
    GrantWriter::Place written_at;
    double cap = 0;                                    // wire bytes per second
    uint32_t delay_least = 0, delay_least_before = 0;  // ns, of this and the last epoch
    Time next_time;                                    // own pacing
    Time check_at;
    Time last_activity;  // grant or arrival
    std::optional<Time> heard_at;
    uint32_t group = kNoGroup;
    uint32_t wanting_index = 0;
    uint32_t delay_epoch = 0;  // 0: none seen
    uint8_t reissues = 0;
    uint8_t in_vain = 0;  // times in a row that it was parked with credit that it had ahead of its data
    bool ahead = false;   // had such credit when its check interval began
    bool in_use = false, private_group = false, group_known = false, crosses_core = true;
    bool wanting = false, parked = false, group_passed = false, arrived_since_check = false;
    Place place = Place::kNowhere;
    Silence silence = Silence::kNone;
  };

  // What the water level is computed from: a copy beside each other, for it is computed often and over all.
  struct Wanting {
    uint32_t id = 0;
    uint32_t group = kNoGroup;
    double cap = 0;
    bool crosses_core = true;
  };

  struct Group {
    explicit Group(FlowLinks* links) : waiting(links) {}
    CoreLimit limit;
    uint32_t wanting = 0;          // flows
    bool has_had_several = false;  // of them at once
    FlowRing waiting;
  };

  // tita_receiver.cc: what is known.
  Flow* Find(uint32_t flow);
  void SetPort(const PortInfo& port, Time now);
  void UpdateTxTotal(Flow& flow, uint64_t tx_total);
  void Resolve(Flow& flow, uint64_t bytes);
  void Settle(uint32_t id, Time now);
  void SetSilence(uint32_t id, Silence silence);
  uint64_t BytesPerRtt(double rate) const;
  static bool Trusted(const Flow& flow) { return flow.silence == Silence::kTrusted; }
  void SetWanting(uint32_t id, bool wanting);
  void LookAtOthers();
  void TellOthers();
  void UpdateLimit();
  void MaybeReissue(uint32_t id, Time now);
  uint32_t CountMarks(const ArrivalSample& sample, int64_t queueing_nanos);
  int64_t QueueingNanos(Flow& flow, const ArrivalSample& sample);
  void TellCore(uint32_t id, const ArrivalSample& sample);
  void MeterDownlink(Time now, uint64_t wire_bytes);
  void ReckonPath(double rate, Time now);
  void ExpectOfCore(Group& group);
  uint32_t NewGroup();

  // tita_grants.cc: what follows.
  void RunTimers(Time now);
  void CloseForecast(Time now);
  void RaiseStartCredit(Time now);
  void ServeGroups(Time now);
  void Check(uint32_t id, Time now);
  void Wake(uint32_t id, Time now);
  void Park(uint32_t id, Time now);
  void SetParked(Flow& flow, bool parked);
  void ShrinkBucket(Flow& flow, uint64_t delivered) const;
  static bool OftenInVain(const Flow& flow) { return flow.in_vain == kMostInVain; }
  void ChargeControlPackets();
  bool Waiting() const { return !ring_.empty() || !core_ring_.empty(); }
  bool CoreFirst(Time now) const;
  uint32_t NextFlow(Time now) const;
  Time NextGrantTime() const;
  uint64_t Quantum(const Flow& flow) const;
  bool Eligible(const Flow& flow) const;
  bool FitsBudget(uint64_t quantum) const;
  bool AheadFits() const;
  bool CoreLimits(const Flow& flow) const;
  void Give(uint32_t id, uint64_t quantum, PaceClock& clock, Time now);
  void LeaveQueues(uint32_t id);
  void Enter(FlowRing& ring, uint32_t id);
  void Queue(uint32_t id, Time now);
  void WaitUntil(uint32_t id, Time time);
  void QueueAnew(Time now);
  void UpdateReady(Time now);
  void RatesChanged();
  void StepRates();
  double RateOf(const Flow& flow) const;
  double StatedRate(const Flow& flow) const;
  double CoreShare(uint32_t group, bool crosses_core) const;

  const TitaParameters parameters_;
  PortInfo port_;    // with the longest round trip measured
  TitaSizes sizes_;  // of it
  CoreLimitParameters core_parameters_;
  Duration core_delay_;   // over the least seen: counts as a mark
  Duration queue_delay_;  // over the least seen: the packet has waited
  const uint64_t local_group_;
  const double group_core_rate_;  // what the ports of the local group get of the core together; 0: not known
  TitaPort& shared_;
  CreditPoolMember pool_;

  std::vector<Flow> flows_;
  FlowLinks place_links_, reissue_links_, watched_links_, silence_links_;
  FlowRing ring_{&place_links_};        // Place::kRing
  FlowRing core_ring_{&place_links_};   // Place::kCore
  FlowHeap by_remaining_;               // those of ring_ by what they have left (srpt only; the "time" is bytes)
  FlowHeap timed_;                      // Place::kTimed
  FlowRing ahead_ring_{&place_links_};  // Place::kAhead
  FlowRing fresh_{&silence_links_}, trusted_{&silence_links_};  // by their silence
  FlowRing reissue_{&reissue_links_};                           // their grant is to be sent again
  FlowRing watched_{&watched_links_};                           // have charge; in the order of check_at
  std::vector<uint32_t> newcomers_;  // to ring_ and core_ring_ since the last grant, in the order in which they came
  std::vector<Wanting> wanting_;     // demand_end > granted, not parked
  uint32_t core_wanting_ = 0;        // of those, the ones that cross the core
  size_t parked_flows_ = 0;

  PaceClock clock_, ahead_clock_;
  TitaForecast forecast_;
  bool ready_ = false;  // a grant waits for nothing but the clock
  bool srpt_turn_ = false;
  uint64_t call_ = 0;
  uint64_t outstanding_total_ = 0, charged_total_ = 0;
  uint64_t ahead_total_ = 0;         // what trusted flows would be charged
  uint64_t start_credit_given_ = 0;  // the most that one of them could have
  uint64_t ready_total_ = 0;         // payload that flows which are not silent can send in a round trip
  uint64_t control_bytes_seen_ = 0;
  double cap_sum_ = 0;         // of wanting flows, each at most the line rate
  CreditPool::Others others_;  // as last seen
  uint64_t limit_ = 0;         // to charged_total_: this receiver's part of the budget
  double lambda_ = 0;
  bool rates_stale_ = false;
  size_t rate_steps_ = 0;  // since then
  std::vector<double> scratch_;
  Time last_grant_, newest_now_;

  std::vector<Group> groups_;
  FlowHeap group_slots_;  // groups with waiting flows, by their next slot
  std::map<uint64_t, uint32_t> group_numbers_;
  std::vector<uint32_t> free_groups_;
  CoreLimit port_core_;
  uint32_t groups_with_several_ = 0, most_of_a_group_ = 0;  // flows that wanted credit at once; remote groups
  bool mark_seen_ = false, rtt_measured_ = false;
  Time meter_start_;
  uint64_t meter_bytes_ = 0;
  uint64_t path_bytes_ = 0;  // payload under way in the network, as reckoned with (measured round trips only)
  bool downlink_full_ = false;
};

}  // namespace paceline
