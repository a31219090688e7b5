// How messages of the sending half end: their last acknowledgement or answer, their failure, and the flushes that
// waited.
#include <utility>

#include "transport/core/tx/sender.h"

namespace paceline {
namespace {

uint64_t TransferredBytes(const TxMessage& message) {
  return message.kind == wire::MessageKind::kAtomic ? message.elements * SizeOf(message.atomic_type) : message.length;
}

}  // namespace

void Sender::SegmentsAcked(TxMessage* message, Outstanding::Kind kind, uint64_t count) {
  if (kind == Outstanding::Kind::kAnnouncement) {
    message->announcement_acked = true;
  } else {
    message->segments_left -= count;
  }
  MaybeFinish(message);
}

void Sender::MaybeFinish(TxMessage* message) {
  if (message->segments_left > 0 || message->wants_answer) return;
  if (message->counts_announcement && !message->announcement_acked) return;
  Finish(message, OperationStatus::kOk);
}

// A read of the peer in a region whose owner wants to know: its answer is there, or will never be.
void Sender::TellOfRead(const TxMessage& answer, OperationStatus status) {
  if (status != OperationStatus::kOk) return context_->completions.UnreserveForPeer();
  context_->completions.EndForPeer();
  context_->Complete({.operation = Operation::kRead,
                      .connection = peer_->local_connection,
                      .bytes = answer.length,
                      .region = answer.region});
}

void Sender::RevokeAnswers(RegionId region) {
  for (auto* list : {&answers_, &singles_, &sending_, &in_flight_}) {
    for (TxMessage* message = list->front(); message != nullptr;) {
      TxMessage* next = list->Next(message);
      if (message->kind == wire::MessageKind::kReadResponse && message->region == region) BecomeFailure(message);
      message = next;
    }
  }
}

// Under the number that it has: the peer has perhaps seen a part of the answer, and waits for the rest.
void Sender::BecomeFailure(TxMessage* answer) {
  if (std::exchange(answer->tells, false)) context_->completions.UnreserveForPeer();
  const bool numbered = answer->state != TxMessage::State::kQueued;
  if (numbered) {
    StopSending(answer);
    ResolvePacketsOf(answer);
  }
  ++context_->counters.rx_refused;
  answer->kind = wire::MessageKind::kFailure;
  answer->value = static_cast<uint64_t>(OperationStatus::kRemoteAccess);
  answer->data = nullptr;
  answer->region = kUnregistered;
  answer->payload_bytes = answer->length = answer->next_offset = 0;
  answer->segments_left = 1;
  answer->single = true;
  if (numbered) Sendable(answer);
  state_->ready_ports = AllPorts();
}

void Sender::StopSending(TxMessage* message) {
  if (message->state == TxMessage::State::kSending) {
    unsent_bytes_ -= message->unsent_bytes();
    state_->ready_ports = AllPorts();  // Fill tells the controllers
  }
  message->link.Unlink();
  message->announce_link.Unlink();
}

void Sender::Finish(TxMessage* message, OperationStatus status) {
  const bool numbered = message->state != TxMessage::State::kQueued;
  StopSending(message);
  if (numbered) {
    ResolvePacketsOf(message);
    messages_[message->number] = nullptr;
    messages_.Ended(message->number);
    if (!new_.empty() || !answers_.empty()) state_->ready_ports = AllPorts();
  }
  if (message->reports) {
    --state_->operations;
    context_->Complete({.operation = message->operation,
                        .status = status,
                        .connection = peer_->local_connection,
                        .user_data = message->user_data,
                        .bytes = status == OperationStatus::kOk ? TransferredBytes(*message) : 0,
                        .result = message->value});
    if (message->operation != Operation::kFlush) --UnfinishedBeside(message->sequence);
  } else {
    --state_->open_answers;
    if (message->tells) TellOfRead(*message, status);
    if (message->kind == wire::MessageKind::kFailure && status == OperationStatus::kOk) {
      delivered_failures_.push_back(message->request);
    }
  }
  const bool was_flush = message->operation == Operation::kFlush && message->reports;
  context_->tx_messages.Delete(message);
  if (!was_flush) CompleteFlushes();
}

// Forgets packets of a message that ends without being acknowledged in full.
void Sender::ResolvePacketsOf(TxMessage* message) {
  const auto resolve = [&](uint64_t psn) {
    Outstanding& entry = outstanding_[psn];
    if (entry.message != message) return;
    if (entry.state == Outstanding::State::kOutstanding) {
      // The peer will not take it any more, so the credit that it used is to be counted as lost.
      flows_[entry.remote_port].in_flight -= entry.bytes;
      flows_[entry.remote_port].lost_total += entry.bytes;
      --outstanding_count_;
      Recovery(entry.local_port, entry.traffic_class).OnResolved(1);
      entry.state = Outstanding::State::kResolved;
      unacked_.Clear(psn);
    } else if (entry.state == Outstanding::State::kQueued) {
      Uncount(entry);
      entry.state = Outstanding::State::kQueuedDead;
      unacked_.Clear(psn);
    }
    entry.message = nullptr;
  };
  const bool single = message->single && !message->fragmented && !message->announced && message->held_packets.empty();
  if (single) {
    if (outstanding_.Contains(message->last_psn)) resolve(message->last_psn);
  } else if (message->segments_left > 0) {
    for (uint64_t psn = outstanding_.begin(); psn < outstanding_.end(); ++psn) resolve(psn);
  } else {
    for (uint64_t psn = message->announced_by; outstanding_.Contains(psn); psn = outstanding_[psn].next) resolve(psn);
  }
  // Also where none is needed any more: they would keep their place in the window for ever.
  while (!message->held_packets.empty()) {
    outstanding_[TakeFromFront(message->held_packets)].state = Outstanding::State::kResolved;
  }
}

// The count of unfinished operations between the same two flushes.
uint64_t& Sender::UnfinishedBeside(uint64_t sequence) {
  for (TxMessage* flush = flushes_.front(); flush != nullptr; flush = flushes_.Next(flush)) {
    if (sequence < flush->sequence) return flush->unfinished_before;
  }
  return unflushed_;
}

void Sender::CompleteFlushes() {
  while (TxMessage* flush = flushes_.front()) {
    if (flush->unfinished_before > 0) return;
    Finish(flush, OperationStatus::kOk);
  }
}

}  // namespace paceline
