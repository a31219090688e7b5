// Acknowledgements, loss verdicts and time-outs of the sending half.
//
// A packet is found lost when
//   - a packet of its class sent later on the same path was acknowledged (a path keeps order within a class), or
//   - a packet that the network sends no earlier than its class, sent a reordering window later through the same port,
//     was acknowledged (RACK, RFC 8985 section 6.2), or
//   - the receiver got its header without the payload (trimming), or
//   - nothing of its class came back through its port for a retransmission time-out.
// A tail probe (RFC 8985 section 7) asks for news long before the time-out; it is of the class that it asks about, so
// that it waits in the same queues. After a time-out a few packets try the path until something arrives. Writes
// by remote placement are sent again only after the first kind of verdict, or when the peer has fenced their path
// (sender_fence.cc): until then a copy may still land.
#include <algorithm>
#include <bit>
#include <bitset>
#include <utility>

#include "transport/base/sequence.h"
#include "transport/core/tx/sender.h"

namespace paceline {
namespace {

constexpr Duration kHeldRetry = Duration::Millis(500);
// The time-out before any round trip has been measured (RFC 6298 section 2.1), as the first queue may be of any length.
// Tail probes find real losses sooner.
constexpr Duration kFirstTimeout = Duration::Seconds(1);
// In a row, before the lane is asked to find another way for a path of remote placement; then every second one.
constexpr uint32_t kTimeoutsBeforeReset = 1;
// In a row, before the peer is asked to fence such paths.
constexpr uint32_t kTimeoutsBeforeFence = 4;
}  // namespace

RecoveryLimits Sender::Limits() const {
  const EndpointOptions& options = context_->options;
  return {.min_timeout = options.min_timeout,
          .min_probe = options.min_probe,
          .max_ack_delay = options.max_ack_delay,
          .usual_silence = quiet_.get()};
}

RecoveryLimits Sender::LimitsOf(uint32_t local_port, TrafficClass traffic_class) const {
  RecoveryLimits limits = Limits();
  const ClassRecovery& recovery = Recovery(local_port, traffic_class);
  if (!recovery.rtt().measured()) {
    const auto is_measured = [](const ClassRecovery& any) { return any.rtt().measured(); };
    if (std::none_of(recovery_.begin(), recovery_.end(), is_measured)) limits.first_timeout = kFirstTimeout;
    return limits;  // the port may be much farther than the others
  }
  if (context_->ports.size() == 1) return limits;
  const Time silent_for_long = recovery.silent_since() + recovery.rtt().smoothed();
  for (size_t i = 0; i < recovery_.size(); ++i) {
    const bool other_port = i / kTrafficClasses != local_port;
    limits.others_arrive |= other_port && recovery_[i].newest_arrived_sent_at() > silent_for_long;
  }
  limits.delay_error = context_->ports[local_port].capabilities.delay_error;
  return limits;
}

const RttEstimator& Sender::Rtt(uint32_t local_port) const {
  const RttEstimator& bulk = Recovery(local_port, TrafficClass::kBulk).rtt();
  const RttEstimator& brief = Recovery(local_port, TrafficClass::kShort).rtt();
  return bulk.measured() || !brief.measured() ? bulk : brief;
}

Duration Sender::LeastRtt(uint32_t local_port) const {
  const RttEstimator& rtt = Rtt(local_port);
  return rtt.measured() ? rtt.least() : Duration();
}

Duration Sender::base_rtt() const {
  const uint32_t port = peer_->first_port();
  return context_->ports[port].measures_rtt() ? LeastRtt(port) : Duration();
}

void Sender::TellBaseRtt(Flow& flow, uint32_t local_port, Time now) {
  const Duration least = LeastRtt(local_port);
  if (least == Duration()) return;
  const Duration rtt = context_->ports[local_port].BaseRtt(least);
  if (rtt > flow.base_rtt - flow.base_rtt / 8 && rtt < flow.base_rtt + flow.base_rtt / 8) return;
  flow.base_rtt = rtt;
  context_->counters.base_rtt_nanos = static_cast<uint64_t>(least.nanos());
  flow.controller->OnBaseRtt(rtt, now);
}

TrafficClass Sender::ClassOf(uint32_t local_port, uint32_t payload_bytes) const {
  switch (context_->ports[local_port].capabilities.overtaking) {
    case Overtaking::kControl:
      return payload_bytes > 0 ? TrafficClass::kBulk : TrafficClass::kShort;
    case Overtaking::kShort:
      return payload_bytes * 2 > PayloadBytes(local_port) ? TrafficClass::kBulk : TrafficClass::kShort;
    case Overtaking::kNone:
      break;
  }
  return TrafficClass::kBulk;
}

uint32_t Sender::questions_in_a_row() const {
  uint32_t most = 0;
  for (const ClassRecovery& recovery : recovery_) most = std::max(most, recovery.questions_in_a_row());
  return most + stuck_backoff_ + (unanswered_demands_ > 0 ? unanswered_demands_ - 1 : 0);
}

Duration Sender::ProbeDelay(uint32_t local_port) const {
  return Recovery(local_port, TrafficClass::kBulk).ProbeDelay(AckDelay(), Limits());
}

// How long the peer's acknowledgement of the newest packet may wait, as far as a lane of ours tells.
Duration Sender::AckDelay() const {
  return backlog() == 0 ? context_->options.last_ack_delay : context_->AckDelay(context_->ports.front());
}

Time Sender::TimeoutAt() const {
  if (outstanding_count_ == 0) return Time::Never();
  const Duration ack_delay = AckDelay();
  Time next = Time::Never();
  for (uint32_t port = 0; port < context_->ports.size(); ++port) {
    for (const TrafficClass traffic_class : {TrafficClass::kBulk, TrafficClass::kShort}) {
      const ClassRecovery& recovery = Recovery(port, traffic_class);
      if (recovery.outstanding() == 0) continue;
      next = std::min(next, recovery.TimeoutAt(ack_delay, LimitsOf(port, traffic_class)));
    }
  }
  return next;
}

// The connection's own ports, or all of them while none of its own can be trusted.
bool Sender::Eligible(uint32_t port) const {
  if (!peer_->reaches(port)) return false;
  if (peer_->prefers(port)) return true;
  for (const Port& own : context_->ports) {
    if (peer_->prefers(own.index) && own.up && !health_.IsSuspect(own.index)) return false;
  }
  return true;
}

bool Sender::MayUse(uint32_t port, Time now) const {
  if (!Eligible(port)) return false;
  if (Fencing(peer_->routes.remote_of[port]) || AwaitsTrial(port)) return false;
  const auto is_up = [this](uint32_t other) {
    return context_->ports[other].up && peer_->reaches(other) && !Fencing(peer_->routes.remote_of[other]);
  };
  return health_.MayUse(port, static_cast<uint32_t>(context_->ports.size()), now, is_up);
}

void Sender::FindNextSend() {
  next_send_ = Time::Never();
  for (const Flow& flow : flows_) next_send_ = std::min(next_send_, flow.next_send);
}

Time Sender::PollTimeout() const {
  Time next = std::min({TimeoutAt(), stuck_at_, next_send_, fence_at_});
  for (const Flow& flow : flows_) {
    if (flow.controller != nullptr) next = std::min(next, flow.controller->PollTimeout());
  }
  return next;
}

void Sender::HandleTimeout(Time peer_heard_at, Time now) {
  for (Flow& flow : flows_) {
    if (flow.controller != nullptr && flow.controller->PollTimeout() <= now) {
      flow.controller->HandleTimeout(now);
      state_->ready_ports = AllPorts();
    }
  }
  if (next_send_ <= now) {
    for (Flow& flow : flows_) flow.next_send = Time::Never();
    next_send_ = Time::Never();
    state_->ready_ports = AllPorts();
  }
  if (stuck_at_ <= now) {
    stuck_at_ = Time::Never();
    bool asks = false;
    for (const Port& port : context_->ports) {
      if (!Eligible(port.index)) continue;
      const uint32_t remote = peer_->routes.remote_of[port.index];
      const Flow& flow = ActiveFlow(remote, now);
      if (waiting_.empty() && HasCredit(port, flow)) continue;
      state_->demand_pending |= static_cast<uint8_t>(1u << remote);
      if (unanswered_demands_ > 0) demand_twice_ |= static_cast<uint8_t>(1u << remote);
      asks = true;
    }
    if (asks) {
      if (unanswered_demands_ == 0) stuck_backoff_ = std::min(stuck_backoff_ + 1, 12u);
      ++unanswered_demands_;
    }
    if (now - held_retried_at_ >= kHeldRetry) {
      held_retried_at_ = now;
      RetryHeld();
    }
    state_->ready_ports = AllPorts();
  }
  if (fence_at_ <= now) HandleFenceTimeout(now);
  if (TimeoutAt() > now) return;
  state_->ready_ports = AllPorts();
  for (const Port& port : context_->ports) {
    for (const TrafficClass traffic_class : {TrafficClass::kBulk, TrafficClass::kShort}) {
      ClassRecovery& recovery = Recovery(port.index, traffic_class);
      if (recovery.TimeoutAt(AckDelay(), LimitsOf(port.index, traffic_class)) <= now) {
        HandleTimeout(recovery, port.index, traffic_class, peer_heard_at, now);
      }
    }
  }
  ReportLosses(now);
  AdvanceBase(now);
}

bool Sender::AnyClassArrives(uint32_t local_port) const {
  const auto first = recovery_.begin() + static_cast<ptrdiff_t>(local_port * kTrafficClasses);
  return std::any_of(first, first + kTrafficClasses, [](const ClassRecovery& recovery) {
    return recovery.outstanding() > 0 && !recovery.in_backoff();
  });
}

// A port without outstanding packets in back-off counts as alive: nothing has shown the opposite.
bool Sender::MayArrive(TrafficClass traffic_class, Time since) const {
  return std::any_of(context_->ports.begin(), context_->ports.end(), [&](const Port& port) {
    if (!port.up || !peer_->reaches(port.index)) return false;
    const bool longer_arrive = Recovery(port.index, TrafficClass::kBulk).silent_since() > since;
    const uint32_t bytes = traffic_class == TrafficClass::kBulk ? peer_->segment_bytes : 0;
    return longer_arrive || !Recovery(port.index, ClassOf(port.index, bytes)).in_backoff();
  });
}

void Sender::HandleTimeout(ClassRecovery& recovery, uint32_t port, TrafficClass traffic_class, Time peer_heard_at,
                           Time now) {
  const uint32_t timeouts_before = recovery.timeouts_in_a_row();
  if (recovery.HandleTimeout(AckDelay(), LimitsOf(port, traffic_class), now)) {
    ProbeLater(port, traffic_class);
    const uint32_t questions = recovery.questions_in_a_row();
    const bool many = traffic_class == TrafficClass::kBulk && recovery.outstanding() >= PayloadLimit::kSuspicious;
    if (questions == kQuestionsBeforeSizes || (questions == 1 && many)) AskForSizes(port, now);
    if (context_->ports[port].capabilities.remote_placement) write_probe_due_ |= static_cast<uint8_t>(1u << port);
    return;
  }
  ++context_->counters.timeouts;
  AskForSizes(port, now);
  if (!AnyClassArrives(port)) health_.OnSilence(port, Rtt(port).smoothed(), now);
  bool placed = false;
  const uint64_t end = outstanding_.end();
  for (uint64_t psn = outstanding_.begin(); psn < end; ++psn) {
    const Outstanding& entry = outstanding_[psn];
    if (entry.state != Outstanding::State::kOutstanding || entry.local_port != port ||
        entry.traffic_class != traffic_class) {
      continue;
    }
    if (entry.written) {
      placed = true;
    } else {
      OnPacketLost(psn, LossCause::kTimeout, now);
    }
  }
  // A peer that is away is its keepalive's business. But where it is heard of all the while, and no packet of the class
  // has arrived for the peer time-out, none will.
  const Duration patience = context_->options.peer_timeout;
  if (recovery.timeouts_in_a_row() >= kTimeoutsBeforeDead && now - recovery.silent_since() >= patience &&
      now - peer_heard_at <= patience / 2 && !MayArrive(traffic_class, now - patience)) {
    end_of_way_ = kNothingArrives;
  }
  if (!placed) return;
  write_probe_due_ |= static_cast<uint8_t>(1u << port);
  floor_probe_due_ |= static_cast<uint8_t>(AllPorts() & ~(1u << port));  // whether others arrive tells about this one
  if (timeouts_before >= kTimeoutsBeforeReset && timeouts_before % 2 == 1) ResetSilentPaths();
  if (timeouts_before >= kTimeoutsBeforeFence) FenceAll(now);
  // A path of remote placement that stays silent and is not fenced cannot be given up alone: a copy might land in
  // memory that was handed back. The connection ends instead.
  if (timeouts_before >= kTimeoutsBeforeDead &&
      now - outstanding_[outstanding_.begin()].sent_at >= context_->options.peer_timeout) {
    end_of_way_ = kSilentWrites;
  }
}

// Probes will follow on the new way: when one of them is acknowledged, what was written before and has not arrived is
// known to be lost.
void Sender::ResetSilentPaths() {
  std::bitset<limits::kMaxPorts * limits::kMaxEntropies> done;
  for (uint64_t psn = outstanding_.begin(); psn < outstanding_.end(); ++psn) {
    const Outstanding& entry = outstanding_[psn];
    if (entry.state != Outstanding::State::kOutstanding || !entry.written) continue;
    const size_t path = entry.local_port * limits::kMaxEntropies + entry.entropy;
    if (done[path]) continue;
    done.set(path);
    context_->environment->ResetPath(entry.local_port, peer_->routes.handle[entry.local_port], peer_->peer_connection,
                                     entry.entropy);
    ++context_->counters.path_resets;
  }
}

// A message may be held because of a "not ready" that came late, after the peer had taken it: then nobody will clear
// it. So each is tried again now and then; the peer takes it, says that it has it, or puts it off once more.
void Sender::RetryHeld() {
  for (TxMessage* message = waiting_.front(); message != nullptr;) {
    TxMessage* next = waiting_.Next(message);
    const bool was_sent =
        message->payload_bytes == 0 || message->payload_bytes > message->unsent_bytes() || message->bundled;
    if (message->held && was_sent) Clear(message);
    message = next;
  }
}

void Sender::HandleTelemetry(const wire::TelemetryFrame& frame) {
  if (frame.port >= flows_.size() || !flows_[frame.port].wants_telemetry) return;
  if (telemetry_ == nullptr) telemetry_ = std::make_unique<wire::TelemetryFrame>();
  *telemetry_ = frame;
  telemetry_news_ = true;
}

void Sender::HandleAck(const wire::AckFrame& frame, Time arrived, Time now) {
  if (outstanding_.empty()) return;
  AckTotals& totals = context_->ack_totals;
  totals.Reset();
  const uint64_t begin = outstanding_.begin();
  const uint64_t end = outstanding_.end();
  const uint64_t last = Unwrap(frame.last_psn, begin);
  const uint64_t cumulative = std::min(Unwrap(frame.cumulative, begin), end);
  const uint64_t base = Unwrap(frame.base, begin);
  told_from_ = base > cumulative ? base : 0;
  if (told_from_ == 0) tell_floor_ = false;

  // (Of a packet that has been found lost, too, if it is the news: that is how a path that has become longer shows.)
  if (last >= begin && last < end && (unacked_.Word(last & ~uint64_t{63}) >> (last & 63) & 1) != 0) {
    const Outstanding& entry = outstanding_[last];
    const Duration rtt = (arrived - entry.sent_at) - Duration::Nanos(frame.delay_nanos);
    if (rtt > Duration()) {  // the peer may state any delay, and its clock may leap: then it is no sample
      Recovery(entry.local_port, entry.traffic_class).OnRttSample(rtt, now);
      if (entry.bytes > 0) {  // control packets pass the queues that data waits in
        Paths(entry.local_port).OnDelay(entry.entropy, rtt, now);
        totals.Of(entry.remote_port).rtt = rtt;
        if (!windows_.empty()) {
          const Duration host_delay = context_->ports[entry.local_port].HostDelay();
          windows_[entry.local_port].OnRtt(rtt, host_delay, peer_->segment_bytes, now);
        }
      }
    }
  }

  const auto take = [&](uint64_t word_base, uint64_t arrived_bits, uint64_t marked_bits) {
    uint64_t news = unacked_.Word(word_base) & arrived_bits;
    unacked_.ClearInWord(word_base, news);
    while (news != 0) {
      const int at = std::countr_zero(news);
      const bool marked = (marked_bits >> at & 1) != 0;
      const int count = std::countr_one((news & (marked ? marked_bits : ~marked_bits)) >> at);
      news &= ~(LowBits(static_cast<uint64_t>(count)) << at);
      const uint64_t psn = word_base + static_cast<uint64_t>(at);
      OnPacketsAcked(psn, psn + static_cast<uint64_t>(count), marked, totals, now);
    }
  };
  for (uint64_t word_base = begin & ~uint64_t{63}; word_base < cumulative; word_base += 64) {
    const uint64_t below = LowBits(cumulative - word_base);
    uint64_t marks = 0;
    if (frame.has_marks && word_base >= base && (word_base - base) / 64 < frame.words) {
      marks = frame.marked[(word_base - base) / 64];
    }
    take(word_base, below, marks);
  }
  for (uint8_t i = 0; i < frame.words; ++i) {
    const uint64_t word_base = base + i * uint64_t{64};
    if (word_base + 64 <= begin || word_base >= end) continue;
    take(word_base, frame.received[i], frame.has_marks ? frame.marked[i] : 0);
  }

  TakeNews(totals, now);
}

void Sender::TakeNews(AckTotals& totals, Time now) {
  if (totals.progress) {
    AdvanceBase(now);  // what is resolved needs no look
    DetectReordered(now);
    for (size_t i = 0; i < recovery_.size(); ++i) {
      if ((totals.classes >> i & 1) == 0) continue;
      const Duration silence = recovery_[i].OnProgress(now);
      const bool was_lost = silence == Duration() || !new_losses_.empty() || unanswered_demands_ > 0;
      if (!was_lost) quiet_.Add(silence - context_->options.max_ack_delay);
    }
    ReportLosses(now);
    for (uint32_t port = 0; port < peer_->remote_ports; ++port) {
      if (!totals.Has(port)) continue;
      Flow& flow = ActiveFlow(port, now);
      AckSample& sample = totals.Of(port);
      sample.now = now;
      const uint32_t local = peer_->LocalOf(port);
      if (context_->ports[local].measures_rtt()) TellBaseRtt(flow, local, now);
      sample.in_flight_bytes = flow.in_flight;
      sample.backlogged = backlog() > 0;
      if (telemetry_news_ && telemetry_->port == port) sample.hops = std::span(telemetry_->hop).first(telemetry_->hops);
      flow.controller->OnAck(sample);
      TellBacklog(flow, now);
    }
  }
  telemetry_news_ = false;
  AdvanceBase(now);
  if (totals.progress) FenceIfOverdue(now);
  if (totals.progress && NeedsPort()) state_->ready_ports = AllPorts();
}

// Packets [psn, end) have arrived, all of them with a mark or none.
void Sender::OnPacketsAcked(uint64_t psn, uint64_t end, bool marked, AckTotals& totals, Time now) {
  while (psn < end) {
    if (outstanding_[psn].state == Outstanding::State::kOutstanding) {
      psn = OnBurstAcked(psn, end, marked, totals, now);
    } else {
      OnAckedLate(psn++, totals, now);
    }
  }
}

// Takes those from `psn` on together that follow each other on one path, at most a burst of its lane; returns the first
// that is not among them.
uint64_t Sender::OnBurstAcked(uint64_t psn, uint64_t end, bool marked, AckTotals& totals, Time now) {
  Outstanding& first = outstanding_[psn];
  TxMessage* message = first.message;
  const uint64_t burst = peer_->burst_segments;
  const bool bundle = first.kind == Outstanding::Kind::kBundle;
  const uint64_t most = first.written || bundle ? psn + 1 : std::min(end, psn + burst);
  first.message = nullptr;
  first.state = Outstanding::State::kResolved;
  Time newest_sent_at = first.sent_at;
  uint64_t bytes = first.bytes;
  uint64_t next = psn + 1;
  for (; next < most; ++next) {
    Outstanding& entry = outstanding_[next];
    // (Of the packets of one path each knows the one before.)
    if (entry.state != Outstanding::State::kOutstanding || entry.message != message ||
        entry.previous_on_path != next - 1 || entry.kind != first.kind || entry.traffic_class != first.traffic_class) {
      break;
    }
    entry.message = nullptr;
    entry.state = Outstanding::State::kResolved;
    entry.previous_on_path = 0;
    bytes += entry.bytes;
    newest_sent_at = std::max(newest_sent_at, entry.sent_at);
  }
  const uint64_t count = next - psn;
  NoteArrived(first, newest_sent_at, totals);
  Flow& flow = ActiveFlow(first.remote_port, now);
  totals.progress = true;
  AckSample& sample = totals.Of(first.remote_port);
  sample.acked_bytes += bytes;
  sample.acked_packets += static_cast<uint32_t>(count);
  if (marked) {
    sample.marked_bytes += bytes;
    sample.marked_packets += static_cast<uint32_t>(count);
  }
  const uint64_t bursts_under_way = flow.in_flight / (peer_->segment_bytes * burst);
  flow.in_flight -= bytes;
  outstanding_count_ -= count;
  Recovery(first.local_port, first.traffic_class).OnResolved(count);
  Paths(first.local_port).OnAck(first.entropy, marked, bursts_under_way);
  if (first.traffic_class == TrafficClass::kBulk || first.bytes > 0) {
    health_.OnAck(first.local_port);
  }
  if (!payload_limits_.empty()) NoteSizeArrived(first, newest_sent_at);
  if (first.kind == Outstanding::Kind::kProbe) trials_ &= static_cast<uint8_t>(~(1u << first.local_port));
  DetectPathGaps(psn, now);
  if (bundle) BundleAcked(first);
  if (message != nullptr) SegmentsAcked(message, first.kind, count);
  return next;
}

// It had been found lost, or its message has ended meanwhile.
void Sender::OnAckedLate(uint64_t psn, AckTotals& totals, Time now) {
  Outstanding& entry = outstanding_[psn];
  switch (entry.state) {
    case Outstanding::State::kQueued:
      Unneeded(entry);
      break;
    case Outstanding::State::kGhost: {
      entry.state = Outstanding::State::kResolved;
      if (entry.kind == Outstanding::Kind::kBundle) {
        BundleAckedLate(entry);
        break;
      }
      // The copy is not needed either, wherever it is.
      uint64_t copy = entry.next;
      while (outstanding_[copy].state == Outstanding::State::kGhost) copy = outstanding_[copy].next;
      // What a card may still be reading stays the message's.
      if (!outstanding_[copy].written) Unneeded(outstanding_[copy]);
      break;
    }
    case Outstanding::State::kOutstanding:
    case Outstanding::State::kResolved:
    case Outstanding::State::kQueuedDead:
      return;
  }
  // A wrong verdict: take it back, and judge less hastily.
  totals.progress = true;
  ++context_->counters.spurious_retransmits;
  ActiveFlow(entry.remote_port, now).lost_total -= entry.bytes;
  ClassRecovery& recovery = Recovery(entry.local_port, entry.traffic_class);
  recovery.OnLateArrival(entry.sent_at, entry.cause, Limits(), now);
  health_.OnAck(entry.local_port);
  NoteArrived(entry, entry.sent_at, totals);
}

// A packet like `entry`, sent then, has arrived.
void Sender::NoteArrived(const Outstanding& entry, Time sent_at, AckTotals& totals) {
  Recovery(entry.local_port, entry.traffic_class).OnArrived(sent_at, entry.entropy);
  totals.classes |= static_cast<uint16_t>(1u << IndexOf(entry.local_port, entry.traffic_class));
}

// Another copy of it has arrived.
void Sender::Unneeded(Outstanding& entry) {
  TxMessage* message = entry.message;
  if (message == nullptr) return;
  entry.message = nullptr;
  if (entry.state == Outstanding::State::kQueued) {
    entry.state = Outstanding::State::kQueuedDead;
    Uncount(entry);
  }
  SegmentsAcked(message, entry.kind, 1);
}

void Sender::DetectPathGaps(uint64_t psn, Time now) {
  Outstanding& acked = outstanding_[psn];
  const Port& port = context_->ports[acked.local_port];
  if (!port.capabilities.keeps_path_order) return;
  // Which of the short packets go ahead is not known.
  const bool mixed = port.capabilities.overtaking == Overtaking::kShort;
  if (mixed && acked.traffic_class == TrafficClass::kShort) return;
  const bool trusted = Recovery(acked.local_port, acked.traffic_class).trusts_path_order(now);
  uint64_t earlier = acked.previous_on_path;
  // What stands before this packet is judged now, or by time alone: later packets of the path need not look further
  // back. (A packet that is resolved for another reason says nothing of those before it.) But a write of which this
  // acknowledgement does not tell may have arrived: it waits for one that does.
  acked.previous_on_path = 0;
  while (earlier >= outstanding_.begin() && earlier != 0) {
    const Outstanding& entry = outstanding_[earlier];
    const uint64_t next = entry.previous_on_path;
    if (entry.state == Outstanding::State::kOutstanding && entry.written && earlier < told_from_) {
      acked.previous_on_path = earlier;
      // So that the peer no longer waits for what was sent again under other numbers, and tells more.
      tell_floor_ = true;
      return;
    }
    if (entry.state == Outstanding::State::kOutstanding && (trusted || entry.written)) {
      OnPacketLost(earlier, LossCause::kPathGap, now);
    }
    earlier = next;
  }
}

void Sender::DetectReordered(Time now) {
  for (uint32_t port = 0; port < context_->ports.size(); ++port) {
    const ClassRecovery& bulk = Recovery(port, TrafficClass::kBulk);
    ClassRecovery& brief = Recovery(port, TrafficClass::kShort);
    if (bulk.outstanding() > 0) DetectReordered(port, TrafficClass::kBulk, bulk.LostBefore(), now);
    // What is sent no sooner than short packets tells of them, too.
    const Time newest = std::max(brief.newest_arrived_sent_at(), bulk.newest_arrived_sent_at());
    if (brief.outstanding() > 0) DetectReordered(port, TrafficClass::kShort, newest - brief.ReorderWindow(), now);
  }
}

// (Numbers are in the order of sending.)
void Sender::DetectReordered(uint32_t port, TrafficClass traffic_class, Time lost_before, Time now) {
  ClassRecovery& recovery = Recovery(port, traffic_class);
  uint64_t psn = std::max(recovery.scan(), outstanding_.begin());
  for (; psn < outstanding_.end(); ++psn) {
    const Outstanding& entry = outstanding_[psn];
    if (entry.sent_at >= lost_before) break;
    if (entry.state != Outstanding::State::kOutstanding || entry.local_port != port ||
        entry.traffic_class != traffic_class) {
      continue;
    }
    if (entry.written) {
      // Only its own path can tell: ask it.
      if (now >= next_path_probe_) write_probe_due_ |= static_cast<uint8_t>(1u << port);
    } else {
      OnPacketLost(psn, LossCause::kReorder, now);
    }
  }
  recovery.ScanUpTo(psn);
}

void Sender::HandleTrimmed(const wire::TrimmedFrame& frame, Time now) {
  for (uint8_t i = 0; i < frame.count; ++i) {
    const uint64_t psn = Unwrap(frame.psns[i], outstanding_.begin());
    if (!outstanding_.Contains(psn) || outstanding_[psn].state != Outstanding::State::kOutstanding) continue;
    if (outstanding_[psn].written) continue;
    OnPacketLost(psn, LossCause::kTrimmed, now);
    Recovery(outstanding_[psn].local_port, outstanding_[psn].traffic_class).OnTrimmed(now);
  }
  ReportLosses(now);
  AdvanceBase(now);
}

void Sender::OnPacketLost(uint64_t psn, LossCause cause, Time now) {
  Outstanding& entry = outstanding_[psn];
  Flow& flow = ActiveFlow(entry.remote_port, now);
  --outstanding_count_;
  Recovery(entry.local_port, entry.traffic_class).OnResolved(1);
  flow.in_flight -= entry.bytes;
  flow.lost_total += entry.bytes;
  entry.cause = cause;
  entry.lost_at = now;
  switch (cause) {
    case LossCause::kPathGap:
      ++context_->counters.lost_path_gap;
      break;
    case LossCause::kReorder:
      ++context_->counters.lost_reorder;
      break;
    case LossCause::kTrimmed:
      ++context_->counters.lost_trimmed;
      break;
    case LossCause::kTimeout:
      ++context_->counters.lost_timeout;
      break;
    case LossCause::kFenced:
      ++context_->counters.lost_fenced;
      break;
  }
  NoteSizeLost(entry, now);
  const bool by_size = entry.kind == Outstanding::Kind::kProbe && entry.offset > PayloadBytes(entry.local_port);
  if (!by_size) {
    Paths(entry.local_port).OnLoss(entry.entropy, cause);
    health_.OnLoss(entry.local_port, Rtt(entry.local_port).smoothed(), now);
  }
  if (entry.bytes > 0) {
    size_t i = 0;
    while (i < new_losses_.size() && (new_losses_[i].cause != cause || new_loss_port_[i] != entry.remote_port)) ++i;
    if (i == new_losses_.size()) {
      new_losses_.push_back({.now = now, .cause = cause});
      new_loss_port_.push_back(entry.remote_port);
    }
    new_losses_[i].lost_bytes += entry.bytes;
    ++new_losses_[i].lost_packets;
  }
  state_->ready_ports = AllPorts();
  if (entry.kind == Outstanding::Kind::kBundle) return BundleLost(psn);
  TxMessage* message = entry.message;
  if (message == nullptr || entry.kind == Outstanding::Kind::kProbe) {
    trials_ &= static_cast<uint8_t>(~(1u << entry.local_port));
    entry.state = Outstanding::State::kResolved;
    unacked_.Clear(psn);
    return;
  }
  if (entry.kind == Outstanding::Kind::kAnnouncement) {
    const bool wanted =
        message->counts_announcement ? !message->announcement_acked : message->state == TxMessage::State::kWaiting;
    if (wanted && !message->announce_link.linked()) announce_.PushBack(message);
    entry.message = nullptr;
    entry.state = Outstanding::State::kResolved;
    unacked_.Clear(psn);
    return;
  }
  entry.state = Outstanding::State::kQueued;
  if (message->held) {
    Enqueue(message->held_packets, psn);
  } else {
    QueueRetransmit(psn);
  }
}

void Sender::ReportLosses(Time now) {
  for (size_t i = 0; i < new_losses_.size(); ++i) {
    Flow& flow = ActiveFlow(new_loss_port_[i], now);
    new_losses_[i].in_flight_bytes = flow.in_flight;
    flow.controller->OnLoss(new_losses_[i]);
  }
  new_losses_.clear();
  new_loss_port_.clear();
}

void Sender::AdvanceBase(Time now) {
  while (true) {
    uint64_t psn = outstanding_.begin();
    while (psn < outstanding_.end() && outstanding_[psn].state == Outstanding::State::kResolved) ++psn;
    outstanding_.AdvanceTo(psn);
    if (outstanding_.empty() || outstanding_[psn].state != Outstanding::State::kGhost) break;
    const Outstanding& lost = outstanding_[psn];
    const Duration memory = Recovery(lost.local_port, lost.traffic_class).MemoryOfLost(Limits());
    if (now - lost.lost_at <= memory && outstanding_.size() * 2 <= outstanding_.bound()) break;
    outstanding_.PopFront();
  }
  unacked_.AdvanceTo(outstanding_.begin());
}

void Sender::QueueRetransmit(uint64_t psn) {
  Outstanding& entry = outstanding_[psn];
  entry.counted = true;
  retransmit_bytes_ += entry.bytes - FragmentsSent(entry);
  Enqueue(retransmit_, psn);
}

void Sender::Uncount(Outstanding& entry) {
  if (std::exchange(entry.counted, false)) retransmit_bytes_ -= entry.bytes - FragmentsSent(entry);
}

void Sender::Enqueue(PsnList& list, uint64_t psn) {
  outstanding_[psn].next = PsnList::kNone;
  if (list.empty()) {
    list.head = psn;
  } else {
    outstanding_[list.tail].next = psn;
  }
  list.tail = psn;
}

uint64_t Sender::TakeFromFront(PsnList& list) {
  const uint64_t psn = list.head;
  list.head = outstanding_[psn].next;
  if (list.head == PsnList::kNone) list.tail = PsnList::kNone;
  return psn;
}

// False: it is not in the list.
bool Sender::TakeOut(PsnList& list, uint64_t psn) {
  if (list.head == psn) {
    TakeFromFront(list);
    return true;
  }
  uint64_t before = list.head;
  while (before != PsnList::kNone && outstanding_[before].next != psn) before = outstanding_[before].next;
  if (before == PsnList::kNone) return false;
  outstanding_[before].next = outstanding_[psn].next;
  if (list.tail == psn) list.tail = before;
  return true;
}

// When numbers run out, what stands at the beginning of the window holds up all the rest: it goes first, and where it
// is no longer wanted (it has arrived since), the next one does.
void Sender::OldestFirst(Time now) {
  while (!outstanding_.empty()) {
    const uint64_t oldest = outstanding_.begin();
    Outstanding& entry = outstanding_[oldest];
    const bool dead = entry.state == Outstanding::State::kQueuedDead;
    if (!dead && (entry.state != Outstanding::State::kQueued || !entry.counted || retransmit_.head == oldest)) return;
    if (!TakeOut(retransmit_, oldest)) return;  // it is held
    if (!dead) {
      entry.next = retransmit_.head;
      if (retransmit_.empty()) retransmit_.tail = oldest;
      retransmit_.head = oldest;
      return;
    }
    entry.state = Outstanding::State::kResolved;
    AdvanceBase(now);
  }
}

// The next packet to send again, or kNone; takes out those that are no longer wanted or must wait.
uint64_t Sender::PeekRetransmit(Time now) {
  if (!RoomForNew()) OldestFirst(now);
  while (!retransmit_.empty()) {
    Outstanding& entry = outstanding_[retransmit_.head];
    if (entry.state == Outstanding::State::kQueuedDead) {
      entry.state = Outstanding::State::kResolved;
      TakeFromFront(retransmit_);
    } else if (entry.message->held) {
      TxMessage* message = entry.message;
      const uint64_t psn = TakeFromFront(retransmit_);
      Uncount(entry);
      Enqueue(message->held_packets, psn);
    } else {
      return retransmit_.head;
    }
  }
  return PsnList::kNone;
}

}  // namespace paceline
