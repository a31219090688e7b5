// Acknowledgements, loss verdicts and time-outs of the sending half.
//
// A packet is found lost when
//   - a packet sent later on the same path was acknowledged (a path keeps order), or
//   - a packet sent a reordering window later on any path was acknowledged (RACK, RFC 8985 section 6.2), or
//   - the receiver got its header without the payload (trimming), or
//   - nothing was acknowledged for a retransmission time-out.
// A tail probe (RFC 8985 section 7) asks for news long before the time-out. Writes by remote placement are sent again
// only after the first kind of verdict, or when the peer has fenced their path (sender_fence.cc): until then a copy may
// still land.
#include <algorithm>
#include <bit>
#include <bitset>
#include <utility>

#include "transport/base/sequence.h"
#include "transport/core/tx/sender.h"

namespace paceline {
namespace {

constexpr Duration kHeldRetry = Duration::Millis(500);
constexpr uint32_t kProbesBeforeTimeout = 2;
constexpr uint32_t kMaxDoublings = 6;
// A pause of the process or a leap of the clock may make any round trip look long.
constexpr Duration kLongestTimeout = Duration::Seconds(2);
// In a row, before the lane is asked to find another way for a path of remote placement; then every second one.
constexpr uint32_t kTimeoutsBeforeReset = 3;
// In a row, before the peer is asked to fence such paths.
constexpr uint32_t kTimeoutsBeforeFence = 4;
// Reports of losses without any payload acknowledged between them, before it is thought that none will be: more than
// time-outs alone give in some seconds, should the clock leap.
constexpr uint32_t kLossesBeforeLost = 100;
constexpr uint32_t kMaxReorderSteps = 16;

}  // namespace

Duration Sender::ReorderWindow() const {
  const Duration window = rtt_.least() * (3 + reorder_steps_) / 4 + rtt_.variation();
  return std::min(window, rtt_.smoothed() * 2);
}

Duration Sender::ProbeDelay() const {
  const EndpointOptions& options = context_->options;
  const Duration ack_delay = backlog() == 0 ? options.last_ack_delay : AckDelay();
  const Duration usual = std::min(quiet_.get() * 5 / 4, Timeout());
  return std::max({rtt_.smoothed() * 2, usual, options.min_probe}) + ack_delay;
}

// The peer's, as far as a lane of ours tells.
Duration Sender::AckDelay() const { return context_->AckDelay(context_->ports.front()); }

Duration Sender::Timeout() const {
  return std::max(rtt_.smoothed() + rtt_.variation() * 4, context_->options.min_timeout) +
         context_->options.max_ack_delay;
}

Time Sender::TimeoutAt() const {
  if (outstanding_count_ == 0) return Time::Never();
  const Duration delay =
      probes_ < kProbesBeforeTimeout
          ? ProbeDelay() * (int64_t{1} << probes_)
          : std::max(Timeout() * (int64_t{1} << std::min(backoff_, kMaxDoublings)), ProbeDelay() * 4);
  return last_progress_ + std::min(delay, kLongestTimeout);
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

void Sender::HandleTimeout(Time now) {
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
      asks = true;
    }
    if (asks) stuck_backoff_ = std::min(stuck_backoff_ + 1, 12u);
    if (now - held_retried_at_ >= kHeldRetry) {
      held_retried_at_ = now;
      RetryHeld();
    }
    state_->ready_ports = AllPorts();
  }
  if (fence_at_ <= now) HandleFenceTimeout(now);
  if (TimeoutAt() > now) return;
  state_->ready_ports = AllPorts();
  if (probes_ < kProbesBeforeTimeout) {
    probe_due_ = AllPorts();
    ++probes_;
    return;
  }
  ++context_->counters.timeouts;
  if (peer_->prefers_some()) {  // no others arrive to compare with
    for (const Port& port : context_->ports) {
      if (peer_->prefers(port.index)) health_.OnSilence(port.index, rtt_.smoothed(), now);
    }
  }
  bool placed = false;
  const uint64_t end = outstanding_.end();
  for (uint64_t psn = outstanding_.begin(); psn < end; ++psn) {
    if (outstanding_[psn].state != Outstanding::State::kOutstanding) continue;
    if (outstanding_[psn].written) {
      placed = true;
    } else {
      OnPacketLost(psn, LossCause::kTimeout, now);
    }
  }
  if (placed) probe_due_ = AllPorts();
  if (placed && backoff_ >= kTimeoutsBeforeReset && backoff_ % 2 == 1) ResetSilentPaths();
  if (placed && backoff_ >= kTimeoutsBeforeFence) FenceAll(now);
  // A path of remote placement that stays silent and is not fenced cannot be given up alone: a copy might land in
  // memory that was handed back. The connection ends instead.
  if (placed && backoff_ >= kTimeoutsBeforeDead &&
      now - outstanding_[outstanding_.begin()].sent_at >= context_->options.peer_timeout) {
    end_of_way_ = kSilentWrites;
  }
  ReportLosses(now);
  ++backoff_;
  last_progress_ = now;
  AdvanceBase();
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

  Duration rtt;
  if (last >= begin && last < end && outstanding_[last].state == Outstanding::State::kOutstanding) {
    rtt = (arrived - outstanding_[last].sent_at) - Duration::Nanos(frame.delay_nanos);
    rtt = std::max(rtt, Duration());  // the peer may state any delay, and its clock may leap: then it is no sample
    if (rtt > Duration()) {
      rtt_.OnSample(rtt, now);
      // Control packets pass the queues that data waits in.
      const Outstanding& entry = outstanding_[last];
      if (entry.bytes > 0) Paths(entry.local_port).OnDelay(entry.entropy, rtt, now);
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

  TakeNews(totals, rtt, now);
}

void Sender::TakeNews(AckTotals& totals, Duration rtt, Time now) {
  if (totals.progress) {
    AdvanceBase();  // what is resolved needs no look
    DetectReordered(now);
    if (new_losses_.empty()) quiet_.Add(now - last_progress_ - context_->options.max_ack_delay);
    last_progress_ = now;
    probes_ = backoff_ = 0;
    ReportLosses(now);
    for (uint32_t port = 0; port < peer_->remote_ports; ++port) {
      if (!totals.Has(port)) continue;
      Flow& flow = ActiveFlow(port, now);
      AckSample& sample = totals.Of(port);
      sample.now = now;
      sample.rtt = rtt;
      sample.min_rtt = rtt_.measured() ? rtt_.least() : context_->ports[peer_->LocalOf(port)].info.base_rtt;
      sample.in_flight_bytes = flow.in_flight;
      sample.backlogged = backlog() > 0;
      if (telemetry_news_ && telemetry_->port == port) sample.hops = std::span(telemetry_->hop).first(telemetry_->hops);
      flow.controller->OnAck(sample);
      TellBacklog(flow, now);
    }
  }
  telemetry_news_ = false;
  AdvanceBase();
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
  newest_acked_sent_at_ = std::max(newest_acked_sent_at_, first.sent_at);
  uint64_t bytes = first.bytes;
  uint64_t next = psn + 1;
  for (; next < most; ++next) {
    Outstanding& entry = outstanding_[next];
    // (Of the packets of one path each knows the one before.)
    if (entry.state != Outstanding::State::kOutstanding || entry.message != message ||
        entry.previous_on_path != next - 1 || entry.kind != first.kind) {
      break;
    }
    entry.message = nullptr;
    entry.state = Outstanding::State::kResolved;
    entry.previous_on_path = 0;
    bytes += entry.bytes;
    newest_acked_sent_at_ = std::max(newest_acked_sent_at_, entry.sent_at);
  }
  const uint64_t count = next - psn;
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
  Paths(first.local_port).OnAck(first.entropy, marked, bursts_under_way);
  health_.OnAck(first.local_port);
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
  if (entry.cause == LossCause::kPathGap) trust_path_order_from_ = now + rtt_.smoothed() * 16;
  reorder_steps_ = std::min(reorder_steps_ + 1, kMaxReorderSteps);
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
  const bool trusted = now >= trust_path_order_from_;
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
  const Duration window = ReorderWindow();
  reorder_scan_ = std::max(reorder_scan_, outstanding_.begin());
  for (; reorder_scan_ < outstanding_.end(); ++reorder_scan_) {
    const Outstanding& entry = outstanding_[reorder_scan_];
    if (entry.state != Outstanding::State::kOutstanding) continue;
    if (entry.sent_at + window >= newest_acked_sent_at_) return;
    if (entry.written) {
      // Only its own path can tell: ask it.
      if (now >= next_path_probe_) probe_due_ |= 1u << entry.local_port;
    } else {
      OnPacketLost(reorder_scan_, LossCause::kReorder, now);
    }
  }
}

void Sender::HandleTrimmed(const wire::TrimmedFrame& frame, Time now) {
  for (uint8_t i = 0; i < frame.count; ++i) {
    const uint64_t psn = Unwrap(frame.psns[i], outstanding_.begin());
    if (!outstanding_.Contains(psn) || outstanding_[psn].state != Outstanding::State::kOutstanding) continue;
    if (outstanding_[psn].written) continue;
    OnPacketLost(psn, LossCause::kTrimmed, now);
    last_progress_ = now;
  }
  ReportLosses(now);
  AdvanceBase();
}

void Sender::OnPacketLost(uint64_t psn, LossCause cause, Time now) {
  Outstanding& entry = outstanding_[psn];
  Flow& flow = ActiveFlow(entry.remote_port, now);
  --outstanding_count_;
  flow.in_flight -= entry.bytes;
  flow.lost_total += entry.bytes;
  entry.cause = cause;
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
  Paths(entry.local_port).OnLoss(entry.entropy, cause);
  health_.OnLoss(entry.local_port, rtt_.smoothed(), now);
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
  if (entry.kind == Outstanding::Kind::kBundle) return BundleLost(psn, now);
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
  if (!new_losses_.empty()) {
    uint64_t arrived = 0;
    for (const Flow& flow : flows_) arrived += flow.tx_total - flow.lost_total - flow.in_flight;
    const Duration patience = context_->options.peer_timeout;
    const bool pause = now - std::exchange(lossy_at_, now) > patience / 2;
    if (std::exchange(arrived_at_loss_, arrived) != arrived || pause) losses_in_a_row_ = 0;
    if (losses_in_a_row_++ == 0) lossy_from_ = now;
    if (losses_in_a_row_ >= kLossesBeforeLost && now - lossy_from_ >= patience) end_of_way_ = kNothingArrives;
  }
  for (size_t i = 0; i < new_losses_.size(); ++i) {
    Flow& flow = ActiveFlow(new_loss_port_[i], now);
    new_losses_[i].in_flight_bytes = flow.in_flight;
    flow.controller->OnLoss(new_losses_[i]);
  }
  new_losses_.clear();
  new_loss_port_.clear();
}

void Sender::AdvanceBase() {
  const Duration remember = rtt_.smoothed() * 2;
  while (true) {
    uint64_t psn = outstanding_.begin();
    while (psn < outstanding_.end() && outstanding_[psn].state == Outstanding::State::kResolved) ++psn;
    outstanding_.AdvanceTo(psn);
    if (outstanding_.empty() || outstanding_[psn].state != Outstanding::State::kGhost) break;
    const bool old =
        newest_acked_sent_at_ - outstanding_[psn].sent_at > remember || outstanding_.size() * 2 > outstanding_.bound();
    if (!old && outstanding_count_ > 0) break;
    outstanding_.PopFront();
  }
  unacked_.AdvanceTo(outstanding_.begin());
}

void Sender::QueueRetransmit(uint64_t psn) {
  Outstanding& entry = outstanding_[psn];
  entry.counted = true;
  retransmit_bytes_ += entry.bytes;
  Enqueue(retransmit_, psn);
}

void Sender::Uncount(Outstanding& entry) {
  if (std::exchange(entry.counted, false)) retransmit_bytes_ -= entry.bytes;
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
void Sender::OldestFirst() {
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
    AdvanceBase();
  }
}

// The next packet to send again, or kNone; takes out those that are no longer wanted or must wait.
uint64_t Sender::PeekRetransmit() {
  if (!RoomForNew()) OldestFirst();
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
