#include <algorithm>
#include <cstring>

#include "transport/core/endpoint_impl.h"

namespace paceline {

Connection* Endpoint::Impl::Prepare(ConnectionId id, PostResult* result) {
  Connection* connection = Find(id);
  if (connection == nullptr || connection->state() != Connection::State::kEstablished) {
    *result = PostResult::kUnknownConnection;
    return nullptr;
  }
  if (!context_.completions.Reserve()) {
    *result = PostResult::kTryAgain;
    return nullptr;
  }
  *result = PostResult::kOk;
  return connection;
}

PostResult Endpoint::Impl::PostMessage(ConnectionId id, Time now, OperationId* operation, TxMessage* message) {
  PostResult result;
  Connection* connection = Prepare(id, &result);
  if (connection != nullptr && connection->send_state().operations >= context_.options.max_operations) {
    context_.completions.Unreserve();
    result = PostResult::kTryAgain;
    connection = nullptr;
  }
  if (connection == nullptr) {
    context_.tx_messages.Delete(message);
    return result;
  }
  message->operation_id = context_.next_operation++;
  if (operation != nullptr) *operation = message->operation_id;
  connection->NoteUse(now);
  connection->sender().Post(message);
  After(connection, now);
  return PostResult::kOk;
}

TxMessage* Endpoint::Impl::NewMessage(Operation operation, wire::MessageKind kind, const LocalBuffer& buffer,
                                      uint64_t user_data) {
  TxMessage* message = context_.tx_messages.New();
  message->operation = operation;
  message->kind = kind;
  message->data = static_cast<const uint8_t*>(buffer.data);
  message->payload_bytes = message->length = buffer.bytes;
  message->region = buffer.region;
  message->device = context_.memory.DeviceOf(buffer.region);
  message->stays = buffer.region != kUnregistered && message->device == kNoDevice;
  message->user_data = user_data;
  return message;
}

PostResult Endpoint::Impl::CheckBuffer(const LocalBuffer& buffer) const {
  if (buffer.bytes > limits::kMaxMessageBytes) return PostResult::kInvalidArgument;
  return context_.memory.CheckLocal(buffer) ? PostResult::kOk : PostResult::kInvalidMemory;
}

bool Endpoint::Impl::InBounds(const RemoteMemory& remote, uint64_t offset, uint64_t bytes) {
  return offset <= remote.bytes && bytes <= remote.bytes - offset;
}

PostResult Endpoint::Impl::PostSend(ConnectionId id, const SendRequest& request, Time now, OperationId* operation) {
  if (const PostResult result = CheckBuffer(request.buffer); result != PostResult::kOk) return result;
  TxMessage* message = NewMessage(Operation::kSend, wire::MessageKind::kSend, request.buffer, request.user_data);
  message->tag = request.tag;
  message->has_immediate = request.has_immediate;
  message->immediate = request.immediate;
  message->to_receive = request.to_receive && request.buffer.bytes > 0;
  message->asks_for_ack = context_.options.prompt_acks && request.awaited;
  return PostMessage(id, now, operation, message);
}

PostResult Endpoint::Impl::PostReceive(ConnectionId id, const ReceiveRequest& request, Time now,
                                       OperationId* operation) {
  if (const PostResult result = CheckBuffer(request.buffer); result != PostResult::kOk) return result;
  PostResult result;
  Connection* connection = Prepare(id, &result);
  if (connection == nullptr) return result;
  if (connection->receiver().shares_receives()) {  // no send would look for it here
    context_.completions.Unreserve();
    return PostResult::kInvalidArgument;
  }
  if (connection->receiver().operations() >= context_.options.max_operations) {
    context_.completions.Unreserve();
    return PostResult::kTryAgain;
  }
  const OperationId receive = context_.next_operation++;
  if (operation != nullptr) *operation = receive;
  connection->NoteUse(now);
  connection->receiver().PostReceive(request, receive, now);
  After(connection, now);
  return PostResult::kOk;
}

PostResult Endpoint::Impl::PostWrite(ConnectionId id, const WriteRequest& request, Time now, OperationId* operation) {
  if (const PostResult result = CheckBuffer(request.buffer); result != PostResult::kOk) return result;
  if (!InBounds(request.remote, request.remote_offset, request.buffer.bytes)) return PostResult::kInvalidMemory;
  TxMessage* message = NewMessage(request.has_immediate ? Operation::kWriteImmediate : Operation::kWrite,
                                  wire::MessageKind::kWrite, request.buffer, request.user_data);
  message->asks_for_ack = context_.options.prompt_acks;
  message->remote_key = request.remote.key;
  message->remote_offset = request.remote_offset;
  message->has_immediate = request.has_immediate;
  message->immediate = request.immediate;
  const bool placeable = std::any_of(request.remote.lane_keys.begin(), request.remote.lane_keys.end(),
                                     [](uint64_t key) { return key != 0; });
  const bool placing = std::any_of(context_.ports.begin(), context_.ports.end(),
                                   [](const Port& port) { return port.capabilities.remote_placement; });
  if (placeable && placing && request.buffer.bytes > 0) {
    message->placement = std::make_unique<PlacementTarget>();
    message->placement->address = request.remote.lane_base + request.remote_offset;
    message->placement->keys = request.remote.lane_keys;
  }
  return PostMessage(id, now, operation, message);
}

PostResult Endpoint::Impl::PostRead(ConnectionId id, const ReadRequest& request, Time now, OperationId* operation) {
  if (const PostResult result = CheckBuffer(request.buffer); result != PostResult::kOk) return result;
  if (!InBounds(request.remote, request.remote_offset, request.buffer.bytes)) return PostResult::kInvalidMemory;
  TxMessage* message = NewMessage(Operation::kRead, wire::MessageKind::kReadRequest, request.buffer, request.user_data);
  message->data = nullptr;
  message->payload_bytes = 0;
  message->answer_buffer = static_cast<uint8_t*>(request.buffer.data);
  message->answer_bytes = request.buffer.bytes;
  message->wants_answer = true;
  message->remote_key = request.remote.key;
  message->remote_offset = request.remote_offset;
  return PostMessage(id, now, operation, message);
}

PostResult Endpoint::Impl::PostAtomic(ConnectionId id, const AtomicRequest& request, Time now, OperationId* operation) {
  const bool add = request.operation == Operation::kFetchAdd;
  if (!add && request.operation != Operation::kCompareSwap) return PostResult::kInvalidArgument;
  if (request.remote_offset % 8 != 0) return PostResult::kInvalidArgument;
  if (!InBounds(request.remote, request.remote_offset, 8)) return PostResult::kInvalidMemory;
  TxMessage* message = NewMessage(
      request.operation, add ? wire::MessageKind::kFetchAdd : wire::MessageKind::kCompareSwap, {}, request.user_data);
  message->length = 8;
  message->wants_answer = true;
  message->remote_key = request.remote.key;
  message->remote_offset = request.remote_offset;
  message->operand = request.operand;
  message->compare = request.compare;
  return PostMessage(id, now, operation, message);
}

PostResult Endpoint::Impl::PostVectorAtomic(ConnectionId id, const VectorAtomicRequest& request, Time now,
                                            OperationId* operation) {
  const uint64_t bytes = uint64_t{request.elements} * SizeOf(request.type);
  const uint32_t vectors = VectorsOf(request.op);
  if (bytes == 0 || bytes > limits::kMaxAtomicBytes || !IsAtomicValid(request.op, request.type) ||
      (vectors > 0 && request.operands == nullptr) || (vectors > 1 && request.compares == nullptr)) {
    return PostResult::kInvalidArgument;
  }
  if (!InBounds(request.remote, request.remote_offset, bytes)) return PostResult::kInvalidMemory;
  const Connection* connection = Find(id);
  if (connection != nullptr && connection->state() == Connection::State::kEstablished && !connection->peer().atomics) {
    return PostResult::kInvalidArgument;
  }
  TxMessage* message = NewMessage(Operation::kAtomic, wire::MessageKind::kAtomic, {}, request.user_data);
  message->length = message->payload_bytes = bytes * vectors;
  if (vectors > 0) {
    message->own_bytes = std::make_unique_for_overwrite<uint8_t[]>(message->payload_bytes);
    std::memcpy(message->own_bytes.get(), request.operands, bytes);
    if (vectors > 1) std::memcpy(message->own_bytes.get() + bytes, request.compares, bytes);
    message->data = message->own_bytes.get();
  }
  message->atomic_op = request.op;
  message->atomic_type = request.type;
  message->elements = request.elements;
  message->answer_buffer = static_cast<uint8_t*>(request.results);
  message->answer_bytes = request.results == nullptr ? 0 : bytes;
  message->wants_answer = true;
  message->remote_key = request.remote.key;
  message->remote_offset = request.remote_offset;
  return PostMessage(id, now, operation, message);
}

PostResult Endpoint::Impl::PostFlush(ConnectionId id, const FlushRequest& request, Time now, OperationId* operation) {
  return PostMessage(id, now, operation,
                     NewMessage(Operation::kFlush, wire::MessageKind::kProbe, {}, request.user_data));
}

bool Endpoint::Impl::Cancel(ConnectionId id, OperationId operation, Time now) {
  Connection* connection = Find(id);
  if (connection == nullptr) return false;
  Sender* sender = connection->active_sender();
  const bool cancelled =
      connection->receiver().Cancel(operation, now) || (sender != nullptr && sender->Cancel(operation));
  After(connection, now);
  return cancelled;
}

size_t Endpoint::Impl::PollConnectionEvents(std::span<ConnectionEvent> out) {
  size_t n = 0;
  while (n < out.size() && !events_.empty()) {
    out[n++] = std::move(events_.front());
    events_.pop_front();
  }
  return n;
}

}  // namespace paceline
