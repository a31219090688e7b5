// What the peer asks of our memory, and what it answers to requests of ours.
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "transport/core/connection.h"
#include "transport/core/rx/apply_atomic.h"
#include "transport/core/rx/receiver.h"

namespace paceline {

using wire::MessageKind;

// ---- requests of the peer

void Receiver::ExecuteRequest(RxMessage* message) {
  const bool is_read = message->kind == MessageKind::kReadRequest;
  const Region* region =
      context_->memory.CheckRemote(message->remote_key, message->remote_offset, is_read ? message->length : 8,
                                   is_read ? kRemoteRead : kRemoteAtomic, peer_->local_connection);
  uint8_t* at = region == nullptr || region->base == nullptr ? nullptr : region->At(message->remote_offset);
  if (region == nullptr || (!is_read && (at == nullptr || reinterpret_cast<uintptr_t>(at) % 8 != 0))) {
    Refuse(message, OperationStatus::kRemoteAccess);
    return;
  }
  if (is_read) {
    ++context_->counters.rx_reads;
    TxMessage* answer = PostAnswer(message, MessageKind::kReadResponse, 0, at, message->length, region->id);
    answer->tells = std::exchange(message->tells, false);
    return;
  }
  ++context_->counters.rx_atomics;
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(at));
  uint64_t before = message->compare;
  if (message->kind == MessageKind::kFetchAdd) {
    before = word.fetch_add(message->operand);
  } else {
    word.compare_exchange_strong(before, message->operand);
  }
  Tell(message, message->kind == MessageKind::kFetchAdd ? Operation::kFetchAdd : Operation::kCompareSwap);
  PostAnswer(message, MessageKind::kAtomicResponse, before, nullptr, 0, kUnregistered);
}

// What the values were goes back in the memory in which the operands came.
void Receiver::ExecuteAtomic(RxMessage* message) {
  const uint64_t bytes = message->elements * SizeOf(message->atomic_type);
  const Region* region = context_->memory.CheckRemote(message->remote_key, message->remote_offset, bytes, kRemoteAtomic,
                                                      peer_->local_connection);
  uint8_t* at = region == nullptr || region->base == nullptr ? nullptr : region->At(message->remote_offset);
  if (at == nullptr || !IsAligned(message->atomic_type, at)) return Refuse(message, OperationStatus::kRemoteAccess);
  if (message->fetch && message->bounce == nullptr) message->bounce = std::make_unique<uint8_t[]>(bytes);
  uint8_t* vectors = message->bounce.get();
  ApplyAtomic(message->atomic_op, message->atomic_type, message->elements, at, vectors,
              message->length > bytes ? vectors + bytes : nullptr, message->fetch ? vectors : nullptr);
  ++context_->counters.rx_atomics;
  Tell(message, Operation::kAtomic);
  if (!message->fetch) {
    PostAnswer(message, MessageKind::kAtomicResponse, 0, nullptr, 0, kUnregistered);
    return;
  }
  TxMessage* answer = PostAnswer(message, MessageKind::kReadResponse, 0, vectors, bytes, kUnregistered);
  answer->own_bytes = std::move(message->bounce);
}

TxMessage* Receiver::PostAnswer(RxMessage* request, MessageKind kind, uint64_t value, const uint8_t* data,
                                uint64_t bytes, RegionId region) {
  TxMessage* answer = context_->tx_messages.New();
  answer->kind = kind;
  answer->reports = false;
  answer->request = static_cast<uint32_t>(request->number);
  answer->value = value;
  answer->data = data;
  answer->payload_bytes = answer->length = bytes;
  answer->region = region;
  answer->device = context_->memory.DeviceOf(region);
  owner_->sender().Post(answer);
  return answer;
}

// ---- answers to ours

// The request of ours that the peer answers; nullptr: it is over.
TxMessage* Receiver::FindRequest(uint32_t number_bits) const {
  Sender* sender = owner_->active_sender();
  return sender == nullptr ? nullptr : sender->FindMessage(number_bits);
}

MessageKind Receiver::AnswerTo(const TxMessage& request) {
  const bool with_payload = request.kind == MessageKind::kReadRequest || request.answer_bytes > 0;
  return with_payload ? MessageKind::kReadResponse : MessageKind::kAtomicResponse;
}

void Receiver::FinishAnswer(RxMessage* message) {
  TxMessage* request = FindRequest(message->request);
  if (request == nullptr) return;
  if (message->kind == MessageKind::kFailure) {
    auto status = static_cast<OperationStatus>(message->value);
    if (status != OperationStatus::kRemoteAccess && status != OperationStatus::kConnectionClosed) {
      status = OperationStatus::kRemoteError;
    }
    owner_->sender().FinishRequest(request, status, 0);
  } else if (request->wants_answer && message->kind == AnswerTo(*request)) {
    owner_->sender().FinishRequest(request, OperationStatus::kOk, message->value);
  }
}

// The memory that it comes from was revoked at the peer; what has arrived of it is of no use.
void Receiver::AnswerRevoked(RxMessage* message, uint64_t status) {
  expected_bytes_ -= message->length - message->arrived_bytes;
  demand_changed_ = true;
  message->kind = MessageKind::kFailure;
  message->value = status;
  Complete(message);
}

}  // namespace paceline
