// Receive queues: receives that all connections of a queue share, by any of them or by those of one name.
#include <algorithm>

#include "transport/core/endpoint_impl.h"

namespace paceline {

ReceiveQueueId Endpoint::Impl::NewReceiveQueue() {
  const ReceiveQueueId queue = next_receive_queue_++;
  const auto changed = [this](const Receiver& receiver) { Touch(Find(receiver.connection())); };
  receive_queues_[queue] = std::make_unique<ReceiveQueue>(context_.options.eager_bytes, changed);
  return queue;
}

void Endpoint::Impl::DeleteReceiveQueue(ReceiveQueueId id, Time now) {
  ReceiveQueue* queue = FindQueue(id);
  if (queue == nullptr) return;
  for (auto& [number, listener] : listeners_) {
    if (listener.setup.receives == id) listener.setup = {};
  }
  for (Slot& slot : slots_) {
    Connection* connection = slot.connection.get();
    if (connection == nullptr || connection->receiver().queue() != queue) continue;
    Abort(connection->id(), now);
    if (slot.connection != nullptr) slot.connection->receiver().KeepReceives();
  }
  while (PostedReceive* receive = queue->TakeIf([](const PostedReceive&) { return true; })) {
    context_.EndReceive(receive, {.status = OperationStatus::kCancelled});
  }
  receive_queues_.erase(id);
}

ReceiveQueue* Endpoint::Impl::FindQueue(ReceiveQueueId queue) const {
  const auto found = receive_queues_.find(queue);
  return found == receive_queues_.end() ? nullptr : found->second.get();
}

void Endpoint::Impl::SetUp(Connection& connection, const ConnectionSetup& setup) {
  ReceiveQueue* queue = FindQueue(setup.receives);
  if (queue == nullptr) return;
  connection.receiver().ShareReceives(queue);
  connection.receiver().SetSource(setup.source);
}

void Endpoint::Impl::SetSource(ConnectionId id, Source source, Time now) {
  Connection* connection = Find(id);
  if (connection == nullptr || !connection->receiver().shares_receives()) return;
  Receiver& receiver = connection->receiver();
  receiver.SetSource(source);
  MatchAgain(*receiver.queue(), &receiver, now);
  if (connection->state() == Connection::State::kEstablished) receiver.JoinSource();  // with what is left
  if (connection->open()) connection->FinishBurst(now);
  After(connection, now);
  FinishTouched(now);
}

PostResult Endpoint::Impl::PostSharedReceive(ReceiveQueueId id, const ReceiveRequest& request, Time now,
                                             OperationId* operation) {
  ReceiveQueue* queue = FindQueue(id);
  if (queue == nullptr) return PostResult::kInvalidArgument;
  Matcher& matcher = queue->matcher();
  if (const PostResult result = CheckBuffer(request.buffer); result != PostResult::kOk) return result;
  FeedStarvedQueues(now);  // what waits for room only is not for this receive
  RxMessage* message = request.claimed == 0 ? nullptr : matcher.FindClaimed(request.claimed);
  if (request.claimed != 0 && message == nullptr) return PostResult::kInvalidArgument;
  if (matcher.starved()) return PostResult::kTryAgain;
  if (matcher.posted_count() >= limits::kMaxOperations || !context_.completions.Reserve()) return PostResult::kTryAgain;
  PostedReceive* receive = context_.NewReceive(request, context_.next_operation++);
  if (operation != nullptr) *operation = receive->operation_id;
  if (message == nullptr) message = matcher.FindUnexpected(*receive);
  if (message == nullptr || request.min_free > 0) queue->Add(receive);
  for (; message != nullptr; message = matcher.FindUnexpected(*receive)) {
    const ConnectionId connection = message->receiver->connection();
    if (request.min_free == 0) {
      message->receiver->Meet(message, receive, now);
    } else if (!message->receiver->MatchAgain(message, now)) {
      break;
    }
    After(Find(connection), now);
    if (request.min_free == 0 || matcher.newest_receive() != receive) break;  // it may be over, and gone
  }
  FinishTouched(now);
  return PostResult::kOk;
}

std::optional<WaitingSend> Endpoint::Impl::Peek(ReceiveQueueId id, const ReceiveRequest& request, bool claim) {
  ReceiveQueue* queue = FindQueue(id);
  if (queue == nullptr || queue->matcher().starved()) return std::nullopt;  // (what starved has its receive)
  const PostedReceive wanted{.tag = request.tag, .ignore = request.ignore, .source = request.source};
  RxMessage* message = queue->matcher().FindUnexpected(wanted);
  if (message == nullptr) return std::nullopt;
  if (claim) message->claimed = context_.next_operation++;
  return WaitingSend{.connection = message->receiver->connection(),
                     .source = message->source,
                     .bytes = message->length,
                     .tag = message->tag,
                     .immediate = message->immediate,
                     .has_immediate = message->has_immediate,
                     .claimed = message->claimed};
}

bool Endpoint::Impl::CancelReceive(ReceiveQueueId id, OperationId operation, Time now) {
  ReceiveQueue* queue = FindQueue(id);
  if (queue == nullptr) return false;
  const auto is_it = [operation](const PostedReceive& receive) { return receive.operation_id == operation; };
  PostedReceive* receive = queue->TakeIf(is_it);
  if (receive == nullptr) return false;
  context_.EndReceive(receive, {.status = OperationStatus::kCancelled});
  FinishTouched(now);
  return true;
}

void Endpoint::Impl::FailReceivesFrom(ReceiveQueueId id, Source source, OperationStatus status, Time now) {
  ReceiveQueue* queue = FindQueue(id);
  if (queue == nullptr || source == kAnySource) return;
  const auto names_it = [source](const PostedReceive& receive) { return receive.source == source; };
  while (PostedReceive* receive = queue->TakeIf(names_it)) context_.EndReceive(receive, {.status = status});
  FinishTouched(now);
}

void Endpoint::Impl::CancelReceivesInto(RegionId region, Time now) {
  const auto uses_it = [region](const PostedReceive& receive) { return receive.buffer.region == region; };
  for (auto& [id, queue] : receive_queues_) {
    while (PostedReceive* receive = queue->TakeIf(uses_it)) {
      context_.EndReceive(receive, {.status = OperationStatus::kCancelled});
    }
  }
  FinishTouched(now);
}

void Endpoint::Impl::MatchAgain(ReceiveQueue& queue, const Receiver* receiver, Time now) {
  queue.matcher().ForEachUnexpected([&](RxMessage* message) {
    if (message->claimed != 0 || (receiver != nullptr && message->receiver != receiver)) return;
    const ConnectionId connection = message->receiver->connection();
    if (message->receiver->MatchAgain(message, now)) After(Find(connection), now);
  });
}

void Endpoint::Impl::FeedStarvedQueues(Time now) {
  for (auto& [id, queue] : receive_queues_) {
    if (!queue->matcher().starved()) continue;
    queue->matcher().set_starved(false);
    MatchAgain(*queue, nullptr, now);
    FinishTouched(now);
  }
}

}  // namespace paceline
