// libfabric's calls for one-sided operations.
#include "api/libfabric/src/deferred.h"
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

// `flags`: with FI_READ or FI_WRITE.
ssize_t PostMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  if ((flags & FI_TRIGGER) != 0) {
    return Trigger(endpoint, *message, flags, PostMessage, FI_RMA | (flags & (FI_READ | FI_WRITE)));
  }
  if (message->rma_iov_count != 1) return -FI_EINVAL;
  const Vector local(message->msg_iov, message->iov_count);
  if (BytesOf(local) != message->rma_iov->len) return -FI_EINVAL;
  return FidOf(endpoint)->endpoint->Post(Endpoint::Transmit{.vector = local,
                                                            .peer = message->addr,
                                                            .context = message->context,
                                                            .flags = flags,
                                                            .data = message->data,
                                                            .remote_offset = message->rma_iov->addr,
                                                            .remote_key = message->rma_iov->key});
}

ssize_t PostVector(fid_ep* endpoint, Vector local, fi_addr_t peer, uint64_t address, uint64_t key, void* context,
                   uint64_t flags, uint64_t data = 0) {
  const fi_rma_iov remote = {.addr = address, .len = BytesOf(local), .key = key};
  const fi_msg_rma message = {.msg_iov = local.data(),
                              .iov_count = local.size(),
                              .addr = peer,
                              .rma_iov = &remote,
                              .rma_iov_count = 1,
                              .context = context,
                              .data = data};
  return PostMessage(endpoint, &message, flags);
}

ssize_t PostOne(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t peer, uint64_t address, uint64_t key,
                void* context, uint64_t flags, uint64_t data = 0) {
  const iovec local = {.iov_base = const_cast<void*>(buffer), .iov_len = bytes};
  return PostVector(endpoint, {&local, 1}, peer, address, key, context, flags, data);
}

uint64_t ReadFlags(fid_ep* endpoint) { return (FidOf(endpoint)->transmit_flags & ~FI_INJECT) | FI_READ; }
uint64_t WriteFlags(fid_ep* endpoint) { return FidOf(endpoint)->transmit_flags | FI_WRITE; }

}  // namespace

ssize_t ReadMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  return PostMessage(endpoint, message, (flags & ~FI_INJECT) | FI_READ);
}

ssize_t WriteMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  return PostMessage(endpoint, message, flags | FI_WRITE);
}

fi_ops_rma rma_calls = {
    .size = sizeof(fi_ops_rma),
    .read =
        [](fid_ep* endpoint, void* buffer, size_t bytes, void*, fi_addr_t peer, uint64_t address, uint64_t key,
           void* context) {
          return PostOne(endpoint, buffer, bytes, peer, address, key, context, ReadFlags(endpoint));
        },
    .readv =
        [](fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, uint64_t address, uint64_t key,
           void* context) {
          return PostVector(endpoint, {vector, count}, peer, address, key, context, ReadFlags(endpoint));
        },
    .readmsg = ReadMessage,
    .write =
        [](fid_ep* endpoint, const void* buffer, size_t bytes, void*, fi_addr_t peer, uint64_t address, uint64_t key,
           void* context) {
          return PostOne(endpoint, buffer, bytes, peer, address, key, context, WriteFlags(endpoint));
        },
    .writev =
        [](fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, uint64_t address, uint64_t key,
           void* context) {
          return PostVector(endpoint, {vector, count}, peer, address, key, context, WriteFlags(endpoint));
        },
    .writemsg = WriteMessage,
    .inject =
        [](fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t peer, uint64_t address, uint64_t key) {
          return PostOne(endpoint, buffer, bytes, peer, address, key, nullptr, FI_WRITE | FI_INJECT | kSilent);
        },
    .writedata =
        [](fid_ep* endpoint, const void* buffer, size_t bytes, void*, uint64_t data, fi_addr_t peer, uint64_t address,
           uint64_t key, void* context) {
          const uint64_t flags = WriteFlags(endpoint) | FI_REMOTE_CQ_DATA;
          return PostOne(endpoint, buffer, bytes, peer, address, key, context, flags, data);
        },
    .injectdata =
        [](fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t peer, uint64_t address,
           uint64_t key) {
          constexpr uint64_t kFlags = FI_WRITE | FI_INJECT | FI_REMOTE_CQ_DATA | kSilent;
          return PostOne(endpoint, buffer, bytes, peer, address, key, nullptr, kFlags, data);
        },
};

}  // namespace paceline::libfabric
