#include "transport/core/rx/receiver.h"

#include <algorithm>
#include <bit>

#include "transport/wire/rate16.h"

namespace paceline {
namespace {

static_assert(limits::kMaxOpenMessages <= UINT16_MAX);

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
  if (!std::exchange(joined_, false)) return;
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
  for (; !messages_.empty(); messages_.PopFront()) {
    RxMessage* message = messages_[messages_.begin()].message;
    if (message == nullptr) continue;
    if (message->tells) context_->completions.UnreserveForPeer();
    if (message->receive != nullptr) {
      if (message->placed_by_lane) context_->RevokePlacement(message->receive->buffer.region);
      FailReceive(std::exchange(message->receive, nullptr), status);
    }
    if (message->link.linked()) TakeUnexpected(message);
    Delete(message);
  }
  TakeUnexpected([this](RxMessage* message) { Delete(message); });
  FailOwnReceives(status);
  LeaveSource();
  matched_ = 0;
  open_failures_ = 0;
  expected_bytes_ = 0;
  credit_news_ = News::kNone;
  trimmed_.clear();
  not_ready_.clear();
  DropAccounts(now);
}

void Receiver::FailReceives(OperationStatus status, Time now) {
  closing_ = true;
  FailOwnReceives(status);
  LeaveSource();
  for (uint64_t n = messages_.begin(); n < messages_.end(); ++n) {
    RxMessage* message = messages_[n].message;
    if (message == nullptr || message->receive == nullptr || message->placed_by_lane) continue;
    FailReceive(std::exchange(message->receive, nullptr), status);
    --matched_;
    message->target = nullptr;
    RefuseSend(message);
  }
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
  for (uint64_t n = messages_.begin(); n < messages_.end(); ++n) {
    const RxMessage* message = messages_[n].message;
    if (message != nullptr && message->receive != nullptr && message->receive->buffer.region == region) return true;
  }
  return false;
}

void Receiver::RevokeKey(uint64_t key) {
  for (uint64_t n = messages_.begin(); n < messages_.end(); ++n) {
    RxMessage* message = messages_[n].message;
    if (message == nullptr || !message->known || message->failed || message->remote_key != key) continue;
    if (message->kind == wire::MessageKind::kWrite || message->kind == wire::MessageKind::kAnnounce)
      RefuseWrite(message);
  }
}

// How many sends may come without asking: those whose turn has come, and one for each receive that stands ready. Not
// past a stored send that must be cleared by name, for it would take the count for itself.
void Receiver::RaiseClearLimit() {
  if (waiting_rendezvous_ > 0) return;
  const uint64_t limit = match_order_.begin() + ready_receives();
  if (limit <= clear_limit_) return;
  clear_limit_ = limit;
  RequestGrant();
}

// ---- credit

CreditAccount& Receiver::OpenAccount(uint32_t port_index, Time now) {
  if (accounts_.empty()) accounts_.resize(context_->ports.size());
  CreditAccount& account = accounts_[port_index];
  Port& port = context_->ports[port_index];
  if (!account.active && port.receiver != nullptr) {
    account.active = true;
    account.Start();
    if (port.free_flows.empty()) {
      account.flow = static_cast<uint32_t>(port.flow_owner.size());
      port.flow_owner.push_back(owner_);
    } else {
      account.flow = port.free_flows.back();
      port.free_flows.pop_back();
      port.flow_owner[account.flow] = owner_;
    }
    port.receiver->AddFlow(account.flow, peer_->flow, now);
  }
  return account;
}

void Receiver::DropAccounts(Time now) {
  for (size_t i = 0; i < accounts_.size(); ++i) {
    CreditAccount& account = accounts_[i];
    if (!account.active) continue;
    Port& port = context_->ports[i];
    account.untold = {};
    port.receiver->RemoveFlow(account.flow, now);
    port.flow_owner[account.flow] = nullptr;
    port.free_flows.push_back(account.flow);
    account.active = false;
    account.grant_pending = false;
  }
}

void Receiver::UpdateDemand(uint32_t port, Time now) {
  Port& local = context_->ports[port];
  if (local.receiver == nullptr) return;
  CreditAccount& account = Account(port, now);
  const uint64_t end = local.up ? account.DemandEnd(expected_bytes_ + ahead_bytes_) : account.NothingWanted();
  if (account.told_end == end && account.told_cap == account.cap) return;
  account.told_end = end;
  account.told_cap = account.cap;
  local.receiver->OnDemand(account.flow, end, account.cap, now);
}

bool Receiver::FinishBurst(Time now) {
  if (!demand_changed_) return false;
  demand_changed_ = false;
  for (uint32_t port = 0; port < context_->ports.size(); ++port) {
    if (port < accounts_.size()) TellArrivals(port);
    const bool peer_came = port < accounts_.size() && accounts_[port].active;
    if (peer_->prefers(port) || peer_came) UpdateDemand(port, now);
  }
  return true;
}

// The allocator hears of a burst as a whole, and after the application has: nothing that it does helps an answer. What
// brought no bytes (a probe, a trimmed packet) is told by itself.
void Receiver::NoteArrival(CreditAccount& account, uint32_t port, const ArrivalSample& sample) {
  ArrivalSample& untold = account.untold;
  if (untold.bytes == 0 || sample.bytes == 0) {
    TellArrivals(port);
    untold = sample;
  } else {
    untold.now = sample.now;
    untold.bytes += sample.bytes;
    untold.packets += sample.packets;
    untold.marked_packets += sample.marked_packets;
    untold.relative_delay_nanos = sample.relative_delay_nanos;
  }
  untold.tx_total = account.TxTotal();
  untold.lost_total = account.LostTotal();
  demand_changed_ = true;
}

void Receiver::TellArrivals(uint32_t port) {
  CreditAccount& account = accounts_[port];
  if (account.untold.packets == 0) return;
  context_->ports[port].receiver->OnArrival(account.flow, std::exchange(account.untold, ArrivalSample()));
}

void Receiver::OnPortChange(Time now) {
  // An idle connection asks for nothing, and stays idle.
  const auto asks = [](const CreditAccount& account) { return account.active; };
  if (std::none_of(accounts_.begin(), accounts_.end(), asks)) return;
  demand_changed_ = true;
  FinishBurst(now);
}

void Receiver::OnGrant(uint32_t port, const Grant& grant) {
  CreditAccount& account = accounts_[port];
  account.credit_end = account.base + grant.credit_end;
  account.rate = grant.rate;
  account.grant_pending = true;
  credit_news_ = std::max(credit_news_, MayWait(account, context_->ports[port]) ? News::kMayWait : News::kNow);
}

// For the acknowledgement that is pending: what the sender was told is most of what it has.
bool Receiver::MayWait(const CreditAccount& account, const Port& port) const {
  if (!acks_->pending() || !port.sends_bursts() || account.credit_end < account.credit_told) return false;
  const uint64_t left = account.credit_told - std::min(account.credit_told, account.tx_total);
  return account.credit_end - account.credit_told <= left / 3;
}

void Receiver::HandleDemand(const wire::DemandFrame& frame, Time now) {
  if (frame.port >= context_->ports.size()) return;
  CreditAccount& account = Account(frame.port, now);
  TellArrivals(frame.port);
  account.OnSaid(account.newest_psn, frame.tx_total, frame.lost_total, frame.backlog, frame.cap);
  if (account.active) {
    context_->ports[frame.port].receiver->OnArrival(
        account.flow, {.now = now, .tx_total = account.TxTotal(), .lost_total = account.LostTotal()});
  }
  // The sender asks because it hears nothing: say everything again, to the allocator too.
  account.grant_pending = true;
  account.told_end = CreditAccount::kNothing;
  if (std::exchange(clears_told_, false)) {
    for (RxMessage* message = clears_.front(); message != nullptr; message = clears_.Next(message))
      message->told_ports = 0;
  }
  RequestGrant();
  demand_changed_ = true;
}

// ---- what is to be said

bool Receiver::PollTrimmed(wire::TrimmedFrame* frame) {
  if (trimmed_.empty()) return false;
  frame->count = static_cast<uint8_t>(trimmed_.size());
  std::copy(trimmed_.begin(), trimmed_.end(), frame->psns.begin());
  trimmed_.clear();
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

// Packets need to hear once that they may come; lanes with remote placement need the key of each port.
bool Receiver::MustTell(const RxMessage& message, uint32_t port) const {
  if (!context_->ports[port].capabilities.remote_placement) return message.told_ports == 0;
  return (message.told_ports >> port & 1) == 0;
}

bool Receiver::HasNews(uint32_t port) const {
  if (port < accounts_.size() && accounts_[port].grant_pending) return true;
  for (const RxMessage* message = clears_.front(); message != nullptr;
       message = clears_.Next(const_cast<RxMessage*>(message))) {
    if (message->receive != nullptr && MustTell(*message, port)) return true;
  }
  return false;
}

// The port with news; without any, the connection's first.
uint32_t Receiver::PortToTell() const {
  const auto ports = static_cast<uint32_t>(context_->ports.size());
  const auto first = static_cast<uint32_t>(std::countr_zero(peer_->ports));
  for (uint32_t i = 0; i < ports; ++i) {
    const uint32_t port = (first + i) % ports;
    if (HasNews(port)) return port;
  }
  return first;
}

bool Receiver::PollGrant(wire::GrantFrame* frame) {
  if (credit_news_ == News::kNone) return false;
  const uint32_t port = PortToTell();
  frame->port = static_cast<uint8_t>(port);
  frame->clear_limit = static_cast<uint32_t>(clear_limit_);
  frame->credit_end = kNoCreditLimit;
  frame->rate = 0;
  if (context_->ports[port].receiver != nullptr) {
    frame->credit_end = port < accounts_.size() ? accounts_[port].credit_end : 0;
    if (port < accounts_.size()) frame->rate = wire::EncodeRate(accounts_[port].rate);
  }
  if (port < accounts_.size()) {
    accounts_[port].grant_pending = false;
    accounts_[port].credit_told = accounts_[port].credit_end;
  }
  frame->clears = 0;
  bool more = false;
  for (RxMessage* message = clears_.front(); message != nullptr; message = clears_.Next(message)) {
    if (message->receive == nullptr || !MustTell(*message, port)) continue;
    if (frame->clears == wire::GrantFrame::kMaxClears) {
      more = true;
      break;
    }
    wire::ClearEntry& entry = frame->clear[frame->clears++];
    entry = {.message = static_cast<uint32_t>(message->number)};
    const Region* region = context_->memory.Find(message->receive->buffer.region);
    // (Headers are never encrypted, and where payloads are, nothing is placed by a card.)
    if (region != nullptr && !peer_->encrypted && message->length <= message->target_bytes &&
        region->lane_keys[port] != 0) {
      entry.address = reinterpret_cast<uint64_t>(message->target);
      entry.key = region->lane_keys[port];
      message->placed_by_lane = true;
    }
    message->told_ports |= static_cast<uint8_t>(1u << port);
    clears_told_ = true;
  }
  credit_news_ = more || HasNews(PortToTell()) ? News::kNow : News::kNone;
  ++context_->counters.grants_sent;
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
  trimmed_ = {};
  not_ready_ = {};
}

size_t Receiver::memory_bytes() const {
  return sizeof(*this) + (shared_ == nullptr ? 0 : sizeof(Shared)) + messages_.memory_bytes() +
         match_order_.memory_bytes() + accounts_.capacity() * sizeof(CreditAccount);
}

}  // namespace paceline
