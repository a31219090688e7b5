#include "transport/core/rx/receiver.h"

#include <algorithm>

namespace paceline {
namespace {

static_assert(limits::kMaxOpenMessages + limits::kMaxParkedMessages <= UINT16_MAX);

// A receive announces itself to the sender only when its message would need more than one packet: smaller ones come
// unasked, and a grant for each would cost more than it brings.
uint64_t AheadBytes(const PostedReceive& receive, const PeerInfo& peer) {
  return receive.buffer.bytes > peer.segment_bytes ? receive.buffer.bytes : 0;
}

}  // namespace

Receiver::Receiver(CoreContext* context, const PeerInfo* peer, Connection* owner, AckState* acks)
    : context_(context), peer_(peer), owner_(owner), acks_(acks) {}

Receiver::~Receiver() { FailAll(OperationStatus::kConnectionClosed, Time()); }

// ---- receives

void Receiver::PostReceive(const ReceiveRequest& request, OperationId id, Time now) {
  PostedReceive* receive = context_->NewReceive(request, id);
  if (RxMessage* message = own_.FindUnexpected(*receive); message != nullptr) {
    TakeUnexpected(message);
    Attach(message, receive);
  } else {
    own_.AddReceive(receive);
    OnReady(*receive);
  }
  FinishBurst(now);
}

bool Receiver::OnReady(const PostedReceive& receive) {
  const uint64_t bytes = AheadBytes(receive, *peer_);
  ahead_bytes_ += bytes;
  demand_changed_ |= bytes > 0;
  if (bytes > 0 || receive.buffer.bytes > context_->options.eager_bytes) RaiseClearLimit();
  return bytes > 0;
}

bool Receiver::OnTaken(const PostedReceive& receive) {
  const uint64_t bytes = AheadBytes(receive, *peer_);
  if (bytes == 0) return false;
  ahead_bytes_ -= bytes;
  demand_changed_ = true;
  return true;
}

Matcher& Receiver::matcher() { return shared_ == nullptr ? own_ : shared_->queue->matcher(); }

void Receiver::SetSource(Source source) {
  LeaveSource();
  shared_->source = source;
  if (waiting_sends_ == 0) return;
  matcher().ForEachUnexpected([&](RxMessage* message) {
    if (message->receiver == this) message->source = source;
  });
}

void Receiver::JoinSource() {
  if (shared_ == nullptr || shared_->source == kAnySource || joined_) return;
  joined_ = true;
  shared_->queue->Join(this, shared_->source);
}

// (A connection that shares a queue has no receives of its own.)
void Receiver::LeaveSource() {
  if (!joined_) return;
  joined_ = false;
  shared_->queue->Leave(this, shared_->source);
  ahead_bytes_ = 0;
  demand_changed_ = true;
}

// Receives that only the peer's sends can meet.
uint32_t Receiver::ready_receives() const {
  if (shared_ == nullptr) return own_.posted_count();
  return shared_->named_receives;
}

void Receiver::Meet(RxMessage* message, PostedReceive* receive, Time now) {
  TakeUnexpected(message);
  Attach(message, receive);
  FinishBurst(now);
}

bool Receiver::MatchAgain(RxMessage* message, Time now) {
  PostedReceive* receive = TakeReceive(*message);
  if (receive == nullptr) return false;
  Meet(message, receive, now);
  return true;
}

void Receiver::AddUnexpected(RxMessage* message) {
  matcher().AddUnexpected(message);
  ++waiting_sends_;
  message->stored_rendezvous = message->length > context_->options.eager_bytes && !message->stored;
  if (message->stored_rendezvous) ++waiting_rendezvous_;
}

void Receiver::TakeUnexpected(RxMessage* message) {
  matcher().Take(message);
  --waiting_sends_;
  EndStoredRendezvous(message);
}

// It has arrived in full, or stands among the stored sends no more: nobody has to clear it by name.
void Receiver::EndStoredRendezvous(RxMessage* message) {
  if (std::exchange(message->stored_rendezvous, false)) --waiting_rendezvous_;
}

// The receive that a send takes: of a buffer for many, the part for this one. nullptr: none.
PostedReceive* Receiver::TakeReceive(const RxMessage& message) {
  PostedReceive* receive = matcher().FindReceive(message.source, message.tag);
  if (receive == nullptr) return nullptr;
  if (receive->min_free > 0) {
    if (matcher().starved() || !context_->completions.Reserve()) {  // (those that starved before it come first)
      matcher().set_starved(true);
      return nullptr;
    }
    PostedReceive* whole = receive;
    receive = context_->NewPart(whole, message.length);
    if (whole->retired) Take(whole);
    return receive;
  }
  Take(receive);
  return receive;
}

// It stands ready no more.
void Receiver::Take(PostedReceive* receive) {
  if (shared_ != nullptr) return shared_->queue->Take(receive);
  own_.Take(receive);
  OnTaken(*receive);
}

bool Receiver::Cancel(OperationId id, Time now) {
  PostedReceive* receive = own_.FindReceiveIf([id](const PostedReceive& one) { return one.operation_id == id; });
  if (receive == nullptr) return false;
  Take(receive);
  FailReceive(receive, OperationStatus::kCancelled);
  FinishBurst(now);
  return true;
}

void Receiver::FailAll(OperationStatus status, Time now) {
  for (; !match_order_.empty(); match_order_.PopFront()) {
    RxMessage* message = match_order_[match_order_.begin()];
    if (message != nullptr && message->stored) Delete(message);  // the others stand in messages_ too
  }
  messages_.ForEach([&](const Slot& slot) {
    RxMessage* message = slot.message;
    if (message == nullptr) return;
    if (message->tells) context_->completions.UnreserveForPeer();
    if (message->receive != nullptr) {
      if (message->placed_by_lane) context_->RevokePlacement(message->receive->buffer.region);
      FailReceive(std::exchange(message->receive, nullptr), status);
    }
    if (message->link.linked()) TakeUnexpected(message);
    Delete(message);
  });
  messages_.Clear();
  TakeUnexpected([this](RxMessage* message) { Delete(message); });
  FailOwnReceives(status);
  LeaveSource();
  matched_ = 0;
  open_failures_ = 0;
  expected_bytes_ = 0;
  credit_news_ = News::kNone;
  trimmed_.reset();
  not_ready_.clear();
  DropAccounts(now);
}

void Receiver::FailReceives(OperationStatus status, Time now) {
  closing_ = true;
  FailOwnReceives(status);
  LeaveSource();
  messages_.ForEach([&](const Slot& slot) {
    RxMessage* message = slot.message;
    if (message == nullptr || message->receive == nullptr || message->placed_by_lane) return;
    FailReceive(std::exchange(message->receive, nullptr), status);
    --matched_;
    message->target = nullptr;
    RefuseSend(message);
  });
  TakeUnexpected([this](RxMessage* message) { RefuseSend(message); });
  demand_changed_ = true;
  FinishBurst(now);
}

// Takes the stored sends of this connection from among those of all that share a queue.
template <typename Function>
void Receiver::TakeUnexpected(Function function) {
  if (waiting_sends_ == 0) return;
  matcher().ForEachUnexpected([&](RxMessage* message) {
    if (message->receiver != this) return;
    TakeUnexpected(message);
    function(message);
  });
}

void Receiver::FailOwnReceives(OperationStatus status) {
  while (PostedReceive* receive = own_.FindReceiveIf([](const PostedReceive&) { return true; })) {
    own_.Take(receive);
    OnTaken(*receive);
    FailReceive(receive, status);
  }
}

void Receiver::FailReceive(PostedReceive* receive, OperationStatus status) {
  context_->EndReceive(receive, {.status = status, .connection = peer_->local_connection});
}

bool Receiver::UsesRegion(RegionId region) const {
  const auto uses_it = [region](const PostedReceive& receive) { return receive.buffer.region == region; };
  if (own_.FindReceiveIf(uses_it) != nullptr) return true;
  bool any = false;
  messages_.ForEach([&](const Slot& slot) {
    any |=
        slot.message != nullptr && slot.message->receive != nullptr && slot.message->receive->buffer.region == region;
  });
  return any;
}

void Receiver::RevokeKey(uint64_t key) {
  messages_.ForEach([&](const Slot& slot) {
    RxMessage* message = slot.message;
    if (message == nullptr || !message->known || message->failed || message->remote_key != key) return;
    if (message->kind == wire::MessageKind::kWrite || message->kind == wire::MessageKind::kAnnounce)
      RefuseWrite(message);
  });
}

// ---- what is to be said

bool Receiver::PollTrimmed(wire::TrimmedFrame* frame) {
  if (trimmed_ == nullptr || trimmed_->count == 0) return false;
  *frame = *trimmed_;
  trimmed_->count = 0;
  return true;
}

// False: enough of that is to be said already.
bool Receiver::SayNotReady(uint64_t number) {
  const auto bits = static_cast<uint32_t>(number);
  if (not_ready_.size() >= kMaxNotReady || std::find(not_ready_.begin(), not_ready_.end(), bits) != not_ready_.end()) {
    return false;
  }
  not_ready_.push_back(bits);
  return true;
}

bool Receiver::PollNotReady(uint32_t* message_bits) {
  if (not_ready_.empty()) return false;
  *message_bits = not_ready_.back();
  not_ready_.pop_back();
  ++context_->counters.not_ready_sent;
  return true;
}

// ---- idle

bool Receiver::idle() const {
  if (own_.posted_count() > 0 || ahead_bytes_ > 0 || waiting_sends_ > 0 || matched_ > 0 || open_failures_ > 0 ||
      acks_->pending() || control_pending())
    return false;
  return messages_.empty() && match_order_.empty();
}

void Receiver::ReleaseIdleState(Time now) {
  DropAccounts(now);
  messages_.Release();
  match_order_.Release();
  acks_->ReleaseIdleState();
  trimmed_.reset();
  not_ready_ = {};
  credit_news_ = News::kNone;
}

size_t Receiver::memory_bytes() const {
  return sizeof(*this) + (shared_ == nullptr ? 0 : sizeof(Shared)) + messages_.memory_bytes() +
         match_order_.memory_bytes() + accounts_.capacity() * sizeof(CreditAccount);
}

}  // namespace paceline
