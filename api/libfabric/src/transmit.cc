// Sends, writes and reads of an endpoint.
#include <cstring>

#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

uint64_t KindOf(uint64_t flags) {
  if ((flags & FI_READ) != 0) return FI_READ | FI_RMA;
  if ((flags & FI_WRITE) != 0) return FI_WRITE | FI_RMA;
  return FI_SEND | (flags & (FI_MSG | FI_TAGGED));
}

}  // namespace

ssize_t Endpoint::Post(const Transmit& transmit) {
  const Domain::Guard guard(domain_);
  if (!enabled_) return -FI_EOPBADSTATE;
  if (transmit.bytes > kMaxMessageBytes) return -FI_EMSGSIZE;
  const bool injected = (transmit.flags & FI_INJECT) != 0;
  if (injected && transmit.bytes > kInjectBytes) return -FI_EMSGSIZE;
  ssize_t error = 0;
  api::Connection* connection = links_.Reach(transmit.peer, &error);
  if (connection == nullptr) {
    domain_->Progress();  // who posts again and again makes the connection come
    return error;
  }
  Operation* operation = NewOperation(transmit_queue_, transmit.context, transmit.flags, KindOf(transmit.flags));
  Transmit copy = transmit;
  if (injected) copy.buffer = std::memcpy(operation->injected, transmit.buffer, transmit.bytes);
  const PostResult result = PostOn(*connection, copy, operation);
  if (result == PostResult::kOk) {
    // Nobody waits for its completion, so perhaps nobody moves data for a while: it leaves now.
    if (injected) domain_->paceline().Progress();
    return 0;
  }
  Release(operation);
  // A connection that has ended: the next attempt makes a new one.
  if (result == PostResult::kTryAgain || result == PostResult::kNotConnected) {
    domain_->Progress();
    return -FI_EAGAIN;
  }
  return ResultOf(result);
}

PostResult Endpoint::PostOn(api::Connection& connection, const Transmit& transmit, Operation* operation) {
  const api::Buffer buffer = {.data = const_cast<void*>(transmit.buffer), .bytes = transmit.bytes};
  const auto user_data = reinterpret_cast<uint64_t>(operation);
  const bool has_data = (transmit.flags & FI_REMOTE_CQ_DATA) != 0;
  if ((transmit.flags & (FI_READ | FI_WRITE)) == 0) {
    const uint64_t tag = (transmit.flags & FI_TAGGED) != 0 ? transmit.tag & ~kUntagged : kUntagged;
    if (has_data) return connection.SendImmediate(buffer, tag, transmit.data, user_data);
    return connection.Send(buffer, tag, user_data);
  }
  const api::RemoteMemory remote = {.key = transmit.remote_key, .bytes = ~0ull};
  if ((transmit.flags & FI_READ) != 0) return connection.Read(buffer, remote, transmit.remote_offset, user_data);
  if (!has_data) return connection.Write(buffer, remote, transmit.remote_offset, user_data);
  return connection.WriteImmediate(buffer, remote, transmit.remote_offset, transmit.data, user_data);
}

}  // namespace paceline::libfabric
