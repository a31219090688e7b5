// libfabric's calls for tagged messages.
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

Endpoint* Of(fid_ep* endpoint) { return static_cast<Endpoint*>(endpoint); }

ssize_t Receive(fid_ep* endpoint, void* buffer, size_t bytes, void*, fi_addr_t peer, uint64_t tag, uint64_t ignore,
                void* context) {
  return Of(endpoint)->Post(Endpoint::Receive{.buffer = buffer,
                                              .bytes = bytes,
                                              .peer = peer,
                                              .context = context,
                                              .flags = (Of(endpoint)->receive_flags() & ~FI_MULTI_RECV) | FI_TAGGED,
                                              .tag = tag,
                                              .ignore = ignore});
}

ssize_t ReceiveVector(fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, uint64_t tag,
                      uint64_t ignore, void* context) {
  if (count > 1) return -FI_EINVAL;
  const iovec one = count == 0 ? iovec{} : *vector;
  return Receive(endpoint, one.iov_base, one.iov_len, nullptr, peer, tag, ignore, context);
}

ssize_t ReceiveMessage(fid_ep* endpoint, const fi_msg_tagged* message, uint64_t flags) {
  if (message->iov_count > 1) return -FI_EINVAL;
  const iovec one = message->iov_count == 0 ? iovec{} : *message->msg_iov;
  return Of(endpoint)->Post(Endpoint::Receive{.buffer = one.iov_base,
                                              .bytes = one.iov_len,
                                              .peer = message->addr,
                                              .context = message->context,
                                              .flags = flags | FI_TAGGED,
                                              .tag = message->tag,
                                              .ignore = message->ignore});
}

ssize_t Send(fid_ep* endpoint, const void* buffer, size_t bytes, void*, fi_addr_t peer, uint64_t tag, void* context) {
  return Of(endpoint)->Post(Endpoint::Transmit{.buffer = buffer,
                                               .bytes = bytes,
                                               .peer = peer,
                                               .context = context,
                                               .flags = Of(endpoint)->transmit_flags() | FI_TAGGED,
                                               .tag = tag});
}

ssize_t SendVector(fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, uint64_t tag,
                   void* context) {
  if (count > 1) return -FI_EINVAL;
  const iovec one = count == 0 ? iovec{} : *vector;
  return Send(endpoint, one.iov_base, one.iov_len, nullptr, peer, tag, context);
}

ssize_t SendMessage(fid_ep* endpoint, const fi_msg_tagged* message, uint64_t flags) {
  if (message->iov_count > 1) return -FI_EINVAL;
  const iovec one = message->iov_count == 0 ? iovec{} : *message->msg_iov;
  return Of(endpoint)->Post(Endpoint::Transmit{.buffer = one.iov_base,
                                               .bytes = one.iov_len,
                                               .peer = message->addr,
                                               .context = message->context,
                                               .flags = flags | FI_TAGGED,
                                               .data = message->data,
                                               .tag = message->tag});
}

ssize_t Inject(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t peer, uint64_t tag) {
  return Of(endpoint)->Post(Endpoint::Transmit{
      .buffer = buffer, .bytes = bytes, .peer = peer, .flags = FI_TAGGED | FI_INJECT | kSilent, .tag = tag});
}

ssize_t SendData(fid_ep* endpoint, const void* buffer, size_t bytes, void*, uint64_t data, fi_addr_t peer, uint64_t tag,
                 void* context) {
  return Of(endpoint)->Post(Endpoint::Transmit{.buffer = buffer,
                                               .bytes = bytes,
                                               .peer = peer,
                                               .context = context,
                                               .flags = Of(endpoint)->transmit_flags() | FI_TAGGED | FI_REMOTE_CQ_DATA,
                                               .data = data,
                                               .tag = tag});
}

ssize_t InjectData(fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t peer, uint64_t tag) {
  return Of(endpoint)->Post(Endpoint::Transmit{.buffer = buffer,
                                               .bytes = bytes,
                                               .peer = peer,
                                               .flags = FI_TAGGED | FI_INJECT | FI_REMOTE_CQ_DATA | kSilent,
                                               .data = data,
                                               .tag = tag});
}

}  // namespace

fi_ops_tagged tagged_calls = {.size = sizeof(fi_ops_tagged),
                              .recv = Receive,
                              .recvv = ReceiveVector,
                              .recvmsg = ReceiveMessage,
                              .send = Send,
                              .sendv = SendVector,
                              .sendmsg = SendMessage,
                              .inject = Inject,
                              .senddata = SendData,
                              .injectdata = InjectData};

}  // namespace paceline::libfabric
