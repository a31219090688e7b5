// Receives of an endpoint: posted, looked for, claimed, cancelled.
#include "api/libfabric/src/av.h"
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {

std::optional<api::Match> Endpoint::MatchOf(const Receive& receive) const {
  api::Match match = {.tag = kUntagged};
  if ((receive.flags & FI_TAGGED) != 0) {
    match.tag = receive.tag & ~kUntagged;
    match.ignore = receive.ignore & ~kUntagged;
  }
  // Without the capability the address of a receive means nothing.
  if ((traits_.caps & FI_DIRECTED_RECV) == 0 || receive.peer == FI_ADDR_UNSPEC) return match;
  const Av* av = sharers_.empty() ? av_.get() : sharers_.front()->av_.get();
  if (av == nullptr || av->Find(receive.peer) == nullptr) return std::nullopt;  // not for whoever comes instead
  match.source = av->FirstOf(receive.peer);
  return match;
}

ssize_t Endpoint::Post(const Receive& receive) {
  const Domain::Guard guard(domain_);
  if (!enabled_) return -FI_EOPBADSTATE;
  if (shared_ != nullptr || traits_.role == Role::kTransmit) return -FI_EOPNOTSUPP;
  if (traits_.datagram && (receive.flags & FI_TAGGED) != 0) return -FI_EOPNOTSUPP;
  if (receive.vector.size() > kIoVectors) return -FI_EINVAL;
  if ((receive.flags & FI_PEEK) != 0) return Peek(receive);
  if ((receive.flags & FI_CLAIM) != 0) return PostClaimed(receive);
  const bool many = (receive.flags & FI_MULTI_RECV) != 0;
  const auto match = MatchOf(receive);
  if (!match || (many && receive.vector.size() > 1)) return -FI_EINVAL;
  Operation* operation =
      NewOperation(receive.context, receive.flags, FI_RECV | (receive.flags & (FI_MSG | FI_TAGGED | FI_MULTI_RECV)));
  const api::Buffer buffer = BufferOf(receive.vector, operation);
  const auto user_data = reinterpret_cast<uint64_t>(operation);
  const PostResult result = many ? receives_.ReceiveMany(buffer, *match, min_multi_receive_, user_data, &operation->id)
                                 : receives_.Receive(buffer, *match, user_data, &operation->id);
  if (result != PostResult::kOk) {
    Release(operation);
  } else if (session_ != nullptr && session_->is_over()) {
    receives_.Cancel(operation->id);
  }
  return ResultOf(result);
}

// Where the message goes: of several pieces, to one in their place at first. Without memory there is room for nothing,
// as libfabric's own providers take it, whatever the length says.
api::Buffer Endpoint::BufferOf(Vector vector, Operation* operation) {
  if (!vector.empty()) operation->buffer = vector.front().iov_base;
  if (vector.size() <= 1) {
    operation->room = operation->buffer == nullptr ? 0 : BytesOf(vector);
    return {.data = operation->buffer, .bytes = operation->room};
  }
  uint8_t* bytes = Stage(operation, BytesOf(vector));
  auto& to = operation->staging->to;
  to.assign(vector.begin(), vector.end());
  for (iovec& piece : to) {
    if (piece.iov_base == nullptr) piece.iov_len = 0;
  }
  operation->room = BytesOf(to);
  return {.data = bytes, .bytes = operation->room};
}

// What is found, or that nothing is, goes to the completion queue. A claim waits in the program's fi_context.
ssize_t Endpoint::Peek(const Receive& receive) {
  domain_->Progress();
  if (domain_->is_held_up()) return -FI_EAGAIN;
  const bool claim = (receive.flags & (FI_CLAIM | FI_DISCARD)) != 0;
  const auto match = MatchOf(receive);
  if (!match) return -FI_EINVAL;
  const auto found = receives_.Peek(*match, claim);
  Cq* cq = ReceiverOf(found ? found->connection : 0)->receive_queue_.cq.get();
  if (cq == nullptr) return -FI_ENOCQ;
  Cq::Entry entry;
  fi_cq_err_entry& fields = entry.fields;
  fields.op_context = receive.context;
  fields.flags = FI_RECV | (receive.flags & (FI_MSG | FI_TAGGED));
  if (!found) {
    fields.err = FI_ENOMSG;
    fields.tag = receive.tag;
    cq->Push(entry);
    return 0;
  }
  fields.len = found->bytes;
  fields.tag = found->tag & ~kUntagged;
  if (found->has_immediate) fields.flags |= FI_REMOTE_CQ_DATA;
  if (found->has_immediate) fields.data = found->immediate;
  entry.source = ReceiverOf(found->connection)->links_.PeerOf(found->connection);
  if ((receive.flags & FI_DISCARD) != 0) {
    // Taken by a receive without room, whose completion nobody hears of.
    Operation* operation = NewOperation(nullptr, kSilent, 0);
    operation->flags = FI_RECV | (receive.flags & (FI_MSG | FI_TAGGED));
    operation->discard = true;
    const PostResult result = receives_.ReceiveClaimed({}, found->claim, reinterpret_cast<uint64_t>(operation));
    if (result != PostResult::kOk) Release(operation);
    if (result != PostResult::kOk) return ResultOf(result);
  } else if (claim) {
    static_cast<fi_context*>(receive.context)->internal[0] = reinterpret_cast<void*>(found->claim);
  }
  cq->Push(entry);
  return 0;
}

ssize_t Endpoint::PostClaimed(const Receive& receive) {
  const auto claim = reinterpret_cast<uint64_t>(static_cast<fi_context*>(receive.context)->internal[0]);
  Operation* operation = NewOperation(receive.context, receive.flags, FI_RECV | (receive.flags & (FI_MSG | FI_TAGGED)));
  operation->discard = (receive.flags & FI_DISCARD) != 0;
  const api::Buffer buffer = BufferOf(operation->discard ? Vector() : receive.vector, operation);
  const PostResult result = receives_.ReceiveClaimed(buffer, claim, reinterpret_cast<uint64_t>(operation));
  if (result != PostResult::kOk) Release(operation);
  return ResultOf(result);
}

ssize_t Endpoint::Cancel(void* context) {
  const Domain::Guard guard(domain_);
  for (Operation* operation = operations_.front(); operation != nullptr; operation = operations_.Next(operation)) {
    if (operation->id != 0 && operation->context == context && receives_.Cancel(operation->id)) return 0;
  }
  return -FI_ENOENT;
}

}  // namespace paceline::libfabric
