// libfabric's calls for messages without tags.
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

Endpoint* Of(fid_ep* endpoint) { return static_cast<Endpoint*>(endpoint); }

ssize_t Receive(fid_ep* endpoint, void* buffer, size_t bytes, void*, fi_addr_t peer, void* context) {
  return Of(endpoint)->Post(Endpoint::Receive{.buffer = buffer,
                                              .bytes = bytes,
                                              .peer = peer,
                                              .context = context,
                                              .flags = Of(endpoint)->receive_flags() | FI_MSG});
}

ssize_t ReceiveVector(fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, void* context) {
  if (count > 1) return -FI_EINVAL;
  const iovec one = count == 0 ? iovec{} : *vector;
  return Receive(endpoint, one.iov_base, one.iov_len, nullptr, peer, context);
}

ssize_t ReceiveMessage(fid_ep* endpoint, const fi_msg* message, uint64_t flags) {
  if (message->iov_count > 1) return -FI_EINVAL;
  const iovec one = message->iov_count == 0 ? iovec{} : *message->msg_iov;
  return Of(endpoint)->Post(Endpoint::Receive{.buffer = one.iov_base,
                                              .bytes = one.iov_len,
                                              .peer = message->addr,
                                              .context = message->context,
                                              .flags = flags | FI_MSG});
}

ssize_t Send(fid_ep* endpoint, const void* buffer, size_t bytes, void*, fi_addr_t peer, void* context) {
  return Of(endpoint)->Post(Endpoint::Transmit{.buffer = buffer,
                                               .bytes = bytes,
                                               .peer = peer,
                                               .context = context,
                                               .flags = Of(endpoint)->transmit_flags() | FI_MSG});
}

ssize_t SendVector(fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, void* context) {
  if (count > 1) return -FI_EINVAL;
  const iovec one = count == 0 ? iovec{} : *vector;
  return Send(endpoint, one.iov_base, one.iov_len, nullptr, peer, context);
}

ssize_t SendMessage(fid_ep* endpoint, const fi_msg* message, uint64_t flags) {
  if (message->iov_count > 1) return -FI_EINVAL;
  const iovec one = message->iov_count == 0 ? iovec{} : *message->msg_iov;
  return Of(endpoint)->Post(Endpoint::Transmit{.buffer = one.iov_base,
                                               .bytes = one.iov_len,
                                               .peer = message->addr,
                                               .context = message->context,
                                               .flags = flags | FI_MSG,
                                               .data = message->data});
}

ssize_t Inject(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t peer) {
  return Of(endpoint)->Post(
      Endpoint::Transmit{.buffer = buffer, .bytes = bytes, .peer = peer, .flags = FI_MSG | FI_INJECT | kSilent});
}

ssize_t SendData(fid_ep* endpoint, const void* buffer, size_t bytes, void*, uint64_t data, fi_addr_t peer,
                 void* context) {
  return Of(endpoint)->Post(Endpoint::Transmit{.buffer = buffer,
                                               .bytes = bytes,
                                               .peer = peer,
                                               .context = context,
                                               .flags = Of(endpoint)->transmit_flags() | FI_MSG | FI_REMOTE_CQ_DATA,
                                               .data = data});
}

ssize_t InjectData(fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t peer) {
  return Of(endpoint)->Post(Endpoint::Transmit{.buffer = buffer,
                                               .bytes = bytes,
                                               .peer = peer,
                                               .flags = FI_MSG | FI_INJECT | FI_REMOTE_CQ_DATA | kSilent,
                                               .data = data});
}

}  // namespace

fi_ops_msg message_calls = {.size = sizeof(fi_ops_msg),
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
