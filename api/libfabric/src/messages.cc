// libfabric's calls for messages, with and without tags: each fills in what it has of a Transmit or a Receive.
#include "api/libfabric/src/deferred.h"
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

// What calls with and without a tag have in common; `kind`: FI_MSG or FI_TAGGED.
struct Tag {
  uint64_t kind = FI_MSG;
  uint64_t tag = 0;
  uint64_t ignore = 0;
};
constexpr Tag kNoTag;
Tag Tagged(uint64_t tag, uint64_t ignore = 0) { return {.kind = FI_TAGGED, .tag = tag, .ignore = ignore}; }

// The call again, as libfabric's structure of it, when its counter is there.
ssize_t Await(fid_ep* endpoint, Vector vector, fi_addr_t peer, const Tag& tag, void* context, uint64_t flags,
              uint64_t data, bool sends) {
  const uint64_t kind = (sends ? FI_SEND : FI_RECV) | tag.kind;
  if (tag.kind == FI_TAGGED) {
    const fi_msg_tagged message = {.msg_iov = vector.data(),
                                   .iov_count = vector.size(),
                                   .addr = peer,
                                   .tag = tag.tag,
                                   .ignore = tag.ignore,
                                   .context = context,
                                   .data = data};
    return Trigger(endpoint, message, flags, sends ? SendTaggedMessage : ReceiveTaggedMessage, kind);
  }
  const fi_msg message = {
      .msg_iov = vector.data(), .iov_count = vector.size(), .addr = peer, .context = context, .data = data};
  return Trigger(endpoint, message, flags, sends ? SendMessage : ReceiveMessage, kind);
}

ssize_t PostReceive(fid_ep* endpoint, Vector vector, fi_addr_t peer, const Tag& tag, void* context, uint64_t flags) {
  if (tag.kind == FI_TAGGED) flags &= ~FI_MULTI_RECV;
  if ((flags & FI_TRIGGER) != 0) return Await(endpoint, vector, peer, tag, context, flags, 0, false);
  return FidOf(endpoint)->endpoint->Post(Endpoint::Receive{.vector = vector,
                                                           .peer = peer,
                                                           .context = context,
                                                           .flags = flags | tag.kind,
                                                           .tag = tag.tag,
                                                           .ignore = tag.ignore});
}

ssize_t PostReceive(fid_ep* endpoint, void* buffer, size_t bytes, fi_addr_t peer, const Tag& tag, void* context) {
  const iovec one = {.iov_base = buffer, .iov_len = bytes};
  return PostReceive(endpoint, {&one, 1}, peer, tag, context, FidOf(endpoint)->receive_flags);
}

ssize_t PostSend(fid_ep* endpoint, Vector vector, fi_addr_t peer, const Tag& tag, void* context, uint64_t flags,
                 uint64_t data) {
  if ((flags & FI_TRIGGER) != 0) return Await(endpoint, vector, peer, tag, context, flags, data, true);
  return FidOf(endpoint)->endpoint->Post(Endpoint::Transmit{
      .vector = vector, .peer = peer, .context = context, .flags = flags | tag.kind, .data = data, .tag = tag.tag});
}

ssize_t PostSend(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t peer, const Tag& tag, void* context,
                 uint64_t flags, uint64_t data = 0) {
  const iovec one = {.iov_base = const_cast<void*>(buffer), .iov_len = bytes};
  return PostSend(endpoint, {&one, 1}, peer, tag, context, flags, data);
}

uint64_t Default(fid_ep* endpoint) { return FidOf(endpoint)->transmit_flags; }
constexpr uint64_t kInjected = FI_INJECT | kSilent;

}  // namespace

ssize_t ReceiveMessage(fid_ep* endpoint, const fi_msg* message, uint64_t flags) {
  return PostReceive(endpoint, {message->msg_iov, message->iov_count}, message->addr, kNoTag, message->context, flags);
}

ssize_t SendMessage(fid_ep* endpoint, const fi_msg* message, uint64_t flags) {
  return PostSend(endpoint, {message->msg_iov, message->iov_count}, message->addr, kNoTag, message->context, flags,
                  message->data);
}

ssize_t ReceiveTaggedMessage(fid_ep* endpoint, const fi_msg_tagged* message, uint64_t flags) {
  return PostReceive(endpoint, {message->msg_iov, message->iov_count}, message->addr,
                     Tagged(message->tag, message->ignore), message->context, flags);
}

ssize_t SendTaggedMessage(fid_ep* endpoint, const fi_msg_tagged* message, uint64_t flags) {
  return PostSend(endpoint, {message->msg_iov, message->iov_count}, message->addr, Tagged(message->tag),
                  message->context, flags, message->data);
}

fi_ops_msg message_calls = {
    .size = sizeof(fi_ops_msg),
    .recv = [](fid_ep* endpoint, void* buffer, size_t bytes, void*, fi_addr_t peer,
               void* context) { return PostReceive(endpoint, buffer, bytes, peer, kNoTag, context); },
    .recvv =
        [](fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, void* context) {
          return PostReceive(endpoint, {vector, count}, peer, kNoTag, context, FidOf(endpoint)->receive_flags);
        },
    .recvmsg = ReceiveMessage,
    .send = [](fid_ep* endpoint, const void* buffer, size_t bytes, void*, fi_addr_t peer,
               void* context) { return PostSend(endpoint, buffer, bytes, peer, kNoTag, context, Default(endpoint)); },
    .sendv =
        [](fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, void* context) {
          return PostSend(endpoint, {vector, count}, peer, kNoTag, context, Default(endpoint), 0);
        },
    .sendmsg = SendMessage,
    .inject = [](fid_ep* endpoint, const void* buffer, size_t bytes,
                 fi_addr_t peer) { return PostSend(endpoint, buffer, bytes, peer, kNoTag, nullptr, kInjected); },
    .senddata =
        [](fid_ep* endpoint, const void* buffer, size_t bytes, void*, uint64_t data, fi_addr_t peer, void* context) {
          const uint64_t flags = Default(endpoint) | FI_REMOTE_CQ_DATA;
          return PostSend(endpoint, buffer, bytes, peer, kNoTag, context, flags, data);
        },
    .injectdata =
        [](fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t peer) {
          return PostSend(endpoint, buffer, bytes, peer, kNoTag, nullptr, kInjected | FI_REMOTE_CQ_DATA, data);
        },
};

fi_ops_tagged tagged_calls = {
    .size = sizeof(fi_ops_tagged),
    .recv = [](fid_ep* endpoint, void* buffer, size_t bytes, void*, fi_addr_t peer, uint64_t tag, uint64_t ignore,
               void* context) { return PostReceive(endpoint, buffer, bytes, peer, Tagged(tag, ignore), context); },
    .recvv =
        [](fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, uint64_t tag, uint64_t ignore,
           void* context) {
          const uint64_t flags = FidOf(endpoint)->receive_flags;
          return PostReceive(endpoint, {vector, count}, peer, Tagged(tag, ignore), context, flags);
        },
    .recvmsg = ReceiveTaggedMessage,
    .send =
        [](fid_ep* endpoint, const void* buffer, size_t bytes, void*, fi_addr_t peer, uint64_t tag, void* context) {
          return PostSend(endpoint, buffer, bytes, peer, Tagged(tag), context, Default(endpoint));
        },
    .sendv =
        [](fid_ep* endpoint, const iovec* vector, void**, size_t count, fi_addr_t peer, uint64_t tag, void* context) {
          return PostSend(endpoint, {vector, count}, peer, Tagged(tag), context, Default(endpoint), 0);
        },
    .sendmsg = SendTaggedMessage,
    .inject = [](fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t peer,
                 uint64_t tag) { return PostSend(endpoint, buffer, bytes, peer, Tagged(tag), nullptr, kInjected); },
    .senddata =
        [](fid_ep* endpoint, const void* buffer, size_t bytes, void*, uint64_t data, fi_addr_t peer, uint64_t tag,
           void* context) {
          const uint64_t flags = Default(endpoint) | FI_REMOTE_CQ_DATA;
          return PostSend(endpoint, buffer, bytes, peer, Tagged(tag), context, flags, data);
        },
    .injectdata =
        [](fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t peer, uint64_t tag) {
          return PostSend(endpoint, buffer, bytes, peer, Tagged(tag), nullptr, kInjected | FI_REMOTE_CQ_DATA, data);
        },
};

}  // namespace paceline::libfabric
