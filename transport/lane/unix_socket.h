// Unix sockets that keep messages apart (SOCK_SEQPACKET), over which processes of one host hand each other memory.
//
// Thread rule: functions without state. None blocks. Errors of a call are in errno.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "transport/lane/file_descriptor.h"

namespace paceline {

struct UnixAddress {
  std::string_view name;  // 107 bytes at most
  bool is_abstract = false;
};

// Not valid: it cannot be had (EADDRINUSE: another listens there or, where it is a file, has listened; ENAMETOOLONG).
FileDescriptor ListenUnix(const UnixAddress& address, int backlog);
// Not valid: nobody listens (ECONNREFUSED; ENOENT where it is a file), or too many wait there (EAGAIN).
FileDescriptor ConnectUnix(const UnixAddress& address);
// Not valid: nobody waits (EAGAIN), or who waits cannot be taken in (EMFILE and the like).
FileDescriptor AcceptUnix(const FileDescriptor& listener);

// With a descriptor beside it, unless that is not valid. False: the message has not gone, as the other end has (EPIPE)
// or takes no more for now (EAGAIN).
bool SendUnixMessage(const FileDescriptor& connection, std::span<const uint8_t> message,
                     const FileDescriptor& descriptor);

struct UnixMessage {
  // kEnd: the other end has gone, or has sent nothing at all or more than there is room for.
  enum class State : uint8_t { kWaiting, kTaken, kEnd };
  State state = State::kWaiting;
  size_t bytes = 0;
  FileDescriptor descriptor;  // not valid: none came with it
};
UnixMessage TakeUnixMessage(const FileDescriptor& connection, std::span<uint8_t> room);

}  // namespace paceline
