// libfabric's calls for one-sided operations.
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

Endpoint* Of(fid_ep* endpoint) { return static_cast<Endpoint*>(endpoint); }

ssize_t PostMessage(fid_ep* endpoint, const fi_msg_rma& message, uint64_t flags) {
  if (message.iov_count > 1 || message.rma_iov_count != 1) return -FI_EINVAL;
  const iovec local = message.iov_count == 0 ? iovec{} : *message.msg_iov;
  if (local.iov_len != message.rma_iov->len) return -FI_EINVAL;
  return Of(endpoint)->Post(Endpoint::Transmit{.buffer = local.iov_base,
                                               .bytes = local.iov_len,
                                               .peer = message.addr,
                                               .context = message.context,
                                               .flags = flags,
                                               .data = message.data,
                                               .remote_offset = message.rma_iov->addr,
                                               .remote_key = message.rma_iov->key});
}

ssize_t PostOne(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t peer, uint64_t address, uint64_t key,
                void* context, uint64_t flags, uint64_t data) {
  const iovec local = {.iov_base = const_cast<void*>(buffer), .iov_len = bytes};
  const fi_rma_iov remote = {.addr = address, .len = bytes, .key = key};
  const fi_msg_rma message = {.msg_iov = &local,
                              .iov_count = 1,
                              .addr = peer,
                              .rma_iov = &remote,
                              .rma_iov_count = 1,
                              .context = context,
                              .data = data};
  return PostMessage(endpoint, message, flags);
}

ssize_t Read(fid_ep* endpoint, void* buffer, size_t bytes, void*, fi_addr_t peer, uint64_t address, uint64_t key,
             void* context) {
  const uint64_t flags = (Of(endpoint)->transmit_flags() & ~FI_INJECT) | FI_READ;
  return PostOne(endpoint, buffer, bytes, peer, address, key, context, flags, 0);
}

ssize_t ReadVector(fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, uint64_t address,
                   uint64_t key, void* context) {
  if (count > 1) return -FI_EINVAL;
  const iovec one = count == 0 ? iovec{} : *vector;
  return Read(endpoint, one.iov_base, one.iov_len, nullptr, peer, address, key, context);
}

ssize_t ReadMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  return PostMessage(endpoint, *message, (flags & ~FI_INJECT) | FI_READ);
}

ssize_t Write(fid_ep* endpoint, const void* buffer, size_t bytes, void*, fi_addr_t peer, uint64_t address, uint64_t key,
              void* context) {
  return PostOne(endpoint, buffer, bytes, peer, address, key, context, Of(endpoint)->transmit_flags() | FI_WRITE, 0);
}

ssize_t WriteVector(fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, uint64_t address,
                    uint64_t key, void* context) {
  if (count > 1) return -FI_EINVAL;
  const iovec one = count == 0 ? iovec{} : *vector;
  return Write(endpoint, one.iov_base, one.iov_len, nullptr, peer, address, key, context);
}

ssize_t WriteMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  return PostMessage(endpoint, *message, flags | FI_WRITE);
}

ssize_t Inject(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t peer, uint64_t address, uint64_t key) {
  return PostOne(endpoint, buffer, bytes, peer, address, key, nullptr, FI_WRITE | FI_INJECT | kSilent, 0);
}

ssize_t WriteData(fid_ep* endpoint, const void* buffer, size_t bytes, void*, uint64_t data, fi_addr_t peer,
                  uint64_t address, uint64_t key, void* context) {
  const uint64_t flags = Of(endpoint)->transmit_flags() | FI_WRITE | FI_REMOTE_CQ_DATA;
  return PostOne(endpoint, buffer, bytes, peer, address, key, context, flags, data);
}

ssize_t InjectData(fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t peer, uint64_t address,
                   uint64_t key) {
  constexpr uint64_t kFlags = FI_WRITE | FI_INJECT | FI_REMOTE_CQ_DATA | kSilent;
  return PostOne(endpoint, buffer, bytes, peer, address, key, nullptr, kFlags, data);
}

}  // namespace

fi_ops_rma rma_calls = {.size = sizeof(fi_ops_rma),
                        .read = Read,
                        .readv = ReadVector,
                        .readmsg = ReadMessage,
                        .write = Write,
                        .writev = WriteVector,
                        .writemsg = WriteMessage,
                        .inject = Inject,
                        .writedata = WriteData,
                        .injectdata = InjectData};

}  // namespace paceline::libfabric
