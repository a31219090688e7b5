#include "transport/core/tx/sender.h"

#include <algorithm>
#include <limits>

#include "transport/base/sequence.h"

namespace paceline {
namespace {

constexpr uint32_t kSinglesInTurn = 8;  // messages of one segment that go in a row before a longer one that waits
constexpr uint64_t kFloorLag = 512;  // packets by which the receiver's knowledge of our base may lag on placing lanes

// The first packet of a run that leaves no room in the window for two more, and so asks for news; at most their number.
uint32_t FirstToAsk(uint32_t count, uint32_t bytes, uint64_t window, uint64_t in_flight) {
  if (bytes == 0) return count;
  const uint64_t fit = (window - std::min(window, in_flight)) / bytes;
  return static_cast<uint32_t>(fit > 2 ? std::min<uint64_t>(fit - 2, count) : 0);
}

}  // namespace

Sender::Sender(CoreContext* context, const PeerInfo* peer, AckState* acks, SendState* state, const SenderMemo& memo)
    : context_(context),
      peer_(peer),
      acks_(acks),
      state_(state),
      messages_(memo.next_message),
      next_match_sequence_(memo.next_match_sequence),
      clear_limit_(memo.clear_limit),
      outstanding_(limits::kMaxOutstandingPackets, memo.next_psn),
      unacked_(2 * limits::kMaxOutstandingPackets, memo.next_psn),
      flows_(memo.flows.size()),
      floor_told_(memo.next_psn) {
  recovery_.assign(context->ports.size() * kTrafficClasses,
                   ClassRecovery(RttEstimator(memo.smoothed_rtt), memo.next_psn));
  if (context->ports.size() > 1) windows_.resize(context->ports.size());
  if (memo.payload_limits != nullptr) payload_limits_ = *memo.payload_limits;
  for (size_t i = 0; i < flows_.size(); ++i) {
    flows_[i].tx_total = memo.flows[i].tx_total;
    flows_[i].lost_total = memo.flows[i].lost_total;
  }
}

Sender::~Sender() { FailAll(OperationStatus::kConnectionClosed); }

// ---- operations

void Sender::Post(TxMessage* message) {
  if (message->reports) {
    ++state_->operations;
    ++context_->counters.operations_posted;
    if (message->operation == Operation::kFlush) {
      message->sequence = posted_;
      message->unfinished_before = std::exchange(unflushed_, 0);
      flushes_.PushBack(message);
      CompleteFlushes();
      return;
    }
    message->sequence = posted_++;
    ++unflushed_;
  } else {
    ++state_->open_answers;
  }
  const uint64_t segment = peer_->segment_bytes;
  message->segments_left = message->payload_bytes == 0 ? 1 : (message->payload_bytes + segment - 1) / segment;
  message->single = message->segments_left == 1;
  (message->reports ? new_ : answers_).PushBack(message);
  state_->ready_ports = AllPorts();
}

bool Sender::Cancel(OperationId id) {
  for (TxMessage* message = new_.front(); message != nullptr; message = new_.Next(message)) {
    if (message->operation_id != id || !message->reports) continue;
    Finish(message, OperationStatus::kCancelled);
    return true;
  }
  return false;
}

void Sender::FailAll(OperationStatus status) {
  while (TxMessage* message = new_.front()) Finish(message, status);
  while (TxMessage* message = answers_.front()) Finish(message, status);
  while (TxMessage* message = waiting_.front()) Finish(message, status);
  while (TxMessage* message = singles_.front()) Finish(message, status);
  while (TxMessage* message = sending_.front()) Finish(message, status);
  while (TxMessage* message = in_flight_.front()) Finish(message, status);
  while (TxMessage* message = flushes_.front()) Finish(message, status);
  stuck_at_ = next_send_ = fence_at_ = Time::Never();
  state_->demand_pending = state_->fence_pending = 0;
  state_->ready_ports = 0;
  demand_twice_ = 0;
  probe_due_ = second_probe_due_ = {};
  write_probe_due_ = floor_probe_due_ = 0;
}

bool Sender::UsesRegion(RegionId region) const {
  const auto uses = [region](const auto& list) {
    for (TxMessage* message = list.front(); message != nullptr; message = list.Next(message)) {
      if (message->region == region) return true;
    }
    return false;
  };
  return uses(new_) || uses(answers_) || uses(waiting_) || uses(singles_) || uses(sending_) || uses(in_flight_);
}

TxMessage* Sender::FindMessage(uint32_t number_bits) { return OpenMessage(Unwrap(number_bits, messages_.begin())); }

void Sender::FinishRequest(TxMessage* message, OperationStatus status, uint64_t result) {
  message->value = result;
  Finish(message, status);
}

// ---- messages become sendable

// Half of the window is for answers alone: where both sides fill theirs with requests, the answers still get through.
void Sender::AdmitNew() {
  while (TxMessage* message = NextToAdmit()) {
    message->link.Unlink();
    message->number = messages_.end();
    messages_.PushBack() = message;
    if (message->kind == wire::MessageKind::kSend) message->match_sequence = next_match_sequence_++;
    Open(message);
  }
}

TxMessage* Sender::NextToAdmit() {
  if (!answers_.empty()) return HasNumbersUpTo(messages_.bound()) ? answers_.front() : nullptr;
  return new_.empty() || HasNumbersUpTo(messages_.bound() / 2) ? new_.front() : nullptr;
}

// A send that the peer has stored until a receive comes, which may be long after messages posted behind it, gives its
// place in the window away. (Not where cards place its payload: they tell of it by the last bits of its number.)
bool Sender::HasNumbersUpTo(uint64_t bound) {
  while (messages_.size() >= bound) {
    const TxMessage& oldest = *messages_[messages_.begin()];
    if (oldest.state != TxMessage::State::kWaiting || !oldest.announcement_acked) return false;
    if (context_->ports[peer_->first_port()].capabilities.remote_placement || !messages_.ParkOldest()) return false;
  }
  return !messages_.used_up();
}

void Sender::Open(TxMessage* message) {
  const bool placing = context_->ports[peer_->first_port()].capabilities.remote_placement;
  const bool is_long = message->payload_bytes > context_->options.eager_bytes;
  // What only a card can read is to be written, so it needs the receive's key.
  const bool wants_key = message->device != kNoDevice && placing && !peer_->encrypted && message->payload_bytes > 0;
  if (message->kind == wire::MessageKind::kSend &&
      (message->to_receive || wants_key || (is_long && (placing || message->match_sequence >= clear_limit_)))) {
    message->state = TxMessage::State::kWaiting;
    waiting_.PushBack(message);
    announce_.PushBack(message);
    return;
  }
  if (message->kind == wire::MessageKind::kWrite && message->placement != nullptr && placing && !peer_->encrypted) {
    message->counts_announcement = true;
    announce_.PushBack(message);
  }
  Sendable(message);
}

void Sender::Sendable(TxMessage* message) {
  message->state = TxMessage::State::kSending;
  (message->single ? singles_ : sending_).PushBack(message);
  unsent_bytes_ += message->unsent_bytes();
}

// A message of one segment does not wait behind a longer one, whose credit may be a long time in coming; but a stream
// of them leaves the longer one a share.
TxMessage* Sender::NextMessage() const {
  TxMessage* single = singles_.front();
  TxMessage* longer = sending_.front();
  if (single == nullptr) return longer;
  return longer != nullptr && singles_in_turn_ >= kSinglesInTurn ? longer : single;
}

// ---- flows, paths

Sender::Flow& Sender::OpenFlow(uint32_t remote_port, Time now) {
  if (flows_.empty()) flows_.resize(peer_->remote_ports);
  Flow& flow = flows_[remote_port];
  if (flow.controller == nullptr) {
    const Port& port = context_->ports[peer_->LocalOf(remote_port)];
    flow.controller = context_->congestion_control->NewSender(port.FlowOf(peer_->flow), port.info, now);
    flow.base_rtt = Duration();
    if (port.measures_rtt()) TellBaseRtt(flow, port.index, now);
    flow.credit_base = flow.tx_total;
    flow.had_backlog = false;
    flow.told_end = 0;
    flow.wants_telemetry = port.capabilities.telemetry && flow.controller->wants_telemetry();
  }
  return flow;
}

PathPolicy& Sender::OpenPaths(uint32_t local_port) {
  if (policies_.empty()) {
    policies_.resize(context_->ports.size());
    uint32_t offered = 1;
    for (const Port& port : context_->ports) offered = std::max(offered, port.capabilities.entropies);
    entropies_ = std::clamp(std::min(context_->options.entropies, offered), 1u, limits::kMaxEntropies);
  }
  if (policies_[local_port] == nullptr) {
    policies_[local_port] = CreatePathPolicy(context_->options.path_policy, Entropies(local_port), context_->random);
  }
  return *policies_[local_port];
}

uint32_t Sender::Entropies(uint32_t local_port) const {
  return std::clamp(context_->ports[local_port].capabilities.entropies, 1u, entropies_);
}

bool Sender::ShouldPlace(const TxMessage& message, uint32_t local_port) const {
  return message.placement != nullptr && message.payload_bytes > 0 && !peer_->encrypted &&
         context_->ports[local_port].capabilities.remote_placement &&
         message.placement->keys[peer_->routes.remote_of[local_port]] != 0 &&
         (message.device == kNoDevice || DeviceKey(message, local_port) != 0);
}

// It has credit, perhaps held back for a moment: what a backlog waits for is something else, as the turn of its
// connection where many are ready. (Where cards place payload, it may be a key, which comes with credit.)
bool Sender::HasCredit(const Port& port, const Flow& flow) {
  if (!port.sends_bursts() || port.capabilities.remote_placement) return false;
  const Allowance allowance = flow.controller->allowance();
  return allowance.credit_end != kNoCreditLimit &&
         flow.tx_total - flow.credit_base < std::max(allowance.credit_end, allowance.held_end);
}

// The receiver has been told of a burst more than it has given credit for, of half of the backlog, and of all losses.
// (Writes tell nothing.)
bool Sender::KnowsEnough(const Port& port, const Flow& flow) const {
  if (!port.sends_bursts() || port.capabilities.remote_placement) return false;
  const uint64_t burst = uint64_t{peer_->burst_segments} * peer_->segment_bytes;
  return flow.told_lost == flow.lost_total && flow.told_end >= flow.tx_total + std::max(burst, backlog() / 2);
}

// A message of one segment that the controller lets go before anything else.
bool Sender::GoesAtOnce(const Allowance& allowance, const Flow& flow, bool single) {
  return single && flow.tx_total - flow.credit_base < allowance.single_end;
}

Sender::Blocked Sender::CheckAllowance(const Allowance& allowance, const Flow& flow, uint32_t bytes, bool single,
                                       Time paced_until) {
  const bool at_once = GoesAtOnce(allowance, flow, single);
  if (!at_once && flow.tx_total - flow.credit_base >= allowance.credit_end) return Blocked::kCredit;
  if (flow.in_flight > 0 && flow.in_flight + bytes > allowance.window_bytes) return Blocked::kWindow;
  if (!at_once && !flow.pacer.CanSend(paced_until)) return Blocked::kPacing;
  return Blocked::kNo;
}

void Sender::TellBacklog(Flow& flow, Time now) {
  const bool has = backlog() > 0;
  if (has == flow.had_backlog) return;
  flow.had_backlog = has;
  flow.controller->OnBacklog(now, backlog(), flow.tx_total - flow.credit_base);
}

// The backlog is that of the connection, so what ends it on one port ends it for the flows through all.
void Sender::TellBacklogs(Time now) {
  if (backlog() > 0) return;
  for (Flow& flow : flows_) {
    if (flow.controller != nullptr) TellBacklog(flow, now);
  }
}

// The payload of the next packet with something new of this message.
uint32_t Sender::NextBytes(const TxMessage& message, uint32_t port) const {
  if (PayloadBytes(port) == peer_->segment_bytes && !message.fragmented) {
    return static_cast<uint32_t>(std::min<uint64_t>(peer_->segment_bytes, message.unsent_bytes()));
  }
  return FirstFragment(port, message, RestOfSegment(message, message.next_offset));
}

// ---- filling a burst

size_t Sender::Fill(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now) {
  AdmitNew();
  state_->ready_ports &= static_cast<uint8_t>(~(1u << port));
  if (!peer_->reaches(port)) return 0;
  size_t filled = 0;
  // What rests gets no probes and announcements either, but for writes, whose paths are asked one by one.
  const bool usable = MayUse(port, now);
  const bool writes = context_->ports[port].capabilities.remote_placement;
  if (AnyProbeDue(port) && (usable || writes)) filled += EmitProbes(port, burst, at, room, now);
  // (Also where a port rests: it may do so because its path takes no packets of that size.)
  if (!payload_limits_.empty()) filled += EmitSizeProbes(port, burst, at + filled, room - filled, now);
  if (!usable && filled < room) filled += EmitTrial(port, burst, at + filled, now);
  if (!announce_.empty() && usable) filled += EmitAnnouncements(port, burst, at + filled, room - filled, now);
  filled += EmitData(port, usable, burst, at + filled, room - filled, now);
  if (outstanding_.begin() - floor_told_ > kFloorLag && outstanding_count_ > 0) {
    floor_probe_due_ |= static_cast<uint8_t>(1u << port);
  }
  if (!announce_.empty() || any_probe_due()) {
    state_->ready_ports |= static_cast<uint8_t>(AllPorts() & ~(usable ? 0u : 1u << port));
  }
  ArmStuckTimer(now);
  return filled;
}

size_t Sender::EmitProbes(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now) {
  const auto bit = static_cast<uint8_t>(1u << port);
  uint8_t down = 0;
  for (const Port& other : context_->ports) {  // what is due through a port that is down is due again later
    if (!other.up) down |= static_cast<uint8_t>(1u << other.index);
  }
  const auto take = [&](uint8_t& due) {
    const bool is_due = (due & bit) != 0;
    due &= static_cast<uint8_t>(~(bit | down));
    return is_due;
  };
  next_path_probe_ = now + ProbeDelay(port);
  size_t filled = 0;
  const bool floor_due = take(floor_probe_due_);
  if ((floor_due || tell_floor_) && RoomFor(outstanding_.begin())) {
    Packet packet{.kind = Outstanding::Kind::kProbe, .local_port = static_cast<uint8_t>(port)};
    packet.traffic_class = ClassOf(port, 0);
    packet.entropy = Paths(port).Next();
    Emit(packet, burst, at, now);
    tell_floor_ = false;
    ++filled;
  }
  for (const TrafficClass traffic_class : {TrafficClass::kBulk, TrafficClass::kShort}) {
    const auto index = static_cast<size_t>(traffic_class);
    for (const bool again : {false, true}) {
      uint8_t& due = again ? second_probe_due_[index] : probe_due_[index];
      if ((due & bit) == 0) continue;
      if (filled == room) return filled;  // its turn is next
      take(due);
      filled += EmitTailProbe(port, traffic_class, again, burst, at + filled, now);
    }
  }
  if ((write_probe_due_ & bit) == 0 || filled == room) return filled;
  take(write_probe_due_);
  return filled + EmitWriteProbes(port, burst, at + filled, room - filled, now);
}

// It goes the way of packets of this class with so much payload.
Sender::Packet Sender::ProbeOf(uint32_t port, TrafficClass traffic_class, uint32_t bytes) {
  Packet packet{.kind = Outstanding::Kind::kProbe, .local_port = static_cast<uint8_t>(port)};
  packet.traffic_class = traffic_class;
  packet.offset = bytes;
  if (bytes > 0) packet.padding = PaddingOf(port, bytes);
  packet.entropy = Paths(port).Next();
  packet.ack_from = 0;
  return packet;
}

// An entropy of this port other than this one, if it has others; a different one after each packet sent.
uint16_t Sender::OtherPath(uint32_t port, uint16_t entropy) const {
  const uint32_t entropies = Entropies(port);
  if (entropies == 1) return entropy;
  return static_cast<uint16_t>((entropy + 1 + outstanding_.end() % (entropies - 1)) % entropies);
}

// One packet tells all: what was sent before it by a reordering window is judged by it. It goes another way than the
// oldest packet, whose way may be dead; the second of a pair (`again`) takes the path that delivered last.
size_t Sender::EmitTailProbe(uint32_t port, TrafficClass traffic_class, bool again, TxBurst& burst, size_t at,
                             Time now) {
  const ClassRecovery& recovery = Recovery(port, traffic_class);
  uint64_t psn = std::max(recovery.scan(), outstanding_.begin());
  const auto is_asked_for = [&](const Outstanding& entry) {
    return entry.state == Outstanding::State::kOutstanding && entry.local_port == port && !entry.written &&
           entry.traffic_class == traffic_class;
  };
  while (psn < outstanding_.end() && !is_asked_for(outstanding_[psn])) ++psn;
  if (psn == outstanding_.end() || !RoomFor(psn)) return 0;
  const Outstanding oldest = outstanding_[psn];
  const uint32_t most = PayloadBytes(port);
  const uint32_t usual = traffic_class == TrafficClass::kBulk ? most : 0;
  Packet packet = ProbeOf(port, traffic_class, std::min(oldest.bytes > 0 ? oldest.bytes : usual, most));
  if (again && recovery.any_arrived()) {
    packet.entropy = recovery.newest_arrived_entropy();
  } else if (again || recovery.questions_in_a_row() > 1 || packet.entropy == oldest.entropy) {
    packet.entropy = OtherPath(port, oldest.entropy);  // the policy may keep to one
  }
  Emit(packet, burst, at, now);
  ++context_->counters.tail_probes;
  return 1;
}

// Of writes each path is asked by itself.
size_t Sender::EmitWriteProbes(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now) {
  size_t filled = 0;
  uint64_t probed_paths[4] = {};  // entropies that have their probe
  const uint64_t end = outstanding_.end();
  for (uint64_t psn = outstanding_.begin(); psn < end && filled < room; ++psn) {
    const Outstanding entry = outstanding_[psn];
    if (entry.state != Outstanding::State::kOutstanding || AwaitsFence(entry) || !entry.written ||
        entry.local_port != port) {
      continue;
    }
    uint64_t& seen = probed_paths[entry.entropy / 64 % 4];
    const uint64_t bit = uint64_t{1} << (entry.entropy % 64);
    if (seen & bit) continue;
    seen |= bit;
    if (!RoomFor(psn)) break;
    Packet packet{
        .kind = Outstanding::Kind::kProbe, .local_port = static_cast<uint8_t>(port), .entropy = entry.entropy};
    packet.ack_from = 0;
    packet.write = true;
    Emit(packet, burst, at + filled, now);
    ++filled;
    ++context_->counters.tail_probes;
  }
  return filled;
}

size_t Sender::EmitAnnouncements(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now) {
  size_t filled = 0;
  while (filled < room && RoomForNew()) {
    TxMessage* message = announce_.PopFront();
    if (message == nullptr) break;
    message->announced = true;
    Packet packet{.message = message, .kind = Outstanding::Kind::kAnnouncement};
    packet.traffic_class = ClassOf(port, 0);
    if (message->asks_for_ack && message->kind == wire::MessageKind::kWrite) {
      packet.ack_from = 0;  // what it announces has no header
    }
    packet.local_port = static_cast<uint8_t>(port);
    packet.entropy = Paths(port).Next();
    Emit(packet, burst, at + filled, now);
    outstanding_[message->last_psn].next = std::exchange(message->announced_by, message->last_psn);
    ++filled;
  }
  return filled;
}

// The entropy for a retransmission: one that has delivered since the packet was sent, if the policy suspects dead
// paths.
uint16_t Sender::PathAgain(const Outstanding& lost, uint32_t port) {
  const ClassRecovery& recovery = Recovery(port, lost.traffic_class);
  const bool proven = lost.cause != LossCause::kTrimmed && recovery.newest_arrived_sent_at() > lost.sent_at;
  return proven ? Paths(port).NextForLost(recovery.newest_arrived_entropy()) : Paths(port).Next();
}

// How many segments this port may send while other ports could send them sooner.
size_t Sender::SegmentsAllowed(uint32_t port, uint64_t in_flight, Time now) {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  if (windows_.empty() || !windows_[port].measured()) return kAll;
  const TxMessage* message = retransmit_.empty() ? NextMessage() : nullptr;
  const uint64_t rest = message == nullptr ? peer_->segment_bytes : message->unsent_bytes();
  Duration target = PortWindow::kNoTarget;
  for (const Port& other : context_->ports) {
    if (other.index == port || !other.up || !peer_->reaches(other.index) || !windows_[other.index].measured()) continue;
    // (It sends when acknowledgements or credit come, or this port does when they are overdue.)
    const Flow& flow = flows_[peer_->routes.remote_of[other.index]];
    if (Recovery(other.index, TrafficClass::kBulk).questions_in_a_row() > 0 ||
        (flow.in_flight == 0 && stuck_backoff_ > 0) || health_.IsSuspect(other.index) || !MayUse(other.index, now)) {
      continue;
    }
    target = std::min(target, windows_[other.index].RoundTripWith(rest));
  }
  windows_[port].SetTarget(target);
  const uint64_t window = windows_[port].BytesAllowed(peer_->segment_bytes, now);
  if (window == PortWindow::kUnlimited) return kAll;
  return window > in_flight ? (window - in_flight) / peer_->segment_bytes : 0;
}

// `usable`: MayUse says so.
size_t Sender::EmitData(uint32_t port, bool usable, TxBurst& burst, size_t at, size_t room, Time now) {
  if ((retransmit_.empty() && singles_.empty() && sending_.empty()) || !usable) {
    if (!flows_.empty()) flows_[peer_->routes.remote_of[port]].next_send = Time::Never();
    FindNextSend();
    TellBacklogs(now);
    return 0;
  }
  const uint32_t remote = peer_->routes.remote_of[port];
  Flow& flow = ActiveFlow(remote, now);
  room = std::min(room, SegmentsAllowed(port, flow.in_flight, now));
  if (room == 0) {
    flow.next_send = Time::Never();
    FindNextSend();
    return 0;
  }
  // Messages of one segment mostly leave at once: the controller hears of those that do not.
  if (!sending_.empty() || !retransmit_.empty()) TellBacklog(flow, now);
  const Port& local = context_->ports[port];
  // Half of the time ahead is refilled before the rest is over.
  const Duration ahead = local.capabilities.send_ahead;
  const Time paced_until = now + ahead / 2;
  const uint32_t burst_limit = peer_->burst_segments;
  uint32_t in_burst = burst_limit;  // forces a choice of path at first
  uint16_t entropy = 0;
  Blocked blocked = Blocked::kNo;  // what holds back all but messages of one segment
  // The end of a message that has begun goes along in front of a burst, as it does behind one.
  const size_t first_end = room > burst_limit ? SegmentsToEnd(room - burst_limit) : 0;
  const size_t quantum = std::min<size_t>(room, burst_limit + first_end);
  size_t filled = 0;
  while (filled < room && outstanding_.size() < outstanding_.bound()) {
    if (filled >= quantum && (blocked != Blocked::kNo || SegmentsToEnd(room - filled) == 0)) break;
    Packet packet{.local_port = static_cast<uint8_t>(port)};
    const uint64_t lost = blocked == Blocked::kNo ? PeekRetransmit(now) : PsnList::kNone;
    if (lost != PsnList::kNone) {
      if (!RoomFor(lost)) break;
      const Outstanding& entry = outstanding_[lost];
      const uint32_t gone = FragmentsSent(entry);
      packet.message = entry.message;
      packet.offset = entry.offset + gone;
      packet.bytes = entry.bytes - gone;
      if (!payload_limits_.empty()) packet.bytes = FirstFragment(port, *packet.message, packet.bytes);
      packet.retransmission = true;
    } else if (TxMessage* message = blocked == Blocked::kNo ? NextMessage() : singles_.front();
               message != nullptr && RoomForNew()) {
      packet.message = message;
      packet.offset = message->next_offset;
      packet.bytes = NextBytes(*message, port);
      if (message->single) Bundle(packet);
    } else {
      break;
    }
    const bool stays_packet = packet.retransmission ? !outstanding_[lost].written : packet.message->bundled;
    if (packet.message->device != kNoDevice && packet.bytes > 0 && !stays_packet &&
        LeaveToCard(*packet.message, port, now)) {
      break;
    }
    const Allowance allowance = flow.controller->allowance();
    if (packet.bytes > 0) {
      const bool single = !packet.retransmission && packet.message->single;
      if (const Blocked by = CheckAllowance(allowance, flow, packet.bytes, single, paced_until); by != Blocked::kNo) {
        if (!flow.had_backlog) {
          TellBacklog(flow, now);
          continue;
        }
        if (blocked == Blocked::kNo) blocked = by;
        if (single || singles_.empty()) break;
        continue;
      }
    }
    // It is to be seen first whether any arrives.
    const bool in_doubt = packet.bytes > 0 && !payload_limits_.empty() && payload_limits_[port].in_doubt(now);
    if (in_doubt || !Recovery(port, ClassOf(port, packet.bytes)).may_send()) {
      if (blocked == Blocked::kNo) blocked = Blocked::kWindow;
      if (singles_.empty() || packet.message == singles_.front()) break;
      continue;
    }
    if (in_burst >= burst_limit) {
      if (filled < quantum) entropy = packet.retransmission ? PathAgain(outstanding_[lost], port) : Paths(port).Next();
      in_burst = 0;
    }
    packet.entropy = entropy;
    // What once went as a packet stays one: its first copy may still arrive, and the receiver can tell copies of
    // packets apart, but not a packet from a write of the same bytes.
    packet.write = !stays_packet && ShouldPlace(*packet.message, port);

    TxMessage* message = packet.message;
    if (message->data != nullptr) packet.payload = message->data + packet.offset;
    if (message->device != kNoDevice && packet.bytes > 0 && !packet.write) {
      packet.on_device = IsReadByCard(packet);
      if (!packet.on_device) packet.payload = CopyFromDevice(*message, packet.offset, packet.bytes);
      if (packet.payload == nullptr) break;
    }
    // It has the last bytes of the lost packet, which needs no further retransmission.
    const bool replaces_lost =
        packet.retransmission && packet.offset + packet.bytes == outstanding_[lost].offset + outstanding_[lost].bytes;
    if (packet.retransmission) {
      Outstanding& entry = outstanding_[lost];
      if (replaces_lost) {
        TakeFromFront(retransmit_);
        Uncount(entry);
        entry.state = Outstanding::State::kGhost;
        entry.message = nullptr;
      } else {
        SendFragmentOf(entry, packet.bytes);
      }
      ++context_->counters.retransmits;
      context_->counters.retransmitted_bytes += packet.bytes;
    } else {
      packet.count = Recovery(port, ClassOf(port, packet.bytes)).in_backoff()
                         ? 1
                         : RunLength(packet, flow, allowance, std::min<size_t>(room - filled, burst_limit - in_burst));
    }
    if (packet.bytes > 0) {
      const int64_t wire_bytes = packet.bytes + local.info.overhead_bytes;
      // Where packets go in bursts, two of them are caught up with (less a packet), however short this one is.
      const int64_t late_bytes = burst_limit > 1
                                     ? int64_t{2 * burst_limit - 1} * (peer_->segment_bytes + local.info.overhead_bytes)
                                     : wire_bytes;
      const Duration slack =
          Duration::Nanos(static_cast<int64_t>(allowance.pacing_rate.is_unlimited() || allowance.pacing_rate.is_zero()
                                                   ? 0
                                                   : std::min(allowance.pacing_rate.NanosFor(late_bytes), 1e9)));
      const bool single = !packet.retransmission && packet.message->single;
      if (ahead > Duration() && !packet.write && !GoesAtOnce(allowance, flow, single)) {
        packet.leaves_at = flow.pacer.Due(slack, now);
        packet.gap = allowance.pacing_rate.TimeFor(wire_bytes);
      }
      packet.count = flow.pacer.Send(packet.count, wire_bytes, allowance.pacing_rate, slack, now, ahead);
    }
    const uint64_t bytes = uint64_t{packet.bytes} * packet.count;
    bool asks_for_ack = message->asks_for_ack && message->unsent_bytes() <= bytes;
    if (!packet.retransmission) {
      singles_in_turn_ = message->single && !sending_.empty() ? singles_in_turn_ + 1 : 0;
      if (packet.kind == Outstanding::Kind::kBundle) {
        asks_for_ack = FillBundle(packet);
      } else if (message->unsent_bytes() == bytes) {
        message->bundled = false;
        AllSent(message);
      } else {
        message->next_offset += bytes;
        unsent_bytes_ -= bytes;
        const bool is_cut = packet.bytes < peer_->segment_bytes;
        if (is_cut && message->next_offset % peer_->segment_bytes != 0) NoteFragmented(*message);
      }
    }
    packet.ack_from =
        packet.retransmission ? 0 : FirstToAsk(packet.count, packet.bytes, allowance.window_bytes, flow.in_flight);
    if (asks_for_ack) packet.ack_from = std::min(packet.ack_from, packet.count - 1);
    packet.traffic_class = ClassOf(port, packet.bytes);
    flow.tx_total += bytes;
    flow.in_flight += bytes;
    if (!windows_.empty()) windows_[port].OnSent(flow.in_flight, now);
    Emit(packet, burst, at + filled, now);
    if (replaces_lost) outstanding_[lost].next = outstanding_.end() - 1;
    filled += packet.count;
    in_burst = filled > first_end ? in_burst + packet.count : 0;
    if (packet.bytes > 0) flow.controller->OnSent(now, flow.tx_total - flow.credit_base, flow.in_flight);
  }
  TellBacklog(flow, now);
  TellBacklogs(now);
  flow.next_send = blocked == Blocked::kPacing ? flow.pacer.next_send() - ahead / 2 : Time::Never();
  FindNextSend();
  const uint64_t held_end = local.sends_bursts() ? flow.controller->allowance().held_end : 0;
  if (blocked == Blocked::kCredit && flow.tx_total + backlog() > flow.told_end &&
      flow.tx_total - flow.credit_base + backlog() > held_end && !KnowsEnough(local, flow)) {
    state_->demand_pending |= static_cast<uint8_t>(1u << remote);
  }
  if (filled >= quantum) state_->ready_ports |= static_cast<uint8_t>(1u << port);
  return filled;
}

// How many segments the rest of a message has that has begun, if that comes next and has at most so many; 0 otherwise.
size_t Sender::SegmentsToEnd(size_t most) const {
  if (!retransmit_.empty()) return 0;
  const TxMessage* message = NextMessage();
  if (message == nullptr || message->next_offset == 0) return 0;
  const uint64_t left = message->unsent_bytes();
  const uint64_t segment_bytes = peer_->segment_bytes;
  return left <= most * segment_bytes ? (left + segment_bytes - 1) / segment_bytes : 0;
}

// The rest of it goes now.
void Sender::AllSent(TxMessage* message) {
  unsent_bytes_ -= message->unsent_bytes();
  message->next_offset = message->payload_bytes;
  in_flight_.PushBack(message);
  message->state = TxMessage::State::kInFlight;
}

// How many packets from this one on, of at most `room`, can leave as a run.
uint32_t Sender::RunLength(const Packet& packet, const Flow& flow, const Allowance& allowance, size_t room) const {
  const TxMessage& message = *packet.message;
  if (room < 2 || message.single || packet.bytes < peer_->segment_bytes ||
      (message.device != kNoDevice && !packet.on_device) || packet.write || MayRide(packet)) {
    return 1;
  }
  uint64_t most = std::min<uint64_t>(room, message.unsent_bytes() / packet.bytes);  // (the last may be shorter)
  most = std::min(most, outstanding_.bound() / 16 * 15 - outstanding_.size());
  const uint64_t sent = flow.tx_total - flow.credit_base;
  if (allowance.credit_end - sent < most * packet.bytes) {
    most = (allowance.credit_end - sent + packet.bytes - 1) / packet.bytes;
  }
  if (allowance.window_bytes - flow.in_flight < most * packet.bytes) {
    most = (allowance.window_bytes - flow.in_flight) / packet.bytes;
  }
  if (packet.on_device &&
      !context_->environment->ReadsFromDevice(packet.local_port, packet.payload, most * packet.bytes)) {
    return 1;
  }
  return static_cast<uint32_t>(std::max<uint64_t>(most, 1));
}

bool Sender::NeedsPort() const {
  return !new_.empty() || !answers_.empty() || !singles_.empty() || !sending_.empty() || !retransmit_.empty() ||
         !announce_.empty() || any_probe_due() || !stuck_at_.is_never() ||
         outstanding_.begin() - floor_told_ > kFloorLag;
}

// Messages that wait to be cleared, or bytes that wait for credit or window, for longer than news should take:
// the news may have been lost, so ask again, ever more seldom.
void Sender::ArmStuckTimer(Time now) {
  const bool stuck = !waiting_.empty() || (backlog() > 0 && next_send_.is_never());
  if (!stuck) {
    stuck_at_ = Time::Never();
    stuck_backoff_ = unanswered_demands_ = 0;
    demand_twice_ = 0;
    return;
  }
  if (!stuck_at_.is_never()) return;
  if (stuck_backoff_ == 0) stuck_since_ = now;
  // The receiver answers a demand even if it grants nothing, so silence suggests a dead path: ask again soon.
  constexpr uint32_t kDemandsSoon = 6;
  const Duration soon = ProbeDelay(peer_->first_port());
  const Duration most = Duration::Seconds(1);
  if (unanswered_demands_ > 0) {
    const uint32_t doublings = std::min(unanswered_demands_ - std::min(unanswered_demands_, kDemandsSoon), 12u);
    stuck_at_ = now + std::min(soon * (int64_t{1} << doublings), most);
    return;
  }
  // Where many share the receiver, the turn of each comes seldom.
  const Duration patience = std::min(std::max(soon, credit_waits_.get() * 5 / 4), most);
  stuck_at_ = now + std::min(patience * (int64_t{1} << stuck_backoff_), most);
}

// ---- idle

bool Sender::idle() const {
  return state_->operations == 0 && state_->open_answers == 0 && outstanding_count_ == 0 && retransmit_.empty() &&
         messages_.empty();
}

SenderMemo Sender::Memo() const {
  SenderMemo memo(context_->options.assumed_rtt);
  memo.next_message = messages_.end();
  memo.next_match_sequence = next_match_sequence_;
  memo.clear_limit = clear_limit_;
  memo.next_psn = outstanding_.end();
  memo.smoothed_rtt = Rtt(peer_->first_port()).smoothed();
  for (const Flow& flow : flows_) memo.flows.push_back({flow.tx_total, flow.lost_total});
  if (HasLimit()) memo.payload_limits = std::make_unique<std::vector<PayloadLimit>>(payload_limits_);
  return memo;
}

size_t Sender::memory_bytes() const {
  size_t bytes =
      sizeof(*this) + outstanding_.memory_bytes() + unacked_.memory_bytes() + messages_.memory_bytes() +
      flows_.capacity() * sizeof(Flow) + windows_.capacity() * sizeof(PortWindow) +
      payload_limits_.capacity() * sizeof(PayloadLimit) + recovery_.capacity() * sizeof(ClassRecovery) +
      (last_on_path_[0].capacity() + last_on_path_[1].capacity() + last_write_on_path_.capacity()) * sizeof(uint64_t) +
      policies_.capacity() * sizeof(void*) + (fences_ == nullptr ? 0 : sizeof(*fences_));
  return bytes;
}

}  // namespace paceline
