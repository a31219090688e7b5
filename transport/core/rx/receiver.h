// The receiving half of a connection: packets become segments in place, segments complete messages, sends meet
// receives, requests are answered. It tells the allocators of the ports what is wanted, and hands their grants on.
//
// Files: receiver.cc (receives), receiver_credit.cc (credit, and what the sender is told), receiver_packets.cc (packets
// as they arrive), receiver_messages.cc (messages of each kind from first packet to completion), receiver_requests.cc
// (what the peer asks of our memory, and answers to what we ask), receiver_bundles.cc (small sends in one packet),
// receiver_matching.cc (sends meet receives).
//
// Thread rule: the endpoint's thread. It borrows the buffers of receives until they complete.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "transport/base/sequence_window.h"
#include "transport/core/context.h"
#include "transport/core/message_window.h"
#include "transport/core/rx/ack_state.h"
#include "transport/core/rx/credit_account.h"
#include "transport/core/rx/matcher.h"
#include "transport/core/rx/receive_queue.h"
#include "transport/core/tx/message.h"
#include "transport/wire/frames.h"
#include "transport/wire/packet.h"

namespace paceline {

class Receiver {
 public:
  // `owner` has the sending half, for answers. `acks`: what the peer is told of its packets.
  Receiver(CoreContext* context, const PeerInfo* peer, Connection* owner, AckState* acks);
  ~Receiver();

  // ---- operations. The caller has checked memory and reserved a completion.
  void PostReceive(const ReceiveRequest& request, OperationId id, Time now);
  // Sends of the peer look for receives in `queue` from now on, which other connections may share. To be called before
  // anything arrives; the queue outlives the connection.
  void ShareReceives(ReceiveQueue* queue) { shared_ = std::make_unique<Shared>(Shared{queue}); }
  // Back to receives of its own: the queue goes before the connection.
  void KeepReceives() {
    LeaveSource();
    shared_.reset();
  }
  ConnectionId connection() const { return peer_->local_connection; }
  bool shares_receives() const { return shared_ != nullptr; }
  // The queue that it shares; nullptr: it has receives of its own.
  ReceiveQueue* queue() const { return shared_ == nullptr ? nullptr : shared_->queue; }
  // The peer's name in a shared queue, also of what it has sent and nobody has received. What names the peer counts
  // from the next JoinSource.
  void SetSource(Source source);
  // The receives of a shared queue that name the peer count for this connection, which is up, from now on.
  void JoinSource();
  // A receive that only the peer's sends can meet has come to stand ready; or it stands ready no more, as it was met or
  // has ended. False: the allocators need not be told, as its message is one segment at most.
  bool OnReady(const PostedReceive& receive);
  bool OnTaken(const PostedReceive& receive);
  // A receive of a shared queue takes the stored send `message` of this connection.
  void Meet(RxMessage* message, PostedReceive* receive, Time now);
  // A stored send looks for a receive again. False: there is none.
  bool MatchAgain(RxMessage* message, Time now);
  bool Cancel(OperationId id, Time now);
  void FailAll(OperationStatus status, Time now);
  // Ends the receives only, and refuses sends of the peer from now on; answers to requests of ours still come in. A
  // receive whose buffer a remote card may still write to ends with its message.
  void FailReceives(OperationStatus status, Time now);
  bool UsesRegion(RegionId region) const;
  // These messages of the peer were refused, and the peer knows.
  void ReleaseRefused(const std::vector<uint32_t>& numbers);
  // The peer may not write there any more: writes under way are refused.
  void RevokeKey(uint64_t key);
  // The region has new keys on the lanes: the peer is told those of receives that it was to write. False: it has none.
  bool TellKeysAgain(RegionId region);
  // Sends of the peer that have met no receive yet.
  uint32_t waiting_sends() const { return waiting_sends_; }
  uint32_t operations() const { return own_.posted_count() + matched_; }
  // Whether somebody waits for what the peer sends.
  bool is_awaited() const { return operations() > 0 || (shared_ != nullptr && shared_->named_receives > 0); }
  // Of the queue that it shares. True: they are the first.
  bool SetNamedReceives(uint32_t count) { return std::exchange(shared_->named_receives, count) == 0 && count > 0; }

  // ---- what arrives
  struct Arrival {
    wire::DataStamp stamp;             // instead of what the header says of the first of the run
    const uint8_t* payload = nullptr;  // nullptr: phantom
    uint32_t payload_bytes = 0;        // 0 for trimmed packets
    bool marked = false;
    bool trimmed = false;
    Time arrived;                             // at the port
    std::span<const HopTelemetry> telemetry;  // what the network wrote into it
  };
  // Packets of one run (wire::DataStamp), or one packet, through `port`.
  void HandleData(const wire::DataHeader& header, uint32_t port, std::span<const Arrival> packets, Time now);
  void HandlePlaced(uint32_t port, uint32_t immediate, uint32_t bytes, Time arrived, Time now);
  void HandleDemand(const wire::DemandFrame& frame, Time now);
  // Where the next payloads of this message belong, if it comes in order.
  PlacementGuess GuessPlacement(uint32_t message_bits) const;
  // Where the payload of the message begins to go of which this is a packet; nullptr: nobody has guessed it.
  const uint8_t* PlaceOf(const wire::DataHeader& header) const;
  // From the allocator of `port`.
  void OnGrant(uint32_t port, const Grant& grant);
  // A local port has come up or gone down: nothing is asked for through one that is down.
  void OnPortChange(Time now);
  // Once per burst of arrivals, behind them: what they have changed is told to the allocators. False: nothing.
  bool FinishBurst(Time now);

  // ---- what is to be said
  bool control_pending() const {
    return (trimmed_ != nullptr && trimmed_->count > 0) || !not_ready_.empty() || credit_news_ == News::kNow ||
           (credit_news_ == News::kMayWait && !acks_->pending());
  }
  // For the packet with the next acknowledgement.
  bool grant_waits() const { return credit_news_ == News::kMayWait; }
  // Each fills one frame; false: nothing (more) of the kind to say.
  bool PollTrimmed(wire::TrimmedFrame* frame);
  bool PollNotReady(uint32_t* message_bits);
  bool PollGrant(wire::GrantFrame* frame);

  bool idle() const;
  // The least round trip to the peer has been measured, or has changed.
  void OnBaseRtt(Duration rtt, Time now);
  void ReleaseIdleState(Time now);
  size_t memory_bytes() const;

 private:
  // Of credit and clears, for the sender: none; for some packet; for the next acknowledgement; at once.
  enum class News : uint8_t { kNone, kMayRest, kMayWait, kNow };
  struct Shared {
    ReceiveQueue* queue = nullptr;
    Source source = kAnySource;   // the peer's name there
    uint32_t named_receives = 0;  // so many stand there that name it; 0 unless joined_
  };
  struct Slot {
    RxMessage* message = nullptr;
    bool done = false;
  };
  static bool IsDone(const Slot& slot) { return slot.done; }
  enum class Taken : uint8_t { kYes, kNo };  // kNo: not acknowledged, so that it is sent again

  CreditAccount& Account(uint32_t port, Time now) {
    if (!accounts_.empty() && accounts_[port].active) return accounts_[port];
    return OpenAccount(port, now);
  }
  [[gnu::cold]] CreditAccount& OpenAccount(uint32_t port, Time now);
  void DropAccounts(Time now);
  void UpdateDemand(uint32_t port, Time now);
  void NoteArrival(CreditAccount& account, uint32_t port, const ArrivalSample& sample);
  // What the packets of one run have in common, and what they bring together.
  struct Run {
    RxMessage* message = nullptr;  // whose segments they are, and it takes them; nullptr: that is to be found out
    uint64_t number = 0;           // of the message
    uint64_t newest_psn = 0;       // of those that are no duplicates
    const wire::DataStamp* newest = nullptr;
    uint64_t accepted_from = 0, accepted_end = 0;  // not told to acks_ yet
    Time accepted_arrived;                         // the last of these
    uint32_t taken = 0;
    bool at_once = false, last = false;
    ArrivalSample sample;  // packets without bytes apart
  };
  // Packets of a run that continue each other, in their numbers and in the message, and have nothing else to tell. Who
  // takes a stretch may take only its beginning, and cuts it to that.
  using Stretch = std::span<const Arrival>;
  Stretch FirstStretch(std::span<const Arrival> packets) const;
  size_t HandleStretch(const wire::DataHeader& header, uint32_t port, Stretch stretch, Run& run, Time now);
  void TellAccepted(const wire::DataHeader& header, Run& run);
  void TellSaid(const wire::DataHeader& header, uint32_t port, Run& run, Time now);
  void TellArrivals(uint32_t port);
  void RequestGrant() { credit_news_ = News::kNow; }
  void NoteCreditNews(uint32_t port);
  // The sender is to be told that this message is not taken now.
  [[gnu::cold]] bool SayNotReady(uint64_t number);
  [[gnu::cold]] void FailReceive(PostedReceive* receive, OperationStatus status);
  Matcher& matcher();
  PostedReceive* TakeReceive(const RxMessage& message);
  void Take(PostedReceive* receive);
  [[gnu::cold]] void FailOwnReceives(OperationStatus status);
  void LeaveSource();
  uint32_t ready_receives() const;
  void AddUnexpected(RxMessage* message);
  template <typename Function>
  void TakeUnexpected(Function function);
  void TakeUnexpected(RxMessage* message);
  void EndStoredRendezvous(RxMessage* message);
  void RaiseClearLimit();
  bool AwaitsCredit() const;
  bool MustTell(const RxMessage& message, uint32_t port) const;
  News CreditNews(uint32_t port) const;
  bool IsFar() const;  // by the base round trip
  News NewsFor(uint32_t port) const;
  News MostUrgent(uint32_t* port) const;

  // receiver_messages.cc
  Taken HandleMessage(const wire::DataHeader& header, Stretch& stretch, Run& run);
  bool StillTakes(const Run& run) const {
    return run.message != nullptr && messages_.Contains(run.number) && messages_[run.number].message == run.message &&
           !run.message->failed && !run.message->spoilt;
  }
  [[gnu::cold]] bool ParkUpTo(uint64_t number);
  RxMessage* Introduce(const wire::DataHeader& header, uint64_t number, Slot& slot);
  bool Begin(RxMessage* message);

  // receiver_bundles.cc
  Taken HandleBundle(const wire::DataHeader& bundle, const Arrival& arrival);

  // receiver_matching.cc
  bool Deliver(const wire::DataHeader& header, const Arrival& arrival);
  void AdvanceMatching();
  void Match(RxMessage* message);
  void Attach(RxMessage* message, PostedReceive* receive);
  bool Store(RxMessage* message);
  void FreeBounce(RxMessage* message);

  // receiver_messages.cc
  bool TakesSegments(RxMessage* message);
  Taken HandleSegments(RxMessage* message, Stretch& stretch, Run& run);
  [[gnu::cold]] Taken HandleFragment(RxMessage* message, Stretch fragment);
  [[gnu::cold]] void ForgetFragments(RxMessage* message, uint64_t segment, uint64_t count);
  void CountArrived(RxMessage* message, uint64_t bytes);
  bool Place(RxMessage* message, uint64_t offset, const uint8_t* bytes, uint64_t count);
  bool PlaceSegments(RxMessage* message, Stretch stretch);
  void MaybeComplete(RxMessage* message);
  void Complete(RxMessage* message);
  void CompleteReceive(RxMessage* message);
  void CompleteReceive(PostedReceive* receive, Completion&& outcome);
  void Tell(RxMessage* message, Operation operation);
  [[gnu::cold]] void Refuse(RxMessage* message, OperationStatus status);
  [[gnu::cold]] void RefuseWrite(RxMessage* message);
  [[gnu::cold]] void RefuseSend(RxMessage* message);
  uint8_t* PlaceOf(const RxMessage& message) const;
  void MarkDone(uint64_t number);
  void Delete(RxMessage* message);

  // receiver_requests.cc
  void ExecuteRequest(RxMessage* message);
  void ExecuteAtomic(RxMessage* message);
  static wire::MessageKind AnswerTo(const TxMessage& request);
  void FinishAnswer(RxMessage* message);
  [[gnu::cold]] void AnswerRevoked(RxMessage* message, uint64_t status);
  TxMessage* FindRequest(uint32_t number_bits) const;
  TxMessage* PostAnswer(RxMessage* request, wire::MessageKind kind, uint64_t value, const uint8_t* data, uint64_t bytes,
                        RegionId region);

  CoreContext* context_;
  const PeerInfo* peer_;
  Connection* owner_;
  AckState* acks_;
  Matcher own_;
  std::unique_ptr<Shared> shared_;  // takes the place of own_
  MessageWindow<Slot, &IsDone> messages_;
  SequenceWindow<RxMessage*> match_order_{limits::kMaxOpenMessages};  // sends whose turn has not come
  IntrusiveList<RxMessage, &RxMessage::clear_link> clears_;           // to be cleared by name, data not seen yet
  std::vector<CreditAccount> accounts_;                               // by local port
  size_t fragmented_segments_ = 0;                                    // of which a part is here
  uint64_t expected_bytes_ = 0;                                       // of accepted messages, still to come
  uint64_t ahead_bytes_ = 0;                                          // of receives that stand ready
  uint64_t clear_limit_ = 0;                                          // sends that may come without asking
  uint32_t untold_clears_ = 0;  // of clear_limit_: the sender does not know of them
  uint32_t waiting_sends_ = 0;  // have met no receive yet
  // At most limits::kMaxOpenMessages and limits::kMaxParkedMessages each.
  uint16_t matched_ = 0;             // receives that have met their send and wait for its bytes
  uint16_t waiting_rendezvous_ = 0;  // of waiting_sends_: to be cleared by name
  uint16_t open_failures_ = 0;
  bool joined_ : 1 = false;  // receives of the shared queue that name the peer count for it
  bool demand_changed_ : 1 = false;
  bool clears_told_ : 1 = false;  // some, since the last demand
  bool closing_ : 1 = false;      // no receive will ever be posted again, no new request is taken
  bool prompt_ack_ : 1 = false;   // a message has been completed that the sender waits for
  News credit_news_ = News::kNone;
  std::unique_ptr<wire::TrimmedFrame>
      trimmed_;  // packets whose payload was cut, to be told; nullptr until there is one
  static constexpr size_t kMaxNotReady = 16;
  std::vector<uint32_t> not_ready_;  // messages that their sender is to hold, to be told
};

}  // namespace paceline
