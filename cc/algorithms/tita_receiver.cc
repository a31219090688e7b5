// What the receiver of `tita` is told: flows, demand, arrivals. The grants that follow are in tita_grants.cc.
#include "cc/algorithms/tita_receiver.h"

#include <algorithm>

#include "cc/algorithms/bdp.h"

namespace paceline {
namespace {

constexpr uint64_t kBucketGrowth = 4;   // a bucket grows by a byte for so many that arrive
constexpr double kFullDownlink = 0.95;  // share of the line rate that counts as full
constexpr double kLeastCap = 0.001;     // of the line rate: no announced cap starves its own flow
constexpr int64_t kFirstParkRtts = 4;   // of a flow with nothing on its way
constexpr int64_t kDelayEpochNanos =
    10'000'000;  // the least delay is that of the last one to two epochs (clocks drift)

// How much later `delay` is than `least`.
int64_t Over(uint32_t delay, uint32_t least) { return static_cast<int32_t>(delay - least); }

CoreLimitParameters CoreParameters(const TitaParameters& parameters, const TitaSizes& sizes) {
  CoreLimitParameters core;
  core.line_rate = sizes.line_rate;
  core.window = sizes.rtt * 2;
  core.gain = parameters.core_gain;
  core.drain = parameters.core_drain;
  core.floor = parameters.core_floor;
  core.step = parameters.core_step;
  core.heavy = parameters.core_heavy;
  return core;
}

CoreLimit PortCoreLimit(const TitaSizes& sizes, const PortInfo& port) {
  const bool stated = !port.core_rate.is_zero() && port.core_rate.bytes_per_second() < sizes.line_rate;
  return stated ? CoreLimit(port.core_rate.bytes_per_second()) : CoreLimit();
}

// Caps are whole bytes per second, so that sums of them stay exact.
double WholeCap(double rate) { return static_cast<double>(std::max<int64_t>(static_cast<int64_t>(rate), 1)); }

}  // namespace

TitaReceiver::TitaReceiver(const TitaParameters& parameters, const PortInfo& port, TitaPort& shared)
    : parameters_(parameters),
      port_(port),
      sizes_(TitaSizesFor(parameters, port)),
      local_group_(port.local_group),
      group_core_rate_(port.core_rate.bytes_per_second() * port.group_ports),
      shared_(shared),
      pool_(port.credit_pool, port.credit_pool_member),
      control_bytes_seen_(shared.control_bytes_in),
      lambda_(sizes_.grant_rate),
      port_core_(PortCoreLimit(sizes_, port)) {
  SetPort(port, Time());
}

void TitaReceiver::SetPort(const PortInfo& port, Time now) {
  const uint64_t bucket_before = sizes_.bucket;
  port_ = port;
  PortInfo held = port;
  if (held.receive_buffer_bytes > 0) held.receive_buffer_bytes += path_bytes_;
  sizes_ = TitaSizesFor(parameters_, held);
  core_parameters_ = CoreParameters(parameters_, sizes_);
  const Duration delay_error = std::max(port.delay_error, Duration());
  core_delay_ = sizes_.rtt.Scaled(parameters_.core_delay_rtts) + delay_error;
  queue_delay_ = sizes_.rtt / 10 + delay_error;
  UpdateLimit();
  if (sizes_.bucket == bucket_before) return;
  const double growth = static_cast<double>(sizes_.bucket) / static_cast<double>(bucket_before);
  const uint64_t least = std::min(2 * sizes_.grain, sizes_.bucket);
  for (uint32_t id = 0; id < flows_.size(); ++id) {
    Flow& flow = flows_[id];
    if (!flow.in_use) continue;
    flow.bucket = std::clamp(static_cast<uint64_t>(static_cast<double>(flow.bucket) * growth), least, sizes_.bucket);
    flow.most_ready = BytesPerRtt(flow.cap);
    Settle(id, now);
  }
  UpdateReady(now);
}

void TitaReceiver::OnBaseRtt(uint32_t id, Duration rtt, Time now) {
  Flow* flow = Find(id);
  if (flow == nullptr || rtt <= Duration()) return;
  newest_now_ = std::max(newest_now_, now);
  flow->base_rtt = rtt;
  rtt_measured_ = true;
  Duration longest;
  for (const Flow& other : flows_) longest = std::max(longest, other.in_use ? other.base_rtt : Duration());
  if (longest == port_.base_rtt) return;
  PortInfo port = port_;
  port.base_rtt = longest;
  SetPort(port, now);
}

TitaReceiver::Flow* TitaReceiver::Find(uint32_t flow) {
  return flow < flows_.size() && flows_[flow].in_use ? &flows_[flow] : nullptr;
}

void TitaReceiver::AddFlow(uint32_t id, const FlowInfo& info, Time now) {
  if (id >= kMaxFlows) return;
  RemoveFlow(id, now);
  if (id >= flows_.size()) {
    flows_.resize(id + 1);
    place_links_.Reserve(id + 1);
    newcomers_.reserve(flows_.capacity());
    by_remaining_.Reserve(id + 1);
    timed_.Reserve(id + 1);
    reissue_links_.Reserve(id + 1);
    watched_links_.Reserve(id + 1);
    silence_links_.Reserve(id + 1);
  }
  Flow& flow = flows_[id] = Flow();
  flow.in_use = true;
  flow.bucket = sizes_.bucket;
  flow.cap = WholeCap(sizes_.line_rate);
  flow.most_ready = BytesPerRtt(flow.cap);
  flow.last_activity = now;
  flow.crosses_core = local_group_ == 0 || info.remote_group != local_group_;
  flow.group_known = info.remote_group != 0;
  if (flow.group_known) {
    const auto known = group_numbers_.find(info.remote_group);
    if (known != group_numbers_.end()) {
      flow.group = known->second;
    } else {
      flow.group = NewGroup();
      if (flow.group != kNoGroup) group_numbers_[info.remote_group] = flow.group;
    }
  }
}

void TitaReceiver::RemoveFlow(uint32_t id, Time now) {
  Flow* flow = Find(id);
  if (flow == nullptr) return;
  SetWanting(id, false);
  SetParked(*flow, false);
  LeaveQueues(id);
  reissue_.Remove(id);
  watched_.Remove(id);
  SetSilence(id, Silence::kNone);
  outstanding_total_ -= flow->outstanding;
  charged_total_ -= flow->charge;
  ahead_total_ -= flow->ahead_charge;
  ready_total_ -= flow->ready;
  if (flow->private_group) {
    groups_[flow->group] = Group(&place_links_);
    group_slots_.Remove(flow->group);
    free_groups_.push_back(flow->group);
  }
  *flow = Flow();
  TellOthers();
  UpdateReady(now);
}

uint32_t TitaReceiver::NewGroup() {
  if (!free_groups_.empty()) {
    const uint32_t group = free_groups_.back();
    free_groups_.pop_back();
    return group;
  }
  if (groups_.size() >= kMaxGroups) return kNoGroup;
  groups_.emplace_back(&place_links_);
  group_slots_.Reserve(groups_.size());
  return static_cast<uint32_t>(groups_.size() - 1);
}

void TitaReceiver::OnDemand(uint32_t id, uint64_t demand_end, Rate cap, Time now) {
  Flow* flow = Find(id);
  if (flow == nullptr) return;
  newest_now_ = std::max(newest_now_, now);
  // Demand of a grain or less needs no forecast.
  const uint64_t little = flow->resolved + sizes_.grain;
  const bool had_demand = flow->demand_end > little;
  flow->demand_end = std::min(demand_end, kMaxBytes);
  const bool has_demand = flow->demand_end > little;
  if (has_demand != had_demand) {
    if (forecast_.IsDue(sizes_.rtt, now)) CloseForecast(now);
    const bool heard = flow->heard_at && now - *flow->heard_at <= sizes_.rtt;
    SetSilence(id, has_demand && !heard ? Silence::kFresh : Silence::kNone);
  }
  const double announced = cap.bytes_per_second();
  const double least = sizes_.line_rate * kLeastCap;
  // A NaN fails the comparison.
  const double bounded = WholeCap(announced > least ? std::min(announced, sizes_.line_rate) : least);
  if (bounded != flow->cap) {
    if (flow->wanting) {
      cap_sum_ += bounded - flow->cap;
      wanting_[flow->wanting_index].cap = bounded;
      UpdateLimit();
    }
    flow->cap = bounded;
    flow->most_ready = BytesPerRtt(bounded);
    RatesChanged();
  }
  Settle(id, now);
  UpdateReady(now);
}

void TitaReceiver::OnArrival(uint32_t id, const ArrivalSample& sample) {
  Flow* flow = Find(id);
  if (flow == nullptr) return;
  const Time now = sample.now;
  newest_now_ = std::max(newest_now_, now);
  const uint64_t bytes = std::min(sample.bytes, kMaxBytes);

  const bool sends = bytes > 0 || sample.tx_total > flow->tx_total;
  UpdateTxTotal(*flow, std::min(sample.tx_total, kMaxBytes));
  Resolve(*flow, bytes);
  flow->arrived += bytes;
  flow->bucket = std::min(flow->bucket + bytes / kBucketGrowth, sizes_.bucket);
  if (sample.trimmed_packets > 0 && sample.packets > 0) {
    // What was cut counts as arrived above; the sender's loss count will name it again.
    const uint64_t cut = bytes / sample.packets * std::min(sample.trimmed_packets, sample.packets);
    flow->trimmed = std::min(flow->trimmed + cut, sizes_.bucket);
  }
  const uint64_t lost_total = std::min(sample.lost_total, kMaxBytes);
  if (lost_total > flow->lost_total) {
    const uint64_t lost = lost_total - flow->lost_total;
    const uint64_t known = std::min(lost, flow->trimmed);
    flow->lost_total = lost_total;
    flow->trimmed -= known;
    if (forecast_.ahead_limit() > 0) forecast_.OnLoss(now, sizes_);
    Resolve(*flow, lost - known);
  }

  flow->heard_at = now;
  if (forecast_.IsDue(sizes_.rtt, now)) CloseForecast(now);
  const bool was_trusted = Trusted(*flow);
  if (flow->silence != Silence::kNone) {
    forecast_.OnStart(was_trusted, now);
    SetSilence(id, Silence::kNone);
  }
  if (bytes == 0) MaybeReissue(id, now);  // a request or a probe: it may be for want of a grant that was lost
  if (sends && flow->ahead) {
    flow->ahead = false;
    flow->in_vain = 0;
  }
  flow->arrived_since_check = true;
  flow->last_activity = now;
  if (flow->parked && (sends || flow->granted <= flow->tx_total)) {
    SetParked(*flow, false);
    flow->reissues = 0;
    LeaveQueues(id);
    watched_.Remove(id);  // its interval begins anew
  }
  MeterDownlink(now, sizes_.WireBytes(bytes));
  if (bytes > 0) TellCore(id, sample);
  Settle(id, now);
  if (was_trusted) {
    forecast_.OnLoad(charged_total_, sizes_);
    if (forecast_.start_credit() >= start_credit_given_ + sizes_.grain) RaiseStartCredit(now);
  }
  UpdateReady(now);
}

void TitaReceiver::UpdateTxTotal(Flow& flow, uint64_t tx_total) {
  if (tx_total <= flow.tx_total) return;
  flow.tx_total = tx_total;
  if (tx_total <= flow.granted) return;
  // Sent without credit: it counts as granted. No honest sender has more of it in flight than a bucket.
  flow.granted = tx_total;
  if (flow.granted - flow.resolved > 2 * sizes_.bucket) flow.resolved = flow.granted - 2 * sizes_.bucket;
}

// Duplicates and losses declared too early would count twice: never more than what was sent.
void TitaReceiver::Resolve(Flow& flow, uint64_t bytes) {
  flow.resolved += std::min(bytes, flow.tx_total - flow.resolved);
}

// Brings totals, lists and queues in line with the flow's counts.
void TitaReceiver::Settle(uint32_t id, Time now) {
  Flow& flow = flows_[id];
  outstanding_total_ -= flow.outstanding;
  charged_total_ -= flow.charge;
  ahead_total_ -= flow.ahead_charge;
  ready_total_ -= flow.ready;
  flow.outstanding = flow.granted - flow.resolved;
  // Credit beyond the demand has no use; a parked flow is not expected to use what it has.
  const uint64_t useful = std::min(flow.granted, std::max(flow.tx_total, flow.demand_end));
  const uint64_t charge = flow.parked ? 0 : std::min(useful - std::min(useful, flow.resolved), flow.bucket);
  flow.charge = Trusted(flow) ? 0 : charge;
  flow.ahead_charge = charge - flow.charge;
  const bool sends = flow.silence == Silence::kNone && !flow.parked && flow.demand_end > flow.resolved;
  flow.ready = sends ? std::min(flow.demand_end - flow.resolved, flow.most_ready) : 0;
  outstanding_total_ += flow.outstanding;
  charged_total_ += flow.charge;
  ahead_total_ += flow.ahead_charge;
  ready_total_ += flow.ready;

  SetWanting(id, !flow.parked && !Trusted(flow) && flow.demand_end > flow.granted);
  TellOthers();
  if (flow.parked) {
    watched_.Remove(id);
    return;
  }
  if (!Eligible(flow)) {
    LeaveQueues(id);
  } else if (flow.place == Place::kNowhere) {
    Queue(id, now);
  }
  // Its grant may be lost.
  if (flow.ahead_charge > 0 && flow.place == Place::kNowhere && flow.reissues < kMaxReissues) {
    WaitUntil(id, now + sizes_.park * (int64_t{2} << flow.reissues));
  }
  if (flow.charge > 0 && !watched_.Contains(id)) {
    // The sender of a flow with nothing on its way may not be ready for long: its credit holds the budget for less.
    flow.ahead = flow.tx_total <= flow.resolved;
    flow.check_at =
        now + (flow.ahead ? std::min(sizes_.park, sizes_.rtt * (kFirstParkRtts >> flow.in_vain)) : sizes_.park);
    flow.check_due = useful - std::min(useful, flow.resolved);
    flow.check_arrived = flow.arrived;
    flow.arrived_since_check = false;
    watched_.PushBack(id);
  }
}

uint64_t TitaReceiver::BytesPerRtt(double rate) const {
  return static_cast<uint64_t>(std::min(rate * sizes_.rtt.seconds(), static_cast<double>(kMaxBytes)));
}

void TitaReceiver::SetSilence(uint32_t id, Silence silence) {
  Flow& flow = flows_[id];
  if (flow.silence == silence) return;
  if (flow.silence != Silence::kNone) (Trusted(flow) ? trusted_ : fresh_).Remove(id);
  if (Trusted(flow)) LeaveQueues(id);
  flow.silence = silence;
  if (silence != Silence::kNone) (Trusted(flow) ? trusted_ : fresh_).PushBack(id);
}

void TitaReceiver::SetWanting(uint32_t id, bool wanting) {
  Flow& flow = flows_[id];
  if (flow.wanting == wanting) return;
  flow.wanting = wanting;
  if (wanting) {
    flow.wanting_index = static_cast<uint32_t>(wanting_.size());
    wanting_.push_back({.id = id, .group = flow.group, .cap = flow.cap, .crosses_core = flow.crosses_core});
    cap_sum_ += flow.cap;
    if (flow.crosses_core) ++core_wanting_;
    if (flow.group != kNoGroup) {
      ++groups_[flow.group].wanting;
      if (flow.group_known && flow.crosses_core) ExpectOfCore(groups_[flow.group]);
    }
  } else {
    const Wanting& last = wanting_.back();
    flows_[last.id].wanting_index = flow.wanting_index;
    wanting_[flow.wanting_index] = last;
    wanting_.pop_back();
    cap_sum_ -= flow.cap;
    if (flow.crosses_core) --core_wanting_;
    if (flow.group != kNoGroup) --groups_[flow.group].wanting;
  }
  UpdateLimit();
  RatesChanged();
}

void TitaReceiver::LookAtOthers() {
  others_ = pool_.others();
  UpdateLimit();
}

void TitaReceiver::TellOthers() { pool_.Tell(charged_total_, cap_sum_); }

// What the others leave; who finds that they have it all gets an equal part, for which they then make room.
void TitaReceiver::UpdateLimit() {
  const uint64_t budget = budget_bytes();
  limit_ = std::max(budget / (1 + others_.active), budget - std::min(budget, others_.bytes));
}

// Where several flows of each of several groups want to come here, as in an all-to-all or a wide incast, hardly more
// ports of the own group can be taking at once than a group has that send.
void TitaReceiver::ExpectOfCore(Group& group) {
  if (group.wanting < 2) return;
  if (!group.has_had_several) ++groups_with_several_;
  group.has_had_several = true;
  most_of_a_group_ = std::max(most_of_a_group_, group.wanting);
  if (groups_with_several_ < 2) return;
  port_core_.Expect(std::min(group_core_rate_ / most_of_a_group_, sizes_.line_rate));
}

// The sender speaks although it should have credit that it is not using: the grant may be lost.
void TitaReceiver::MaybeReissue(uint32_t id, Time now) {
  Flow& flow = flows_[id];
  if (flow.granted <= flow.tx_total || flow.demand_end <= flow.tx_total) return;
  if (now - flow.last_activity < sizes_.rtt * 2) return;
  flow.last_activity = now;
  if (!reissue_.Contains(id)) reissue_.PushBack(id);
}

// `rate`: wire bytes per second received in the last round trip. Rate times round trip is what the path itself holds in
// flight, which does not need room in the receive buffer. The estimate decays by an eighth per round trip, so that a
// short pause does not shrink the budget.
void TitaReceiver::ReckonPath(double rate, Time now) {
  const uint64_t buffer = port_.receive_buffer_bytes;
  if (!rtt_measured_ || buffer == 0) return;
  const uint64_t came = std::min(static_cast<uint64_t>(rate * sizes_.rtt.seconds()), kMaxBytes);
  const uint64_t path = std::max(came, path_bytes_ / 8 * 7);
  const uint64_t apart = std::max(path, path_bytes_) - std::min(path, path_bytes_);
  if (apart <= buffer / 8) return;
  path_bytes_ = path;
  if (TitaSizesFor(parameters_, port_).budget_most < buffer) return;  // what the lane can hold is no bound
  SetPort(port_, now);
}

void TitaReceiver::MeterDownlink(Time now, uint64_t wire_bytes) {
  const Duration elapsed = now - meter_start_;
  if (elapsed >= sizes_.rtt || elapsed < Duration()) {
    const double rate = elapsed > Duration() ? static_cast<double>(meter_bytes_) / elapsed.seconds() : 0;
    downlink_full_ = rate >= kFullDownlink * sizes_.grant_rate;
    ReckonPath(rate, now);
    meter_start_ = now;
    meter_bytes_ = 0;
  }
  meter_bytes_ += wire_bytes;
}

uint32_t TitaReceiver::CountMarks(const ArrivalSample& sample, int64_t queueing_nanos) {
  if (parameters_.core_ecn) {
    if (sample.marked_packets > 0) mark_seen_ = true;
    if (mark_seen_ || !parameters_.core_delay) return sample.marked_packets;
  }
  return parameters_.core_delay && queueing_nanos > core_delay_.nanos() ? sample.packets : 0;
}

int64_t TitaReceiver::QueueingNanos(Flow& flow, const ArrivalSample& sample) {
  // Modulo 2^32: one-way delays come from 32-bit timestamps, and only differences below two seconds matter.
  const auto delay = static_cast<uint32_t>(sample.relative_delay_nanos);
  const auto epoch = static_cast<uint32_t>(sample.now.nanos() / kDelayEpochNanos) + 1;
  if (flow.delay_epoch != epoch) {
    const bool follows = flow.delay_epoch != 0 && epoch - flow.delay_epoch == 1;
    flow.delay_least_before = follows ? flow.delay_least : delay;
    flow.delay_least = delay;
    flow.delay_epoch = epoch;
  }
  if (Over(delay, flow.delay_least) < 0) flow.delay_least = delay;
  return std::max(Over(delay, flow.delay_least), Over(delay, flow.delay_least_before));
}

void TitaReceiver::TellCore(uint32_t id, const ArrivalSample& sample) {
  if (!parameters_.core_ecn && !parameters_.core_delay) return;
  Flow& flow = flows_[id];
  const int64_t queueing_nanos = QueueingNanos(flow, sample);
  const uint32_t marks = CountMarks(sample, queueing_nanos);
  const uint32_t queued = queueing_nanos > queue_delay_.nanos() ? sample.packets : 0;
  // One flow alone in trouble gets a limit of its own; what is common to many is the port's.
  if (marks > 0 && flow.group == kNoGroup && !flow.group_known && !port_core_.limited()) {
    flow.group = NewGroup();
    flow.private_group = flow.group != kNoGroup;
    if (flow.private_group && flow.wanting) {
      ++groups_[flow.group].wanting;
      wanting_[flow.wanting_index].group = flow.group;
    }
  }
  const uint64_t wire = sizes_.WireBytes(std::min(sample.bytes, kMaxBytes));
  // A flow that the port's limit holds back says nothing of its group.
  const bool held_by_port = flow.crosses_core && port_core_.limited() && port_core_.stated();
  bool limited_now = false;
  const auto tell = [&](CoreLimit& core) {
    const bool limited_before = core.limited();
    core.OnArrival(core_parameters_, sample.now, wire, sample.packets, marks, queued, downlink_full_);
    limited_now = limited_now || (core.limited() && !limited_before);
  };
  if (flow.group != kNoGroup && !held_by_port) tell(groups_[flow.group].limit);
  if (flow.crosses_core) tell(port_core_);
  if (limited_now) QueueAnew(sample.now);
}

}  // namespace paceline
