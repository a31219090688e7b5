// The sending half of a connection: messages in posting order become segments, segments become packets on paths;
// acknowledgements complete them, loss verdicts send them again. It owns no socket and no clock.
//
// Files: sender.cc (posting, filling bursts), sender_packets.cc (what goes into packets), sender_bundles.cc (small
// sends in one packet), sender_fragments.cc (segments in several packets), sender_credit.cc (grants, clearance),
// sender_recovery.cc (acknowledgements, verdicts, time-outs), sender_fence.cc (writes on dead paths), sender_device.cc
// (memory of GPUs), sender_completion.cc (how messages end).
//
// Thread rule: the endpoint's thread. It borrows the buffers of operations until they complete.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "transport/base/bit_window.h"
#include "transport/base/intrusive_list.h"
#include "transport/base/sequence_window.h"
#include "transport/core/context.h"
#include "transport/core/message_window.h"
#include "transport/core/path/path_policy.h"
#include "transport/core/path/payload_limit.h"
#include "transport/core/path/port_health.h"
#include "transport/core/path/port_window.h"
#include "transport/core/rx/ack_state.h"
#include "transport/core/tx/class_recovery.h"
#include "transport/core/tx/message.h"
#include "transport/core/tx/outstanding.h"
#include "transport/core/tx/pacer.h"
#include "transport/core/tx/recent_longest.h"
#include "transport/core/tx/rtt.h"
#include "transport/core/tx/send_state.h"
#include "transport/wire/frames.h"
#include "transport/wire/packet.h"

namespace paceline {

// What remains of the sending half of a connection while it has nothing to do: the counts that go on where they stood.
struct SenderMemo {
  explicit SenderMemo(Duration assumed_rtt) : smoothed_rtt(assumed_rtt) {}

  struct Flow {
    uint64_t tx_total = 0, lost_total = 0;
  };
  uint64_t next_message = 0;
  uint64_t next_match_sequence = 0;
  uint64_t clear_limit = 0;
  uint64_t next_psn = 1;
  Duration smoothed_rtt;                                      // of the first port
  absl::InlinedVector<Flow, 1> flows;                         // by the peer's port
  std::unique_ptr<std::vector<PayloadLimit>> payload_limits;  // by local port; null: all paths take whole segments

  uint32_t PayloadBytes(uint32_t local_port, uint32_t segment_bytes) const {
    return payload_limits == nullptr ? segment_bytes : (*payload_limits)[local_port].bytes();
  }
};

class Sender {
 public:
  // `acks`: what is to be said of the peer's packets; small packets take it along. `state`: what others ask of this
  // half all the time; only it changes that, and leaves nothing in it behind.
  Sender(CoreContext* context, const PeerInfo* peer, AckState* acks, SendState* state, const SenderMemo& memo);
  ~Sender();

  // ---- operations
  // Takes `message` (from the context's pool). The caller has checked memory and reserved a completion.
  void Post(TxMessage* message);
  bool Cancel(OperationId id);
  // Ends every operation with `status`; nothing is sent any more.
  void FailAll(OperationStatus status);
  // Does any operation use this region?
  bool UsesRegion(RegionId region) const;
  // Nobody may read this region any more: what answers reads of it turns into a refusal.
  void RevokeAnswers(RegionId region);
  // The message with this number, or nullptr.
  TxMessage* FindMessage(uint32_t number_bits);
  // The answer to a request is in place, or the peer has refused a message.
  void FinishRequest(TxMessage* message, OperationStatus status, uint64_t result);
  // Numbers of the peer's messages whose refusal has reached the peer since the last call.
  std::vector<uint32_t> TakeDeliveredFailures() { return std::exchange(delivered_failures_, {}); }

  // ---- what the peer says
  // What the network wrote into a packet: for the acknowledgement that comes with it.
  void HandleTelemetry(const wire::TelemetryFrame& frame);
  // `arrived`: when the acknowledgement reached the port, at most `now`.
  void HandleAck(const wire::AckFrame& frame, Time arrived, Time now);
  void HandleGrant(const wire::GrantFrame& frame, Time now);
  void HandleTrimmed(const wire::TrimmedFrame& frame, Time now);
  void HandleNotReady(uint32_t message_bits, Time now);
  // What had arrived of the writes to a port of the peer; the others never will.
  void HandleFenced(const wire::FencedFrame& frame, Time now);

  // ---- sending
  // Fills segments for local port `port` into `burst` from index `at`, at most `room` of them; returns how many. A port
  // whose bit in SendState::ready_ports is not set would get nothing until something changes or the time-out comes.
  size_t Fill(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now);
  // Nothing came back of what was sent through this local port for some time.
  bool suspects(uint32_t port) const { return health_.IsSuspect(port) || Fencing(peer_->routes.remote_of[port]); }
  // A local port has come up or gone down.
  void OnPortChange(Time now);
  // A demand frame that should go to the peer now; false: none. For control packets.
  bool PollDemand(wire::DemandFrame* frame);
  // The path for a control packet through this port with the second of two demands: the one that delivered last.
  std::optional<uint16_t> ProvenPathForDemand(uint32_t local_port) const;
  // The same of a fence that the peer is to be asked for.
  bool PollFence(wire::FenceFrame* frame, Time now);

  // Changes only with a call of a member that is not const.
  Time PollTimeout() const;
  void HandleTimeout(Time peer_heard_at, Time now);
  // Probes, time-outs and demands since the last news; grows with each, to some number.
  uint32_t questions_in_a_row() const;
  // The least round trip through the first port, where the lane does not state it; zero: none measured.
  Duration base_rtt() const;
  // Why the connection cannot go on, for people; empty: it can.
  std::string_view end_of_way() const { return end_of_way_; }

  // The most payload bytes of a packet through this port: fewer than a segment where the path MTU has shrunk.
  uint32_t PayloadBytes(uint32_t local_port) const {
    return payload_limits_.empty() ? peer_->segment_bytes : payload_limits_[local_port].bytes();
  }
  // Nothing posted, nothing in flight: another sender may go on from the memo.
  bool idle() const;
  SenderMemo Memo() const;
  size_t memory_bytes() const;

 private:
  // One flow: this direction towards one port of the peer.
  struct Flow {
    uint64_t tx_total = 0;     // payload bytes ever transmitted
    uint64_t lost_total = 0;   // payload bytes ever found lost (minus those that arrived after all)
    uint64_t credit_base = 0;  // tx_total when the controller was made: it counts from 0
    uint64_t in_flight = 0;
    uint64_t told_end = 0;     // tx_total + backlog when something of the flow was sent last
    uint64_t told_lost = 0;    // lost_total then
    bool had_backlog = false;  // what the controller knows
    bool wants_telemetry = false;
    Pacer pacer;
    Time next_send = Time::Never();  // the pacer lets the next packet go
    std::unique_ptr<SenderController> controller;
    Duration base_rtt;  // as the controller was told; zero: not at all
  };
  enum class Blocked : uint8_t { kNo, kCredit, kWindow, kPacing };
  Flow& ActiveFlow(uint32_t remote_port, Time now) {
    if (!flows_.empty() && flows_[remote_port].controller != nullptr) return flows_[remote_port];
    return OpenFlow(remote_port, now);
  }
  [[gnu::cold]] Flow& OpenFlow(uint32_t remote_port, Time now);
  PathPolicy& Paths(uint32_t local_port) {
    if (!policies_.empty() && policies_[local_port] != nullptr) return *policies_[local_port];
    return OpenPaths(local_port);
  }
  [[gnu::cold]] PathPolicy& OpenPaths(uint32_t local_port);
  void AdmitNew();
  TxMessage* NextToAdmit();
  bool HasNumbersUpTo(uint64_t bound);
  // A part of the packet numbers is for what is sent again: without one, a lost packet at the beginning of the window
  // could never be.
  bool RoomForNew() const { return outstanding_.size() < outstanding_.bound() / 16 * 15; }
  // And the last of them for what stands at the beginning alone, however often the rest is lost meanwhile.
  bool RoomFor(uint64_t psn) const {
    return outstanding_.size() < (psn == outstanding_.begin() ? outstanding_.bound() : outstanding_.bound() / 64 * 63);
  }
  void Open(TxMessage* message);
  void Clear(TxMessage* message);
  bool ShouldPlace(const TxMessage& message, uint32_t local_port) const;
  static bool HasCredit(const Port& port, const Flow& flow);
  bool KnowsEnough(const Port& port, const Flow& flow) const;
  static bool GoesAtOnce(const Allowance& allowance, const Flow& flow, bool single);
  static Blocked CheckAllowance(const Allowance& allowance, const Flow& flow, uint32_t bytes, bool single,
                                Time paced_until);
  void Sendable(TxMessage* message);
  TxMessage* NextMessage() const;
  void TellBacklogs(Time now);
  void TellBacklog(Flow& flow, Time now);
  uint64_t backlog() const { return unsent_bytes_ + retransmit_bytes_; }
  uint64_t PeekRetransmit(Time now);
  uint64_t TakeFromFront(PsnList& list);
  // What goes into one packet; or into a run of them, which differ only in what part of the message they have: they
  // follow each other on one path, none is sent again or written, and no acknowledgement rides on them.
  struct Packet {
    TxMessage* message = nullptr;  // null: probe; of a bundle the first
    Outstanding::Kind kind = Outstanding::Kind::kSegment;
    uint32_t count = 1;                // in the run
    uint16_t messages = 1;             // in a bundle
    uint64_t offset = 0;               // of the first; of a probe: how much payload it stands for
    uint32_t bytes = 0;                // of each
    const uint8_t* payload = nullptr;  // null with bytes > 0: phantom
    uint32_t padding = 0;              // of a probe, so that it is of the class that it asks about
    TrafficClass traffic_class = TrafficClass::kBulk;
    uint8_t local_port = 0;
    uint16_t entropy = 0;
    bool retransmission = false;
    uint32_t ack_from = kNoAck;  // these of the run, counted from 0, ask for an acknowledgement at once
    bool write = false;          // by remote placement
    bool on_device = false;      // the port's card reads the payload in memory of a GPU
    Time leaves_at;              // the first; zero: all leave at once
    Duration gap;                // between two of the run
  };
  static constexpr uint32_t kNoAck = UINT32_MAX;
  void TellOfRead(const TxMessage& answer, OperationStatus status);
  [[gnu::cold]] void BecomeFailure(TxMessage* answer);
  void StopSending(TxMessage* message);
  static bool HasEnded(TxMessage* const& message) { return message == nullptr; }
  // The message with this number, or nullptr once it has ended.
  TxMessage* OpenMessage(uint64_t number) { return messages_.Contains(number) ? messages_[number] : nullptr; }
  size_t SegmentsToEnd(size_t most) const;
  void AllSent(TxMessage* message);
  uint32_t RunLength(const Packet& packet, const Flow& flow, const Allowance& allowance, size_t room) const;
  void Emit(const Packet& packet, TxBurst& burst, size_t at, Time now);
  uint64_t Track(const Packet& packet, Time now);
  uint64_t& LastOnPath(const Packet& packet);
  void Schedule(const Packet& packet, uint64_t psn, std::span<TxSegment> run, Time now);
  void StampRun(const Packet& packet, const wire::DataHeader& header, bool checked, TxBurst& burst, size_t at);
  void EmitWrite(const Packet& packet, uint64_t psn, TxSegment& segment);
  wire::DataHeader HeaderOf(const Packet& packet, const Flow& flow, uint64_t psn, Time now) const;
  bool MayRide(const Packet& packet) const;
  size_t EncodeRidingAck(std::span<uint8_t> room, Time now);
  [[gnu::cold]] size_t EmitProbes(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now);
  Packet ProbeOf(uint32_t port, TrafficClass traffic_class, uint32_t bytes);
  [[gnu::cold]] size_t EmitTailProbe(uint32_t port, TrafficClass traffic_class, bool again, TxBurst& burst, size_t at,
                                     Time now);
  [[gnu::cold]] size_t EmitWriteProbes(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now);
  size_t EmitAnnouncements(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now);
  uint32_t Entropies(uint32_t local_port) const;
  uint16_t OtherPath(uint32_t port, uint16_t entropy) const;
  uint16_t PathAgain(const Outstanding& lost, uint32_t port);
  size_t EmitData(uint32_t port, bool usable, TxBurst& burst, size_t at, size_t room, Time now);
  size_t SegmentsAllowed(uint32_t port, uint64_t in_flight, Time now);
  uint32_t NextBytes(const TxMessage& message, uint32_t port) const;
  bool Eligible(uint32_t port) const;
  bool MayUse(uint32_t port, Time now) const;
  void FindNextSend();

  // sender_bundles.cc
  void Bundle(Packet& packet) const;
  bool FillBundle(Packet& packet);
  void BundleAcked(const Outstanding& bundle);
  [[gnu::cold]] void BundleAckedLate(const Outstanding& bundle);
  [[gnu::cold]] void BundleLost(uint64_t psn);

  // sender_fragments.cc
  uint32_t PaddingOf(uint32_t local_port, uint32_t payload_bytes) const;
  bool HasLimit() const;
  [[gnu::cold]] PayloadLimit* FindLimit(uint32_t local_port);
  [[gnu::cold]] Duration SizePatience(uint32_t local_port) const;
  [[gnu::cold]] void NoteSizeLost(const Outstanding& entry, Time now);
  [[gnu::cold]] void AskForSizes(uint32_t local_port, Time now);
  [[gnu::cold]] size_t EmitSizeProbes(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now);
  void NoteSizeArrived(const Outstanding& entry, Time sent_at);
  [[gnu::cold]] uint32_t FirstFragment(uint32_t local_port, const TxMessage& message, uint32_t bytes) const;
  [[gnu::cold]] uint32_t RestOfSegment(const TxMessage& message, uint64_t offset) const;
  [[gnu::cold]] void SendFragmentOf(Outstanding& lost, uint32_t bytes);
  [[gnu::cold]] static void NoteFragmented(TxMessage& message);
  uint32_t FragmentsSent(const Outstanding& entry) const;

  // sender_device.cc
  // The key of the memory that the message is in, on the lane of this port; 0: its card did not take it.
  uint64_t DeviceKey(const TxMessage& message, uint32_t local_port) const;
  // A card behind another port can read and place the message, this one's cannot, or not yet: that port is to send it.
  bool LeaveToCard(const TxMessage& message, uint32_t local_port, Time now);
  // The card reads the payload itself, when it sends it: nobody computes a checksum or a cipher over it. Not of what
  // may be acknowledged, or changed by its owner, before that.
  bool IsReadByCard(const Packet& packet) const;
  // The bytes in host memory, until the next burst; nullptr: the copy failed, and the connection ends.
  const uint8_t* CopyFromDevice(const TxMessage& message, uint64_t offset, uint32_t bytes);

  // sender_fence.cc
  // By the peer's port: it is to refuse what was written there before packet `end`.
  struct Fence {
    uint64_t end = 0;  // the last that there was; 0: none
    Time since;
    uint32_t tries = 0;    // of asking for it
    bool pending = false;  // it has not said so for all of them
  };
  bool Fencing(uint32_t remote_port) const;
  bool AwaitsFence(const Outstanding& entry) const;
  [[gnu::cold]] void BeginFence(uint32_t remote_port, Time now);
  [[gnu::cold]] void EndFence(uint32_t remote_port, Time now);
  [[gnu::cold]] uint64_t FirstFenced(uint32_t remote_port) const;
  [[gnu::cold]] void HandleFenceTimeout(Time now);
  void FenceIfOverdue(Time now);
  template <typename Condition>
  void FenceIf(const Condition& condition, Time now);
  void FenceAll(Time now);
  // Another port carries what it would: first a packet is to come through it.
  bool AwaitsTrial(uint32_t port) const;
  [[gnu::cold]] size_t EmitTrial(uint32_t port, TxBurst& burst, size_t at, Time now);

  // sender_recovery.cc
  // In a row, or questions for a fence; beside the peer time-out: a clock that leaps is no silence.
  static constexpr uint32_t kTimeoutsBeforeDead = 10;
  // In a row (one, while many packets are outstanding), and then with each time-out.
  static constexpr uint32_t kQuestionsBeforeSizes = 2;
  // In a row, before sizes of half a segment and less are probed.
  static constexpr uint32_t kTimeoutsBeforeShort = 3;
  static constexpr std::string_view kSilentWrites = "a path with remote placement stays silent";
  static constexpr std::string_view kNothingArrives =
      "no data arrives, though the peer answers: its path may take smaller packets than it did";
  void TakeNews(AckTotals& totals, Time now);
  [[gnu::cold]] void RetryHeld();
  [[gnu::cold]] void ResetSilentPaths();
  void OnPacketsAcked(uint64_t psn, uint64_t end, bool marked, AckTotals& totals, Time now);
  uint64_t OnBurstAcked(uint64_t psn, uint64_t end, bool marked, AckTotals& totals, Time now);
  [[gnu::cold]] void OnAckedLate(uint64_t psn, AckTotals& totals, Time now);
  [[gnu::cold]] void OnPacketLost(uint64_t psn, LossCause cause, Time now);
  void ReportLosses(Time now);
  void DetectPathGaps(uint64_t psn, Time now);
  [[gnu::cold]] void Unneeded(Outstanding& entry);
  void DetectReordered(Time now);
  void DetectReordered(uint32_t port, TrafficClass traffic_class, Time lost_before, Time now);
  void NoteArrived(const Outstanding& entry, Time sent_at, AckTotals& totals);
  [[gnu::cold]] void HandleTimeout(ClassRecovery& recovery, uint32_t port, TrafficClass traffic_class,
                                   Time peer_heard_at, Time now);
  // Of what is outstanding.
  bool AnyClassArrives(uint32_t local_port) const;
  // False once every port that is up has failed to deliver the class, and none has delivered longer packets after
  // `since`.
  bool MayArrive(TrafficClass traffic_class, Time since) const;
  void SegmentsAcked(TxMessage* message, Outstanding::Kind kind, uint64_t count);
  void MaybeFinish(TxMessage* message);
  void Finish(TxMessage* message, OperationStatus status);
  void ResolvePacketsOf(TxMessage* message);
  void AdvanceBase(Time now);
  void Enqueue(PsnList& list, uint64_t psn);
  bool TakeOut(PsnList& list, uint64_t psn);
  void OldestFirst(Time now);
  [[gnu::cold]] void QueueRetransmit(uint64_t psn);  // of a message that is not held
  void Uncount(Outstanding& entry);                  // it is not to be sent again, or not yet
  uint64_t& UnfinishedBeside(uint64_t sequence);
  void CompleteFlushes();
  // Of the packets outstanding: when to ask, or to take them for lost.
  Time TimeoutAt() const;
  static size_t IndexOf(uint32_t local_port, TrafficClass traffic_class) {
    return local_port * kTrafficClasses + static_cast<size_t>(traffic_class);
  }
  ClassRecovery& Recovery(uint32_t local_port, TrafficClass traffic_class) {
    return recovery_[IndexOf(local_port, traffic_class)];
  }
  const ClassRecovery& Recovery(uint32_t local_port, TrafficClass traffic_class) const {
    return recovery_[IndexOf(local_port, traffic_class)];
  }
  // Of packets that carry payload through this port, as far as is known.
  const RttEstimator& Rtt(uint32_t local_port) const;
  Duration LeastRtt(uint32_t local_port) const;  // zero: none measured
  void TellBaseRtt(Flow& flow, uint32_t local_port, Time now);
  RecoveryLimits Limits() const;
  RecoveryLimits LimitsOf(uint32_t local_port, TrafficClass traffic_class) const;
  // Of a packet with so much payload.
  TrafficClass ClassOf(uint32_t local_port, uint32_t payload_bytes) const;
  // A tail probe is due as soon as the port has room; two, by different paths, where there was no answer to those
  // before.
  void ProbeLater(uint32_t port, TrafficClass traffic_class) {
    constexpr uint32_t kFirstPair = 2, kLastPair = 10;
    const auto bit = static_cast<uint8_t>(1u << port);
    probe_due_[static_cast<size_t>(traffic_class)] |= bit;
    const uint32_t questions = Recovery(port, traffic_class).questions_in_a_row();
    if (Entropies(port) > 1 && questions >= kFirstPair && questions <= kLastPair) {
      second_probe_due_[static_cast<size_t>(traffic_class)] |= bit;
    }
  }
  uint8_t ports_with_probes() const {
    return static_cast<uint8_t>(probe_due_[0] | probe_due_[1] | second_probe_due_[0] | second_probe_due_[1] |
                                write_probe_due_ | floor_probe_due_);
  }
  bool AnyProbeDue(uint32_t port) const { return (ports_with_probes() >> port & 1) != 0; }
  bool any_probe_due() const { return ports_with_probes() != 0; }
  void ArmStuckTimer(Time now);
  // A port that looks at it now could find something to do.
  bool NeedsPort() const;
  uint8_t AllPorts() const { return peer_->reach; }
  Duration AckDelay() const;
  Duration ProbeDelay(uint32_t local_port) const;

  CoreContext* context_;
  const PeerInfo* peer_;
  AckState* acks_;
  SendState* state_;

  IntrusiveList<TxMessage, &TxMessage::link> new_;      // posted, no number yet
  IntrusiveList<TxMessage, &TxMessage::link> answers_;  // the same, to requests of the peer
  IntrusiveList<TxMessage, &TxMessage::link> waiting_;  // announced, not cleared
  IntrusiveList<TxMessage, &TxMessage::link> singles_;  // to be sent: messages of one segment
  IntrusiveList<TxMessage, &TxMessage::link> sending_;  // and the others
  IntrusiveList<TxMessage, &TxMessage::link> in_flight_;
  IntrusiveList<TxMessage, &TxMessage::link> flushes_;  // in posting order
  IntrusiveList<TxMessage, &TxMessage::announce_link> announce_;
  MessageWindow<TxMessage*, &HasEnded> messages_;
  uint64_t next_match_sequence_;
  uint64_t clear_limit_;
  uint64_t posted_ = 0;     // operations, in posting order
  uint64_t unflushed_ = 0;  // of those since the newest flush: not finished

  SequenceWindow<Outstanding> outstanding_;
  BitWindow unacked_;               // packets whose acknowledgement would be news
  uint64_t outstanding_count_ = 0;  // packets in state kOutstanding
  std::vector<uint32_t> delivered_failures_;
  PsnList retransmit_;
  uint64_t retransmit_bytes_ = 0;
  uint64_t unsent_bytes_ = 0;     // of messages in singles_ and sending_
  uint32_t singles_in_turn_ = 0;  // that went before a longer message which waits

  std::vector<Flow> flows_;                            // by the peer's port
  std::vector<std::unique_ptr<PathPolicy>> policies_;  // by local port
  // By local port and entropy the newest packet that went there; 0: none. Of each class by itself, and of writes: a
  // card may send them on a queue of their own, where no packet says anything of their order.
  std::array<std::vector<uint64_t>, kTrafficClasses> last_on_path_;
  std::vector<uint64_t> last_write_on_path_;
  uint32_t entropies_ = 1;  // the most that a port has

  PortHealth health_;
  std::vector<PortWindow> windows_;                  // by local port, where there are several
  std::vector<PayloadLimit> payload_limits_;         // by local port, made with the first loss
  std::vector<ClassRecovery> recovery_;              // by local port and class
  RecentLongest quiet_;                              // times without news, but for those that losses were to blame for
  std::unique_ptr<wire::TelemetryFrame> telemetry_;  // newest, made with the first
  bool telemetry_news_ = false;                      // no acknowledgement has taken it
  std::vector<LossSample> new_losses_;               // by flow and cause, until reported
  std::vector<uint8_t> new_loss_port_;
  // What the peer says just now tells of packets below only which have arrived, not which are missing.
  uint64_t told_from_ = 0;

  // Bit per local port that is to send tail probes: of the class, or of writes on all of its paths.
  std::array<uint8_t, kTrafficClasses> probe_due_{};
  std::array<uint8_t, kTrafficClasses> second_probe_due_{};  // by the path that was alive last
  uint8_t write_probe_due_ = 0;
  uint8_t floor_probe_due_ = 0;  // and one for its own sake: it tells the peer below which number nothing is awaited
  Time next_path_probe_;         // paths of remote placement are asked again from here on
  std::string_view end_of_way_;
  std::unique_ptr<std::array<Fence, limits::kMaxPorts>> fences_;  // made with the first
  Time fence_at_ = Time::Never();                                 // ask for the pending ones again
  uint32_t fence_tries_ = 0;                                      // since the newest began
  uint8_t trials_ = 0;             // bit per local port: a packet is on its way to try it
  uint64_t floor_told_;            // newest base that a packet with a header carried (placed writes carry none)
  bool tell_floor_ = false;        // with the next probes: acknowledgements do not tell of writes that may have arrived
  Time stuck_at_ = Time::Never();  // ask again for credit or clearance
  uint32_t stuck_backoff_ = 0;
  uint32_t unanswered_demands_ = 0;  // in a row, of those that the timer sent
  uint8_t demand_twice_ = 0;         // bit per port of the peer: its demand is to be sent once more, by another path
  Time stuck_since_;                 // without the credit that backlog() waits for
  RecentLongest credit_waits_;       // of those times
  Time held_retried_at_;             // when messages that the peer put off were last tried again
  Time next_send_ = Time::Never();   // the earliest of all flows
};

}  // namespace paceline
