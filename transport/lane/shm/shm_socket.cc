#include "transport/lane/shm/shm_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

constexpr int kBacklog = 4096;
constexpr int kMostRings = 64;  // taken in at once
constexpr int kType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct UnixName {
  sockaddr_un address{};
  socklen_t size = 0;

  explicit UnixName(const ShmToken& token) {
    address.sun_family = AF_UNIX;
    const std::string name = SocketName(token);
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // a zero in front: the abstract namespace
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

bool SameUser(int fd) {
  ucred other{};
  socklen_t size = sizeof(other);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

}  // namespace

absl::StatusOr<FileDescriptor> ListenShm(const ShmToken& token) {
  FileDescriptor fd(socket(AF_UNIX, kType, 0));
  const UnixName name(token);
  if (!fd.valid() || bind(fd.get(), name.get(), name.size) != 0 || listen(fd.get(), kBacklog) != 0) {
    return absl::ErrnoToStatus(errno, "shm lane: cannot listen on a unix socket");
  }
  return fd;
}

FileDescriptor AcceptShm(const FileDescriptor& listener) {
  return FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

absl::StatusOr<FileDescriptor> ConnectShm(const ShmToken& token) {
  FileDescriptor fd(socket(AF_UNIX, kType, 0));
  const UnixName name(token);
  if (!fd.valid() || connect(fd.get(), name.get(), name.size) != 0) {
    return absl::ErrnoToStatus(errno == ECONNREFUSED ? ENOENT : errno,
                               absl::StrCat("shm lane: no socket ", SocketName(token), " on this host"));
  }
  if (!SameUser(fd.get())) return absl::PermissionDeniedError("shm lane: the peer is another user's process");
  return fd;
}

bool SendOffer(const FileDescriptor& connection, const ShmOffer& offer, const FileDescriptor& memory) {
  ShmOffer copy = offer;
  iovec vector{&copy, sizeof(copy)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = memory.get();
  std::memcpy(CMSG_DATA(entry), &fd, sizeof(fd));
  return sendmsg(connection.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(copy));
}

OfferState TakeOffer(const FileDescriptor& connection, ShmOffer* offer, FileDescriptor* memory) {
  if (!SameUser(connection.get())) return OfferState::kBad;
  iovec vector{offer, sizeof(*offer)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // room for one descriptor: the kernel closes what comes beyond
  const ssize_t got = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return OfferState::kWaiting;
  const cmsghdr* entry = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (entry != nullptr && entry->cmsg_level == SOL_SOCKET && entry->cmsg_type == SCM_RIGHTS &&
      entry->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(entry), sizeof(fd));
    *memory = FileDescriptor(fd);
  }
  const bool good = got == static_cast<ssize_t>(sizeof(*offer)) && memory->valid() &&
                    (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && offer->version == ShmOffer().version &&
                    offer->source_bytes <= LaneAddress::kMaxBytes;
  return good ? OfferState::kTaken : OfferState::kBad;
}

void Ring(const FileDescriptor& connection) {
  // Full of rings that nobody took in: then one more is not needed.
  [[maybe_unused]] const ssize_t sent = send(connection.get(), "", 1, MSG_NOSIGNAL);
}

bool TakeRings(const FileDescriptor& connection) {
  char byte;
  ssize_t got = 1;
  for (int i = 0; i < kMostRings && got > 0; ++i) got = recv(connection.get(), &byte, sizeof(byte), 0);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace paceline
