// Sends, writes, reads and atomics of an endpoint.
#include <array>
#include <cstring>
#include <optional>

#include "api/libfabric/src/deferred.h"
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

uint64_t KindOf(uint64_t flags) {
  if ((flags & FI_READ) != 0) return FI_READ | FI_RMA;
  if ((flags & FI_WRITE) != 0) return FI_WRITE | FI_RMA;
  return FI_SEND | (flags & (FI_MSG | FI_TAGGED));
}

// The elements of a vector in one piece: where they are, or copied to `room`.
const void* InOnePiece(Vector vector, std::array<uint8_t, api::kMaxAtomicBytes>& room) {
  if (vector.size() == 1) return vector.front().iov_base;
  Gather(vector, room.data());
  return room.data();
}

}  // namespace

// Not under the guard. A transmit context of a scalable endpoint waits for the connection to a peer when it first sends
// there, for at most the connect time-out: programs read that context's queue when something has been sent, and take
// -FI_EAGAIN before for a failure. 0: there is a connection, or nothing to wait for.
ssize_t Endpoint::AwaitLink(fi_addr_t peer) {
  if (traits_.role != Role::kTransmit) return 0;
  ssize_t error = 0;
  const auto settled = [&] {
    if (!enabled_ || links_.Reach(peer, &error) != nullptr) error = 0;
    return error != -FI_EAGAIN;
  };
  {
    const Domain::Guard guard(domain_);
    if (domain_->deferred().is_running() || settled()) return error;
  }
  domain_->WaitUntil(settled, -1);
  return error;
}

api::Connection* Endpoint::Reach(fi_addr_t peer, ssize_t* error) {
  if (!enabled_) {
    *error = -FI_EOPBADSTATE;
    return nullptr;
  }
  api::Connection* connection = session_ == nullptr ? links_.Reach(peer, error) : session_->Reach(error);
  if (connection == nullptr) domain_->Progress();  // who posts again and again makes the connection come
  return connection;
}

ssize_t Endpoint::Posted(PostResult result, Operation* operation, bool injected) {
  if (result == PostResult::kOk) {
    // Nobody waits for its completion, so perhaps nobody moves data for a while: it leaves now.
    if (injected) domain_->paceline().Transmit();
    return 0;
  }
  Release(operation);
  // A connection that has ended: the next attempt makes a new one, of an endpoint that is not connected.
  if (result == PostResult::kTryAgain || (result == PostResult::kNotConnected && session_ == nullptr)) {
    domain_->Progress();
    return -FI_EAGAIN;
  }
  return ResultOf(result);
}

// Sends that are over for the program once they are copied: short ones whose end means no more than that the buffer is
// its own again, FI_INJECT_COMPLETE of fi_cq(3). With more ranks than cores also those that name no level: an
// acknowledgement costs a turn of the peer's process. Not what deferred work waits for, and not while a queue is full:
// nothing would bound it.
bool Endpoint::EndsAtOnce(const Operation& operation, size_t bytes) const {
  constexpr uint64_t kLater = FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
  if ((operation.flags & FI_SEND) == 0 || (operation.asked & kLater) != 0 || operation.counter != nullptr) return false;
  if ((operation.asked & kSilent) != 0 && CounterOf(operation.flags) == nullptr) return true;
  if ((operation.asked & FI_INJECT_COMPLETE) == 0 && !domain_->paceline().crowded()) return false;
  return bytes <= ((operation.asked & FI_INJECT) != 0 ? kInjectBytes : kCopiedBytes) && !domain_->is_held_up();
}

ssize_t Endpoint::Post(const Transmit& transmit) {
  if (const ssize_t error = AwaitLink(transmit.peer); error != 0) return error;
  const Domain::Guard guard(domain_);
  if (transmit.vector.size() > kIoVectors || !IsMemory(transmit.vector)) return -FI_EINVAL;
  const size_t bytes = BytesOf(transmit.vector);
  const bool injected = (transmit.flags & FI_INJECT) != 0;
  if (traits_.datagram && (transmit.flags & (FI_TAGGED | FI_READ | FI_WRITE)) != 0) return -FI_EOPNOTSUPP;
  if (bytes > (traits_.datagram ? kMaxDatagramBytes : kMaxMessageBytes) || (injected && bytes > kInjectBytes))
    return -FI_EMSGSIZE;
  ssize_t error = 0;
  api::Connection* connection = Reach(transmit.peer, &error);
  if (connection == nullptr) return error;
  Operation* operation = NewOperation(transmit.context, transmit.flags, KindOf(transmit.flags));
  api::Buffer buffer = {.bytes = bytes};
  const bool ends_at_once = EndsAtOnce(*operation, bytes);
  if (injected || ends_at_once) {
    uint8_t* copy = operation->injected;
    if (bytes > sizeof(operation->injected)) {
      if (!domain_->TakeInjected(operation, bytes)) return Posted(PostResult::kTryAgain, operation, injected);
      copy = Stage(operation, bytes);
    }
    Gather(transmit.vector, copy);
    buffer.data = copy;
  } else if (transmit.vector.size() > 1) {
    buffer.data = Stage(operation, bytes);
    if ((transmit.flags & FI_READ) != 0) {
      operation->staging->to.assign(transmit.vector.begin(), transmit.vector.end());
    } else {
      Gather(transmit.vector, operation->staging->bytes.get());
    }
  } else if (!transmit.vector.empty()) {
    buffer.data = transmit.vector.front().iov_base;
  }
  const PostResult result = PostOn(*connection, transmit, buffer, operation, ends_at_once);
  if (result == PostResult::kOk && ends_at_once) {
    Tell(operation, {.status = api::OperationStatus::kOk});
    operation->told = true;
    if (!injected) domain_->Owe();
  }
  return Posted(result, operation, injected);
}

PostResult Endpoint::PostOn(api::Connection& connection, const Transmit& transmit, const api::Buffer& buffer,
                            Operation* operation, bool ends_at_once) {
  const auto user_data = reinterpret_cast<uint64_t>(operation);
  const bool has_data = (transmit.flags & FI_REMOTE_CQ_DATA) != 0;
  if ((transmit.flags & (FI_READ | FI_WRITE)) == 0) {
    const uint64_t tag = (transmit.flags & FI_TAGGED) != 0 ? transmit.tag & ~kUntagged : kUntagged;
    const auto data = has_data ? std::optional(transmit.data) : std::nullopt;
    if ((transmit.flags & FI_DELIVERY_COMPLETE) != 0) return connection.SendToReceive(buffer, tag, data, user_data);
    if (ends_at_once) return connection.SendCopied(buffer, tag, data, user_data);
    if (has_data) return connection.SendImmediate(buffer, tag, transmit.data, user_data);
    return connection.Send(buffer, tag, user_data);
  }
  const api::RemoteMemory remote = {.key = transmit.remote_key, .bytes = ~0ull};
  if ((transmit.flags & FI_READ) != 0) return connection.Read(buffer, remote, transmit.remote_offset, user_data);
  if (!has_data) return connection.Write(buffer, remote, transmit.remote_offset, user_data);
  return connection.WriteImmediate(buffer, remote, transmit.remote_offset, transmit.data, user_data);
}

ssize_t Endpoint::Post(const AtomicTransmit& transmit) {
  if (traits_.datagram) return -FI_EOPNOTSUPP;
  if (!IsMemory(transmit.operands) || !IsMemory(transmit.compares) || !IsMemory(transmit.results)) return -FI_EINVAL;
  if (const ssize_t error = AwaitLink(transmit.peer); error != 0) return error;
  const Domain::Guard guard(domain_);
  ssize_t error = 0;
  api::Connection* connection = Reach(transmit.peer, &error);
  if (connection == nullptr) return error;
  const uint64_t kind = FI_ATOMIC | (transmit.flags & (FI_READ | FI_WRITE));
  Operation* operation = NewOperation(transmit.context, transmit.flags, kind);
  // Requests may overtake one another on their way, so the next goes when this one has been carried out.
  if (traits_.ordered_atomics) {
    if (!atomics_under_way_.insert(connection->id()).second) return Posted(PostResult::kTryAgain, operation, false);
    operation->ordered_on = connection->id();
  }
  std::array<uint8_t, api::kMaxAtomicBytes> operands, compares;
  api::Atomic asked = {.op = transmit.op, .type = transmit.type, .elements = transmit.elements};
  if (!transmit.operands.empty()) asked.operands = InOnePiece(transmit.operands, operands);
  if (!transmit.compares.empty()) asked.compares = InOnePiece(transmit.compares, compares);
  if (transmit.results.size() == 1) {
    asked.results = transmit.results.front().iov_base;
  } else if (transmit.results.size() > 1) {
    asked.results = Stage(operation, transmit.elements * api::AtomicElementBytes(transmit.type));
    operation->staging->to.assign(transmit.results.begin(), transmit.results.end());
  }
  const api::RemoteMemory remote = {.key = transmit.remote_key, .bytes = ~0ull};
  const PostResult result =
      connection->PostAtomic(asked, remote, transmit.remote_offset, reinterpret_cast<uint64_t>(operation));
  return Posted(result, operation, (transmit.flags & FI_INJECT) != 0);
}

}  // namespace paceline::libfabric
