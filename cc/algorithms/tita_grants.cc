// What the receiver of `tita` grants, and when. What it is told is in tita_receiver.cc.
#include <algorithm>
#include <bit>

#include "cc/algorithms/tita_receiver.h"
#include "cc/algorithms/water_filling.h"

namespace paceline {
namespace {

constexpr double kCoreRoom = 2;
constexpr int kAheadSpeed = 8;  // credit ahead is given so many times as fast as the line

}  // namespace

Time TitaReceiver::PollTimeout() const {
  if (!reissue_.empty()) return newest_now_;
  Time next = std::min(timed_.front_time(), group_slots_.front_time());
  if (!watched_.empty()) next = std::min(next, flows_[watched_.front()].check_at);
  if (!trusted_.empty() || !fresh_.empty()) {
    next = std::min(next, forecast_.due(sizes_.rtt));
    if (AheadFits()) next = std::min(next, ahead_clock_.time());
  }
  if (Waiting()) next = std::min(next, ready_ ? NextGrantTime() : std::max(NextGrantTime(), last_grant_ + sizes_.park));
  return next;
}

size_t TitaReceiver::PollGrants(Time now, std::span<Grant> out) {
  if (out.empty()) return 0;
  newest_now_ = std::max(newest_now_, now);
  if (pool_.has_others()) LookAtOthers();
  GrantWriter writer(out, ++call_);
  const auto write = [&](uint32_t id) {
    Flow& flow = flows_[id];
    writer.Write(flow.written_at, {id, flow.granted, Rate::BytesPerSecond(StatedRate(flow))});
  };

  RunTimers(now);
  if (forecast_.IsDue(sizes_.rtt, now)) CloseForecast(now);
  while (!reissue_.empty() && !writer.full()) {
    const uint32_t id = reissue_.front();
    reissue_.PopFront();
    write(id);
  }
  ChargeControlPackets();
  ServeGroups(now);
  UpdateReady(now);
  while (Waiting() && NextGrantTime() <= now) {
    const uint32_t id = NextFlow(now);
    const uint64_t quantum = Quantum(flows_[id]);
    if (!FitsBudget(quantum) && now < last_grant_ + sizes_.park) break;
    if (!writer.HasRoomFor(flows_[id].written_at)) return writer.written();
    if (flows_[id].place == Place::kCore) port_core_.TakeSlot(now, sizes_.WireBytes(quantum));
    Give(id, quantum, clock_, now);
    write(id);
    ServeGroups(now);
  }
  ready_ = ready_ && Waiting() && FitsBudget(Quantum(flows_[NextFlow(now)]));
  while (AheadFits() && ahead_clock_.time() <= now) {
    const uint32_t id = ahead_ring_.front();
    if (!writer.HasRoomFor(flows_[id].written_at)) break;
    ahead_clock_.RaiseTo(now - sizes_.rtt / kAheadSpeed);
    Give(id, Quantum(flows_[id]), ahead_clock_, now);
    write(id);
  }
  return writer.written();
}

void TitaReceiver::RunTimers(Time now) {
  while (!watched_.empty() && flows_[watched_.front()].check_at <= now) Check(watched_.front(), now);
  while (!timed_.empty() && timed_.front_time() <= now) {
    const uint32_t id = timed_.front();
    LeaveQueues(id);
    if (flows_[id].parked || Trusted(flows_[id])) {
      Wake(id, now);
    } else {
      Queue(id, now);
    }
  }
}

// A round trip in which silent flows began is over.
void TitaReceiver::CloseForecast(Time now) {
  switch (forecast_.Close(trusted_.size(), fresh_.size(), ready_total_, limit_, sizes_)) {
    case TitaForecast::Verdict::kAsBefore:
      return;
    case TitaForecast::Verdict::kTrustFresh:
      start_credit_given_ = forecast_.start_credit();
      while (!fresh_.empty()) {
        const uint32_t id = fresh_.front();
        SetSilence(id, Silence::kTrusted);
        SetParked(flows_[id], false);
        flows_[id].reissues = 0;
        LeaveQueues(id);
        watched_.Remove(id);
        Settle(id, now);
      }
      return;
    case TitaForecast::Verdict::kTrustNobody:
      while (!trusted_.empty()) {  // their credit counts no more than that of parked flows
        const uint32_t id = trusted_.front();
        SetSilence(id, Silence::kFresh);
        if (flows_[id].ahead_charge > 0) {
          Park(id, now);
        } else {
          Settle(id, now);
        }
      }
      return;
  }
}

// Trusted flows at the old start credit may hold more.
void TitaReceiver::RaiseStartCredit(Time now) {
  start_credit_given_ = forecast_.start_credit();
  for (size_t n = trusted_.size(); n > 0; --n) {
    const uint32_t id = trusted_.front();
    trusted_.PopFront();
    trusted_.PushBack(id);
    LeaveQueues(id);
    Settle(id, now);
  }
}

// Flows whose group has a slot for them move on.
void TitaReceiver::ServeGroups(Time now) {
  while (!group_slots_.empty() && group_slots_.front_time() <= now) {
    const uint32_t number = group_slots_.front();
    Group& group = groups_[number];
    const uint32_t id = group.waiting.front();
    group.limit.TakeSlot(now, sizes_.WireBytes(Quantum(flows_[id])));
    LeaveQueues(id);
    flows_[id].group_passed = true;
    Queue(id, now);
  }
}

// The end of a flow's check interval. It leaves the watched flows, and comes back at their end if it still has charge.
void TitaReceiver::Check(uint32_t id, Time now) {
  Flow& flow = flows_[id];
  watched_.Remove(id);
  if (flow.charge == 0) return;
  const uint64_t arrived = flow.arrived - flow.check_arrived;
  if (!flow.arrived_since_check) {
    const bool was_sent = flow.tx_total > flow.resolved;
    flow.resolved = std::max(flow.resolved, flow.tx_total);  // what was on the way is not coming any more
    if (flow.granted > flow.resolved) return Park(id, now);
    if (was_sent) ShrinkBucket(flow, arrived);
  } else if (arrived < flow.check_due) {
    ShrinkBucket(flow, arrived);
  }
  Settle(id, now);
}

// To what the flow has delivered in some time, two grains at least.
void TitaReceiver::ShrinkBucket(Flow& flow, uint64_t delivered) const {
  flow.bucket = std::clamp(delivered, std::min(2 * sizes_.grain, sizes_.bucket), flow.bucket);
}

void TitaReceiver::Park(uint32_t id, Time now) {
  Flow& flow = flows_[id];
  LeaveQueues(id);
  if (flow.arrived > flow.parked_arrived) ShrinkBucket(flow, flow.arrived - flow.parked_arrived);
  flow.parked_arrived = flow.arrived;
  if (flow.ahead && flow.in_vain < kMostInVain) ++flow.in_vain;
  flow.ahead = false;
  SetParked(flow, true);
  flow.group_passed = false;
  flow.reissues = 0;
  if (!OftenInVain(flow) && !reissue_.Contains(id)) reissue_.PushBack(id);
  if (!OftenInVain(flow) || flow.demand_end > flow.granted) WaitUntil(id, now + sizes_.park * 2);
  Settle(id, now);
}

void TitaReceiver::SetParked(Flow& flow, bool parked) {
  if (flow.parked != parked) parked_flows_ += parked ? 1 : -1;
  flow.parked = parked;
}

// A parked flow's time has come: its credit, or news of it, may be lost. So it is told again, and gets another grain of
// what it wants if it has ever sent: those who have not may all begin at once, with all that they hold. Who often
// leaves credit unused is told only of more: it asks when it has data and misses credit.
void TitaReceiver::Wake(uint32_t id, Time now) {
  Flow& flow = flows_[id];
  if (flow.parked && flow.tx_total > 0 && flow.demand_end > flow.granted) Give(id, Quantum(flow), clock_, now);
  if (!reissue_.Contains(id)) reissue_.PushBack(id);
  if (OftenInVain(flow) && flow.demand_end <= flow.granted) return;
  if (++flow.reissues < kMaxReissues) WaitUntil(id, now + sizes_.park * (int64_t{2} << flow.reissues));
}

// Acknowledgements for what this port sends come in on the same downlink.
void TitaReceiver::ChargeControlPackets() {
  const uint64_t bytes = shared_.control_bytes_in - control_bytes_seen_;
  if (bytes == 0) return;
  control_bytes_seen_ = shared_.control_bytes_in;
  clock_.Advance(static_cast<double>(bytes) * 1e9 / sizes_.grant_rate);
}

// A flow that waits for the core goes first when its slot is there: it has waited for two clocks.
bool TitaReceiver::CoreFirst(Time now) const {
  return !core_ring_.empty() && (ring_.empty() || !port_core_.limited() || port_core_.next_slot() <= now);
}

uint32_t TitaReceiver::NextFlow(Time now) const {
  if (CoreFirst(now)) return core_ring_.front();
  return parameters_.srpt && srpt_turn_ && !by_remaining_.empty() ? by_remaining_.front() : ring_.front();
}

Time TitaReceiver::NextGrantTime() const {
  const bool core_only = ring_.empty() && port_core_.limited();
  return core_only ? std::max(clock_.time(), port_core_.next_slot()) : clock_.time();
}

uint64_t TitaReceiver::Quantum(const Flow& flow) const {
  const uint64_t wanted = flow.demand_end - std::min(flow.demand_end, flow.granted);
  return wanted <= sizes_.grain + sizes_.tail ? wanted : sizes_.grain;
}

bool TitaReceiver::Eligible(const Flow& flow) const {
  const uint64_t quantum = Quantum(flow);
  return quantum > 0 && (flow.outstanding == 0 || flow.outstanding + quantum <= flow.bucket);
}

bool TitaReceiver::FitsBudget(uint64_t quantum) const {
  return charged_total_ == 0 || charged_total_ + quantum <= limit_;
}

// Credit ahead is granted beyond the budget and beside the port's clock, at a few times the line rate: flows that begin
// together after all start one after the other.
bool TitaReceiver::AheadFits() const {
  return !ahead_ring_.empty() && ahead_total_ + Quantum(flows_[ahead_ring_.front()]) <= forecast_.ahead_limit();
}

bool TitaReceiver::CoreLimits(const Flow& flow) const {
  return (flow.crosses_core && port_core_.limited()) || (flow.group != kNoGroup && groups_[flow.group].limit.limited());
}

// Grants `quantum` bytes and moves `clock` (of the port, or of credit ahead) by their wire time.
void TitaReceiver::Give(uint32_t id, uint64_t quantum, PaceClock& clock, Time now) {
  Flow& flow = flows_[id];
  const uint64_t wire = sizes_.WireBytes(quantum);
  flow.granted += quantum;
  flow.group_passed = false;
  flow.last_activity = now;
  if (!Trusted(flow)) last_grant_ = now;  // credit ahead does not show that the budget lets grants through
  clock.Advance(static_cast<double>(wire) * 1e9 / (sizes_.grant_rate * (Trusted(flow) ? kAheadSpeed : 1)));
  // On its own pace it may lag by one grain, so that a late call costs it nothing.
  const Rate pace = Rate::BytesPerSecond(flow.cap * parameters_.cap_slack);
  const Duration gap = std::min(pace.TimeFor(static_cast<int64_t>(wire)), Duration::Seconds(1));
  flow.next_time = std::max(flow.next_time, now - gap) + gap;
  srpt_turn_ = !srpt_turn_;
  StepRates();
  newcomers_.clear();
  LeaveQueues(id);
  Settle(id, now);
}

void TitaReceiver::LeaveQueues(uint32_t id) {
  Flow& flow = flows_[id];
  switch (flow.place) {
    case Place::kNowhere:
      return;
    case Place::kRing:
      ring_.Remove(id);
      by_remaining_.Remove(id);
      break;
    case Place::kCore:
      core_ring_.Remove(id);
      break;
    case Place::kGroup: {
      Group& group = groups_[flow.group];
      group.waiting.Remove(id);
      group_slots_.Remove(flow.group);
      if (!group.waiting.empty()) group_slots_.Push(flow.group, group.limit.next_slot());
      break;
    }
    case Place::kTimed:
      timed_.Remove(id);
      break;
    case Place::kAhead:
      ahead_ring_.Remove(id);
      break;
  }
  flow.place = Place::kNowhere;
}

void TitaReceiver::WaitUntil(uint32_t id, Time time) {
  flows_[id].place = Place::kTimed;
  timed_.Push(id, time);
}

// To the end of the first queue that the flow has to wait in.
void TitaReceiver::Queue(uint32_t id, Time now) {
  Flow& flow = flows_[id];
  if (Trusted(flow)) {
    if (CoreLimits(flow) || (flow.outstanding > 0 && flow.outstanding + Quantum(flow) > forecast_.start_credit()))
      return;
    flow.place = Place::kAhead;
    ahead_ring_.PushBack(id);
    return;
  }
  if (flow.cap * parameters_.cap_slack < lambda_ && flow.next_time > now) return WaitUntil(id, flow.next_time);
  if (!flow.group_passed && flow.group != kNoGroup && groups_[flow.group].limit.limited()) {
    Group& group = groups_[flow.group];
    flow.place = Place::kGroup;
    group.waiting.PushBack(id);
    if (!group_slots_.Contains(flow.group)) group_slots_.Push(flow.group, group.limit.next_slot());
    return;
  }
  if (flow.crosses_core && port_core_.limited()) {
    flow.place = Place::kCore;
    Enter(core_ring_, id);
    return;
  }
  flow.place = Place::kRing;
  Enter(ring_, id);
  if (parameters_.srpt) by_remaining_.Push(id, Time::FromNanos(static_cast<int64_t>(flow.demand_end - flow.granted)));
}

// Those that come between two grants line up in the order of van der Corput: each as far as can be from those that came
// right before and after it. Receives are posted in the order of ranks, and neighbours among the ranks are neighbours
// in the network: served one after the other, they would fill the uplinks of their pod while others rest.
void TitaReceiver::Enter(FlowRing& ring, uint32_t id) {
  if (newcomers_.size() == flows_.size()) newcomers_.clear();
  const size_t index = newcomers_.size();
  const uint32_t before = index > 0 ? newcomers_[index - std::bit_floor(index)] : id;
  if (before != id && flows_[before].place == flows_[id].place) {
    ring.InsertAfter(before, id);
  } else {
    ring.PushBack(id);
  }
  newcomers_.push_back(id);
}

// A limit that was not there before holds also for those who wait for the port already.
void TitaReceiver::QueueAnew(Time now) {
  newcomers_.clear();  // those that stay in the ring go to its end, not beside one that is still to be looked at
  for (size_t n = ring_.size(); n > 0; --n) {
    const uint32_t id = ring_.front();
    LeaveQueues(id);
    Queue(id, now);
  }
}

// The clock saves nothing up while no grant could have been given. While credit is out it may lag, which takes the
// jitter of arrivals.
void TitaReceiver::UpdateReady(Time now) {
  const bool ready = Waiting() && FitsBudget(Quantum(flows_[NextFlow(now)]));
  if (ready && !ready_) {
    ChargeControlPackets();  // those that came while there was nothing to grant
    clock_.RaiseTo(charged_total_ > 0 ? now - sizes_.lag : now);
  }
  ready_ = ready;
}

// After a change the rates are computed anew within a number of changes and grants in proportion to the flows, so that
// each costs O(log n) on average.
void TitaReceiver::RatesChanged() {
  rates_stale_ = true;
  StepRates();
}

void TitaReceiver::StepRates() {
  if (!rates_stale_ || ++rate_steps_ * 8 <= wanting_.size()) return;
  rates_stale_ = false;
  rate_steps_ = 0;
  if (wanting_.empty()) {
    lambda_ = sizes_.grant_rate;
    return;
  }
  scratch_.clear();
  for (const Wanting& flow : wanting_) {
    scratch_.push_back(std::min(flow.cap, CoreShare(flow.group, flow.crosses_core)));
  }
  lambda_ = std::min(WaterLevel(sizes_.grant_rate, scratch_), sizes_.grant_rate);
}

// Of the port's limit twice an equal part: it changes faster than what was stated can, and who paces by less than there
// is falls behind. All that it is for is that a sender does not reckon with a whole line.
double TitaReceiver::CoreShare(uint32_t group_number, bool crosses_core) const {
  double share = sizes_.line_rate;
  if (crosses_core && port_core_.limited()) {
    share = std::min(share, kCoreRoom * port_core_.limit() / static_cast<double>(std::max(core_wanting_, 1u)));
  }
  if (group_number != kNoGroup && groups_[group_number].limit.limited()) {
    const Group& group = groups_[group_number];
    share = std::min(share, group.limit.limit() / static_cast<double>(std::max(group.wanting, 1u)));
  }
  return share;
}

double TitaReceiver::RateOf(const Flow& flow) const {
  return std::min({flow.cap, CoreShare(flow.group, flow.crosses_core), lambda_});
}

// Those who are parked may come back together: to each no more than its share then.
double TitaReceiver::StatedRate(const Flow& flow) const {
  if (Trusted(flow)) return std::min(flow.cap, CoreShare(flow.group, flow.crosses_core));
  if (!flow.parked) return RateOf(flow);
  return std::min(RateOf(flow), sizes_.grant_rate / static_cast<double>(parked_flows_ + wanting_.size()));
}

}  // namespace paceline
