// The credit that the peer has for its sends, and which of them may come without asking: what the allocators hear and
// give, and when the sender is told.
#include <algorithm>
#include <bit>
#include <utility>

#include "transport/core/rx/receiver.h"
#include "transport/wire/rate16.h"

namespace paceline {

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
    port.receiver->AddFlow(account.flow, port.FlowOf(peer_->flow), now);
  }
  return account;
}

void Receiver::OnBaseRtt(Duration rtt, Time now) {
  for (size_t i = 0; i < accounts_.size(); ++i) {
    const Port& port = context_->ports[i];
    if (accounts_[i].active && port.measures_rtt()) {
      port.receiver->OnBaseRtt(accounts_[i].flow, port.BaseRtt(rtt), now);
    }
  }
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
    account.credit_end = account.credit_told;
    account.grant_pending = account.grant_twice = false;
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
  const uint64_t end = account.base + grant.credit_end;
  // The allocator says it again, to a sender that has something to send and is silent: what it was told may be lost.
  account.grant_twice = end <= account.credit_end && account.backlog > 0;
  if (account.grant_twice) account.credit_told = account.tx_total;
  account.credit_end = end;
  account.rate = grant.rate;
  account.grant_pending = true;
  NoteCreditNews(port);
}

// News that rests here costs the peer a round trip.
bool Receiver::IsFar() const {
  const Duration stated = context_->ports[peer_->first_port()].capabilities.base_rtt;
  return std::max(stated, peer_->flow.base_rtt) > Duration::Micros(150);
}

void Receiver::NoteCreditNews(uint32_t port) { credit_news_ = std::max(credit_news_, CreditNews(port)); }

// Where packets go in bursts: a sender that knows of three quarters of what it has hears of the rest with the
// acknowledgement that is pending. One that has credit for all that it has to send, or nothing to send, hears of as
// little, or of a burst, when something else is said. (Writes say nothing of a backlog.)
Receiver::News Receiver::CreditNews(uint32_t port) const {
  if (port >= accounts_.size() || !accounts_[port].grant_pending) return News::kNone;
  const CreditAccount& account = accounts_[port];
  const Port& local = context_->ports[port];
  if (!local.sends_bursts() || account.credit_end < account.credit_told) return News::kNow;
  const uint64_t left = account.credit_told - std::min(account.credit_told, account.tx_total);
  const uint64_t fresh = account.credit_end - account.credit_told;
  const uint64_t burst = uint64_t{peer_->burst_segments} * peer_->segment_bytes;
  const uint64_t little = std::max(left / 3, account.backlog > 0 ? burst : std::min(left, burst));
  const bool rests = !IsFar() && account.backlog <= left && fresh <= little;
  if (rests && !local.capabilities.remote_placement) return News::kMayRest;
  return acks_->pending() && fresh <= left / 3 ? News::kMayWait : News::kNow;
}

// The sender has used what it knows of. If that is less than it was told, that was lost.
void Receiver::HandleDemand(const wire::DemandFrame& frame, Time now) {
  if (frame.port >= context_->ports.size()) return;
  CreditAccount& account = Account(frame.port, now);
  TellArrivals(frame.port);
  const uint64_t tx_total = account.tx_total, backlog = account.backlog;
  account.OnSaid(account.newest_psn, frame.tx_total, frame.lost_total, frame.backlog, frame.cap);
  if (account.active) {
    context_->ports[frame.port].receiver->OnArrival(
        account.flow, {.now = now, .tx_total = account.TxTotal(), .lost_total = account.LostTotal()});
  }
  account.credit_told = std::min(account.credit_told, Unwrap(frame.tx_total, account.tx_total));
  account.grant_pending |= !account.active || account.credit_end > account.credit_told;
  account.told_end = CreditAccount::kNothing;  // the allocator hears it again
  const bool clears_told = clears_told_ && !clears_.empty();
  clears_told_ = false;
  if (clears_told) {
    for (RxMessage* message = clears_.front(); message != nullptr; message = clears_.Next(message))
      message->told_ports = 0;
  }
  // Who says the same again wonders whether anybody is there.
  const bool again = account.tx_total == tx_total && account.backlog == backlog;
  const bool always = again || !context_->ports[frame.port].sends_bursts();
  account.grant_pending |= always;
  account.grant_twice |= again && account.grant_pending;
  // Acknowledgements may have been lost with the grants.
  if (again && acks_->any_arrived()) acks_->RequestAck(0, true, context_->options.ack_every, Duration(), now);
  if (account.grant_pending || clears_told) RequestGrant();
  demand_changed_ = true;
}

// How many sends may come without asking: those whose turn has come, and one for each receive that stands ready. Not
// past a stored send that must be cleared by name, for it would take the count for itself.
void Receiver::RaiseClearLimit() {
  if (waiting_rendezvous_ > 0) return;
  const uint64_t limit = match_order_.begin() + ready_receives();
  if (limit <= clear_limit_) return;
  const uint64_t told = clear_limit_ - untold_clears_;
  const uint64_t left = told - std::min(told, match_order_.begin());
  clear_limit_ = limit;
  untold_clears_ = static_cast<uint32_t>(limit - told);
  // Where packets go in bursts: with the next control packet, if the sender knows of three quarters of them or a grant
  // is to follow anyway.
  const bool bursts = context_->ports[peer_->first_port()].sends_bursts();
  const bool rests = bursts && !IsFar() && (untold_clears_ <= left / 3 || AwaitsCredit());
  credit_news_ = std::max(credit_news_, rests ? News::kMayRest : News::kNow);
}

// The sender has no credit, and is to get some for what is expected.
bool Receiver::AwaitsCredit() const {
  bool comes = false;
  for (const CreditAccount& account : accounts_) {
    if (!account.active) continue;
    if (account.credit_told > account.tx_total) return false;
    const uint64_t end = account.base + account.DemandEnd(expected_bytes_ + ahead_bytes_);
    comes |= account.grant_pending || end > account.credit_end;
  }
  return comes;
}

// Packets need to hear once that they may come; lanes with remote placement need the key of each port.
bool Receiver::MustTell(const RxMessage& message, uint32_t port) const {
  if (!context_->ports[port].capabilities.remote_placement) return message.told_ports == 0;
  return (message.told_ports >> port & 1) == 0;
}

Receiver::News Receiver::NewsFor(uint32_t port) const {
  const News credit = CreditNews(port);
  if (credit == News::kNow) return credit;
  for (const RxMessage* message = clears_.front(); message != nullptr;
       message = clears_.Next(const_cast<RxMessage*>(message))) {
    if (message->receive != nullptr && MustTell(*message, port)) return News::kNow;
  }
  return credit;
}

// The port with the most urgent news; without any, the connection's first.
Receiver::News Receiver::MostUrgent(uint32_t* port) const {
  const auto ports = static_cast<uint32_t>(context_->ports.size());
  const auto first = static_cast<uint32_t>(std::countr_zero(peer_->ports));
  *port = first;
  News most = NewsFor(first);
  for (uint32_t i = 1; i < ports && most < News::kNow; ++i) {
    const uint32_t other = first + i < ports ? first + i : first + i - ports;
    if (const News news = NewsFor(other); news > most) {
      most = news;
      *port = other;
    }
  }
  return most;
}

bool Receiver::PollGrant(wire::GrantFrame* frame) {
  if (credit_news_ == News::kNone) return false;
  uint32_t port, next;
  MostUrgent(&port);
  frame->port = static_cast<uint8_t>(port);
  frame->clear_limit = static_cast<uint32_t>(clear_limit_);
  untold_clears_ = 0;
  frame->credit_end = kNoCreditLimit;
  frame->rate = 0;
  if (context_->ports[port].receiver != nullptr) {
    frame->credit_end = port < accounts_.size() ? accounts_[port].credit_end : 0;
    if (port < accounts_.size()) frame->rate = wire::EncodeRate(accounts_[port].rate);
  }
  if (port < accounts_.size()) {
    accounts_[port].grant_pending = std::exchange(accounts_[port].grant_twice, false);
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
  credit_news_ = more ? News::kNow : MostUrgent(&next);
  ++context_->counters.grants_sent;
  return true;
}

}  // namespace paceline
