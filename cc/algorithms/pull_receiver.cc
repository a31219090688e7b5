#include "cc/algorithms/pull_receiver.h"

#include <algorithm>

#include "cc/algorithms/bdp.h"

namespace paceline {
namespace {

constexpr int64_t kStartRtts = 2;    // demand without data is pulled from then on
constexpr int64_t kSilenceRtts = 4;  // then a grant is sent again

uint64_t PullBytes(const PullRules& rules, uint64_t segment) {
  const auto bytes = static_cast<uint64_t>(rules.pull_segments * static_cast<double>(segment));
  return std::max(bytes / rules.quantum * rules.quantum, segment);
}

}  // namespace

PullReceiver::PullReceiver(const PullRules& rules, const PortInfo& port, uint64_t seed)
    : rules_(rules),
      port_(port),
      segment_(SegmentBytes(port)),
      overhead_(port.overhead_bytes),
      pull_(PullBytes(rules, segment_)),
      line_rate_(LinkRate(port).bytes_per_second()),
      rate_(line_rate_ * rules.rate),
      pool_(port.credit_pool, port.credit_pool_member) {
  const double core_rate = port.core_rate.bytes_per_second();
  const double stated = core_rate > 0 ? line_rate_ / core_rate : 1;
  const double oversubscription = std::max(rules.oversubscription, stated);
  if (rules.core_loop && oversubscription > 1) {
    core_.emplace(rules.core, BaseRtt(port), oversubscription, seed + port.port_index);
  }
}

PullReceiver::Flow* PullReceiver::Find(uint32_t flow) {
  return flow < flows_.size() && flows_[flow].in_use ? &flows_[flow] : nullptr;
}

void PullReceiver::AddFlow(uint32_t id, const FlowInfo& info, Time now) {
  if (id >= kMaxFlows) return;
  RemoveFlow(id, now);
  if (id >= flows_.size()) {
    flows_.resize(id + 1);
    place_links_.Reserve(id + 1);
    idle_links_.Reserve(id + 1);
    repeat_links_.Reserve(id + 1);
    timers_.Reserve(id + 1);
  }
  Flow& flow = flows_[id];
  flow.in_use = true;
  SetSizes(flow, info);
  flow.last_activity = now;
}

void PullReceiver::SetSizes(Flow& flow, const FlowInfo& info) const {
  flow.sizes = PullSizes(rules_, port_, info);
  flow.idle_credit = rules_.idle_credit > 0 ? BdpScaled(port_, flow.sizes.rtt, rules_.idle_credit) : 0;
}

void PullReceiver::OnBaseRtt(uint32_t id, Duration rtt, Time now) {
  Flow* flow = Find(id);
  if (flow == nullptr) return;
  SetSizes(*flow, {.base_rtt = rtt});
  Settle(id, now);
}

void PullReceiver::RemoveFlow(uint32_t id, Time) {
  Flow* flow = Find(id);
  if (flow == nullptr) return;
  Leave(id);
  idle_.Remove(id);
  repeat_.Remove(id);
  timers_.Remove(id);
  outstanding_total_ -= flow->outstanding;
  *flow = Flow();
  TellOthers();
}

void PullReceiver::OnDemand(uint32_t id, uint64_t demand_end, Rate cap, Time now) {
  Flow* flow = Find(id);
  if (flow == nullptr) return;
  newest_now_ = std::max(newest_now_, now);
  flow->demand_end = std::min(demand_end, kMaxBytes);
  TakeBack(*flow, flow->demand_end);
  const double share = cap.bytes_per_second() / line_rate_;
  flow->share = share > 0.0001 ? std::min(share, 1.0) : 0.0001;  // a NaN fails the comparison
  const bool rested = Committed(*flow) == flow->resolved && now - flow->last_activity > flow->sizes.rtt;
  const bool quiet = flow->state == State::kQuiet || (flow->state == State::kOpen && rested);
  if (quiet && flow->demand_end > Committed(*flow)) {
    flow->state = State::kStarting;
    flow->idle_spent = 0;
    SetTimer(id, now + flow->sizes.rtt * kStartRtts);
  }
  Settle(id, now);
}

void PullReceiver::OnArrival(uint32_t id, const ArrivalSample& sample) {
  Flow* flow = Find(id);
  if (flow == nullptr) return;
  const Time now = sample.now;
  newest_now_ = std::max(newest_now_, now);
  const uint32_t trimmed_packets = std::min(sample.trimmed_packets, sample.packets);
  uint64_t bytes = std::min(sample.bytes, kMaxBytes);
  uint64_t cut = 0;
  if (trimmed_packets > 0) {
    // Of what arrived and was cut together the cut part; a lane that does not say counts as whole segments.
    const uint64_t each = bytes > 0 ? bytes / sample.packets : segment_;
    cut = each * trimmed_packets;
    bytes -= std::min(bytes, cut);
  }
  if (bytes + cut > 0 && (flow->state == State::kQuiet || flow->state == State::kStarting)) {
    flow->state = State::kFirst;
    flow->first_window_due = true;
    flow->first_base = flow->tx_total;
    flow->first_lost = flow->lost_total;
    SetTimer(id, now + flow->sizes.rtt);
  }

  const uint64_t tx_total = std::min(sample.tx_total, kMaxBytes);
  if (tx_total > flow->tx_total) {
    flow->tx_total = tx_total;
    CountSpeculative(*flow);
    // No honest sender has more on the way.
    const uint64_t most = 2 * (flow->sizes.first_window + flow->sizes.window + flow->idle_credit) + pull_;
    flow->resolved = std::max(flow->resolved, Committed(*flow) - std::min(Committed(*flow), most));
  }
  // A packet that began where the credit before the newest pull ended, or a request for want of credit, shows that the
  // newest pull has come.
  const uint64_t sent_from = flow->tx_total - std::min(flow->tx_total, std::min(bytes + cut, segment_));
  const bool has_newest = bytes + cut == 0 || sent_from >= flow->before_last_pull;
  flow->known = has_newest ? flow->granted : flow->before_last_pull;
  const uint64_t lost_total = std::min(sample.lost_total, kMaxBytes);
  uint64_t lost = 0;
  if (lost_total > flow->lost_total) {
    lost = lost_total - flow->lost_total;
    flow->lost_total = lost_total;
    flow->trimmed -= std::min(lost, flow->trimmed);
  }
  flow->trimmed = std::min(flow->trimmed + cut, flow->sizes.first_window + flow->sizes.window);
  if (rules_.retransmit_first) {
    flow->to_retransmit = std::min(flow->to_retransmit + cut, flow->sizes.first_window + flow->sizes.window);
  }
  // Duplicates and losses declared too early would count twice: never more than what was sent.
  const uint64_t gone = std::min(bytes, kMaxBytes) + lost;
  flow->resolved += std::min(gone, flow->tx_total - flow->resolved);

  flow->last_activity = now;
  flow->repeats = 0;
  if (core_) {
    core_->Advance(now);
    core_->OnArrival(sample.packets, sample.marked_packets, trimmed_packets);
  }
  Settle(id, now);
}

// How far the sender may be pulled.
uint64_t PullReceiver::Target(const Flow& flow) const {
  const uint64_t wanted = flow.demand_end;
  if (rules_.per_arrival) {
    const uint64_t room = flow.resolved + flow.trimmed + flow.sizes.window;
    return std::min(wanted, room - std::min(room, segment_ - 1));
  }
  const uint64_t m = std::min(wanted - std::min(wanted, flow.tx_total), flow.sizes.window);
  const uint64_t whole = flow.tx_total + m;
  if (!rules_.divide_demand || whole <= flow.known) return whole;
  return flow.known + static_cast<uint64_t>(static_cast<double>(whole - flow.known) * flow.share) + 1;
}

uint64_t PullReceiver::NextPull(const Flow& flow) const {
  const uint64_t wanted = Committed(flow) < flow.demand_end ? flow.demand_end - flow.granted : 0;
  const uint64_t target = Target(flow);
  if (!rules_.exact_pulls || target <= flow.granted) return std::min(pull_, wanted);
  const uint64_t asked = (target - flow.granted + rules_.quantum - 1) / rules_.quantum * rules_.quantum;
  return std::min({pull_, asked, wanted});
}

// What was sent without credit counts as granted, but not the part of a packet that went beyond the end of credit.
void PullReceiver::CountSpeculative(Flow& flow) const {
  if (flow.tx_total >= flow.granted + segment_) flow.granted = flow.tx_total;
}

void PullReceiver::TakeBack(Flow& flow, uint64_t keep) const {
  const uint64_t least = std::max(flow.stated, keep);
  if (flow.granted <= least) return;
  flow.granted = least;
  CountSpeculative(flow);
  flow.known = std::min(flow.known, flow.granted);
  flow.before_last_pull = std::min(flow.before_last_pull, flow.granted);
}

bool PullReceiver::WantsPull(const Flow& flow) const {
  const bool started = flow.state == State::kFirst || flow.state == State::kOpen;
  return started && Committed(flow) < flow.demand_end && flow.granted < Target(flow);
}

PullReceiver::Place PullReceiver::PlaceOf(const Flow& flow) const {
  if (!WantsPull(flow)) return Place::kNowhere;
  return flow.to_retransmit > 0 ? Place::kRetransmit : Place::kActive;
}

bool PullReceiver::MayHaveIdlePull(const Flow& flow) const {
  if (flow.state < State::kFirst || flow.first_window_due) return false;
  return flow.granted - std::min(flow.granted, Target(flow)) + flow.idle_spent < flow.idle_credit;
}

const FlowRing* PullReceiver::NextRing() const {
  for (const FlowRing* ring : {&retransmit_, &active_, &idle_}) {
    if (!ring->empty()) return ring;
  }
  return nullptr;
}

void PullReceiver::TellOthers() { pool_.Tell(0, NextRing() != nullptr ? rate_ : 0); }

// Brings the total, the rings and the timer in line with the flow's counts.
void PullReceiver::Settle(uint32_t id, Time now) {
  Flow& flow = flows_[id];
  outstanding_total_ -= flow.outstanding;
  flow.outstanding = Committed(flow) - flow.resolved;
  outstanding_total_ += flow.outstanding;
  if (Committed(flow) >= flow.demand_end) flow.to_retransmit = 0;

  const Place place = PlaceOf(flow);
  if (place != flow.place) {
    Leave(id);
    if (place != Place::kNowhere) {
      if (NextRing() == nullptr) clock_.RaiseTo(now);
      Ring(place).PushBack(id);
      flow.place = place;
    }
  }
  if (const bool idle = MayHaveIdlePull(flow); idle != idle_.Contains(id)) {
    if (idle && NextRing() == nullptr) clock_.RaiseTo(now);
    idle ? idle_.PushBack(id) : idle_.Remove(id);
  }
  if (flow.state == State::kOpen && flow.outstanding > 0 && flow.repeats < kMaxRepeats && !timers_.Contains(id)) {
    SetTimer(id, now + flow.sizes.rtt * (kSilenceRtts << flow.repeats));
  }
  TellOthers();
}

void PullReceiver::Leave(uint32_t id) {
  Flow& flow = flows_[id];
  if (flow.place == Place::kNowhere) return;
  Ring(flow.place).Remove(id);
  flow.place = Place::kNowhere;
}

void PullReceiver::ReckonFirstWindow(Flow& flow) {
  flow.first_window_due = false;
  uint64_t window = flow.sizes.first_window;
  if (rules_.drop_first_window) {
    const auto sent = static_cast<uint64_t>(static_cast<double>(flow.sizes.bdp) * flow.share);
    window = std::min(window, (sent + segment_ - 1) / segment_ * segment_);
  }
  // What is sent again was not in it.
  const uint64_t new_end = flow.demand_end - std::min(flow.demand_end, flow.lost_total - flow.first_lost);
  flow.granted = std::max(flow.granted, std::min(new_end, flow.first_base + window));
}

// False: the pull's time was spent on a sender that has nothing more.
bool PullReceiver::Pull(uint32_t id, bool idle, Time now) {
  Flow& flow = flows_[id];
  const uint64_t bytes = NextPull(flow);
  const uint64_t slot = idle ? pull_ : bytes;
  flow.idle_spent += slot - bytes;
  if (bytes > 0) {
    flow.before_last_pull = flow.granted;
    flow.granted += bytes;
    flow.stated = flow.granted;
    flow.to_retransmit -= std::min(flow.to_retransmit, bytes);
    flow.last_activity = now;
  }
  clock_.Advance(static_cast<double>(WireBytes(slot)) * 1e9 / pull_rate());
  // To the end of its ring.
  if (idle) {
    idle_.Remove(id);
  } else {
    Leave(id);
  }
  Settle(id, now);
  return bytes > 0;
}

void PullReceiver::SetTimer(uint32_t id, Time time) {
  timers_.Remove(id);
  timers_.Push(id, time);
}

void PullReceiver::RunTimer(uint32_t id, Time now) {
  Flow& flow = flows_[id];
  timers_.Remove(id);
  switch (flow.state) {
    case State::kQuiet:
      return;
    case State::kStarting:
      flow.state = State::kOpen;
      break;
    case State::kFirst:
      flow.state = State::kOpen;
      if (rules_.drop_first_window && !flow.first_window_due) TakeBack(flow, 0);
      flow.first_window_due = false;
      break;
    case State::kOpen: {
      const Duration silence = flow.sizes.rtt * (kSilenceRtts << flow.repeats);
      if (now - flow.last_activity < silence) {
        if (flow.outstanding > 0) SetTimer(id, flow.last_activity + silence);
        break;
      }
      flow.trimmed = 0;  // the sender has said it long ago, or never will
      if (flow.granted > flow.tx_total && !repeat_.Contains(id)) repeat_.PushBack(id);
      ++flow.repeats;
      break;
    }
  }
  Settle(id, now);
}

Time PullReceiver::PollTimeout() const {
  if (!repeat_.empty()) return newest_now_;
  const Time next = timers_.front_time();
  return NextRing() != nullptr ? std::min(next, clock_.time()) : next;
}

size_t PullReceiver::PollGrants(Time now, std::span<Grant> out) {
  if (out.empty()) return 0;
  newest_now_ = std::max(newest_now_, now);
  if (pool_.has_others()) others_ = pool_.others().active;
  GrantWriter writer(out, ++call_);
  const auto write = [&](uint32_t id) {
    Flow& flow = flows_[id];
    const size_t sharing = std::max<size_t>(retransmit_.size() + active_.size(), 1);
    const Rate rate = Rate::BytesPerSecond(pull_rate() / static_cast<double>(sharing));
    writer.Write(flow.written_at, {id, flow.granted, rate});
  };

  if (core_) core_->Advance(now);
  while (timers_.front_time() <= now) RunTimer(timers_.front(), now);
  while (!repeat_.empty() && !writer.full()) {
    const uint32_t id = repeat_.front();
    repeat_.PopFront();
    flows_[id].stated = flows_[id].granted;
    write(id);
  }
  for (const FlowRing* ring = NextRing(); ring != nullptr && clock_.time() <= now; ring = NextRing()) {
    const uint32_t id = ring->front();
    if (flows_[id].first_window_due) {
      ReckonFirstWindow(flows_[id]);
      Settle(id, now);
      continue;
    }
    if (!writer.HasRoomFor(flows_[id].written_at)) return writer.written();
    if (Pull(id, ring == &idle_, now)) write(id);
  }
  return writer.written();
}

}  // namespace paceline
