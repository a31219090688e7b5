#include "transport/lane/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace paceline {
namespace {

constexpr int kType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

// Calls `use` (bind or connect) on a new socket.
template <typename Use>
FileDescriptor Make(const UnixAddress& address, Use use) {
  sockaddr_un name{};
  if (address.name.size() >= sizeof(name.sun_path)) {
    errno = ENAMETOOLONG;
    return FileDescriptor();
  }
  name.sun_family = AF_UNIX;
  const size_t at = address.is_abstract ? 1 : 0;  // a zero in front: the abstract namespace
  std::memcpy(name.sun_path + at, address.name.data(), address.name.size());
  const size_t bytes =
      address.is_abstract ? offsetof(sockaddr_un, sun_path) + at + address.name.size() : sizeof(sockaddr_un);
  FileDescriptor fd(socket(AF_UNIX, kType, 0));
  if (fd.valid() && use(fd.get(), reinterpret_cast<const sockaddr*>(&name), static_cast<socklen_t>(bytes)) != 0) {
    const int error = errno;
    fd = FileDescriptor();
    errno = error;
  }
  return fd;
}

}  // namespace

FileDescriptor ListenUnix(const UnixAddress& address, int backlog) {
  return Make(address, [backlog](int fd, const sockaddr* name, socklen_t bytes) {
    return bind(fd, name, bytes) != 0 ? -1 : listen(fd, backlog);
  });
}

FileDescriptor ConnectUnix(const UnixAddress& address) { return Make(address, connect); }

FileDescriptor AcceptUnix(const FileDescriptor& listener) {
  return FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

bool SendUnixMessage(const FileDescriptor& connection, std::span<const uint8_t> message,
                     const FileDescriptor& descriptor) {
  iovec vector{const_cast<uint8_t*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  if (descriptor.valid()) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* entry = CMSG_FIRSTHDR(&header);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = descriptor.get();
    std::memcpy(CMSG_DATA(entry), &fd, sizeof(fd));
  }
  return sendmsg(connection.get(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

UnixMessage TakeUnixMessage(const FileDescriptor& connection, std::span<uint8_t> room) {
  UnixMessage message;
  iovec vector{room.data(), room.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_LEN(sizeof(int));  // room for one descriptor: the kernel closes what comes beyond
  const ssize_t got = recvmsg(connection.get(), &header, MSG_CMSG_CLOEXEC);
  if (got < 0) {
    message.state = errno == EAGAIN || errno == EINTR ? UnixMessage::State::kWaiting : UnixMessage::State::kEnd;
    return message;
  }
  const cmsghdr* entry = CMSG_FIRSTHDR(&header);
  if (entry != nullptr && entry->cmsg_level == SOL_SOCKET && entry->cmsg_type == SCM_RIGHTS &&
      entry->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(entry), sizeof(fd));
    message.descriptor = FileDescriptor(fd);
  }
  const bool is_whole = got > 0 && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  message.state = is_whole ? UnixMessage::State::kTaken : UnixMessage::State::kEnd;
  message.bytes = static_cast<size_t>(got);
  return message;
}

}  // namespace paceline
