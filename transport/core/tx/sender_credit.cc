// What the receiver grants, clears and puts off, and what the sender asks of it.
#include <bit>

#include "transport/base/sequence.h"
#include "transport/core/tx/sender.h"
#include "transport/wire/rate16.h"

namespace paceline {

void Sender::Clear(TxMessage* message) {
  message->held = false;
  message->link.Unlink();
  while (!message->held_packets.empty()) {
    const uint64_t psn = TakeFromFront(message->held_packets);
    if (outstanding_[psn].state == Outstanding::State::kQueuedDead) {
      outstanding_[psn].state = Outstanding::State::kResolved;
      continue;
    }
    QueueRetransmit(psn);
  }
  if (message->unsent_bytes() > 0) {
    Sendable(message);
  } else {
    message->state = TxMessage::State::kInFlight;
    in_flight_.PushBack(message);
  }
  if (waiting_.empty()) {
    stuck_at_ = Time::Never();
    stuck_backoff_ = 0;
  }
  state_->ready_ports = AllPorts();
}

void Sender::HandleGrant(const wire::GrantFrame& frame, Time now) {
  if (frame.port >= peer_->remote_ports) return;
  Flow& flow = ActiveFlow(frame.port, now);
  if (frame.credit_end != 0) {
    const uint64_t credit = frame.credit_end == kNoCreditLimit    ? kNoCreditLimit
                            : frame.credit_end > flow.credit_base ? frame.credit_end - flow.credit_base
                                                                  : 0;
    const uint64_t before = flow.controller->allowance().credit_end;
    flow.controller->OnGrant({.now = now, .credit_end = credit, .rate = wire::DecodeRate(frame.rate)});
    // Credit is no news for a send that was put off.
    if (flow.controller->allowance().credit_end > before && waiting_.empty()) {
      if (!stuck_at_.is_never() && unanswered_demands_ <= 1) credit_waits_.Add(now - stuck_since_);
      stuck_at_ = Time::Never();
      stuck_backoff_ = 0;
    }
  }
  for (uint8_t i = 0; i < frame.clears; ++i) {
    TxMessage* message = FindMessage(frame.clear[i].message);
    if (message == nullptr || message->kind != wire::MessageKind::kSend) continue;
    if (frame.clear[i].key != 0) {
      if (message->placement == nullptr) message->placement = std::make_unique<PlacementTarget>();
      message->placement->address = frame.clear[i].address;
      message->placement->keys[frame.port] = frame.clear[i].key;
    }
    if (message->state == TxMessage::State::kWaiting) Clear(message);
  }
  const uint64_t limit = Unwrap(frame.clear_limit, clear_limit_);
  if (limit > clear_limit_ && limit <= next_match_sequence_ + limits::kMaxOperations) {
    clear_limit_ = limit;
    if (!context_->ports[peer_->first_port()].capabilities.remote_placement) {
      for (TxMessage* message = waiting_.front(); message != nullptr;) {
        TxMessage* next = waiting_.Next(message);
        if (message->match_sequence < clear_limit_ && !message->held && !message->to_receive) Clear(message);
        message = next;
      }
    }
  }
  if (std::exchange(unanswered_demands_, 0) > 0) stuck_at_ = Time::Never();  // Fill arms it again
  state_->ready_ports = AllPorts();
}

void Sender::HandleNotReady(uint32_t message_bits, Time now) {
  for (ClassRecovery& recovery : recovery_) recovery.OnNotReady(now);
  TxMessage* message = FindMessage(message_bits);
  if (message == nullptr || message->kind != wire::MessageKind::kSend || message->held) return;
  if (message->state == TxMessage::State::kSending) {
    unsent_bytes_ -= message->unsent_bytes();
    state_->ready_ports = AllPorts();  // Fill tells the controllers
  }
  message->held = true;
  message->state = TxMessage::State::kWaiting;
  message->link.Unlink();
  waiting_.PushBack(message);
}

bool Sender::PollDemand(wire::DemandFrame* frame) {
  if (state_->demand_pending == 0) return false;
  const uint32_t port = static_cast<uint32_t>(std::countr_zero(state_->demand_pending));
  const auto bit = static_cast<uint8_t>(1u << port);
  if ((demand_twice_ & bit) == 0) state_->demand_pending &= static_cast<uint8_t>(~bit);
  demand_twice_ &= static_cast<uint8_t>(~bit);
  if (port >= flows_.size()) return false;
  Flow& flow = flows_[port];
  frame->port = static_cast<uint8_t>(port);
  frame->cap = flow.controller == nullptr ? 0 : wire::EncodeRate(flow.controller->cap());
  frame->tx_total = static_cast<uint32_t>(flow.tx_total);
  frame->lost_total = static_cast<uint32_t>(flow.lost_total);
  frame->backlog = wire::EncodeBacklog(backlog());
  flow.told_end = flow.tx_total + backlog();
  flow.told_lost = flow.lost_total;
  return true;
}

std::optional<uint16_t> Sender::ProvenPathForDemand(uint32_t local_port) const {
  if (state_->demand_pending == 0 || unanswered_demands_ < 2 || demand_twice_ != 0) return std::nullopt;
  const ClassRecovery& recovery = Recovery(local_port, TrafficClass::kBulk);
  return recovery.any_arrived() ? std::optional(recovery.newest_arrived_entropy()) : std::nullopt;
}

}  // namespace paceline
