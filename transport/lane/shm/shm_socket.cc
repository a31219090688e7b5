#include "transport/lane/shm/shm_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/lane/unix_socket.h"

namespace paceline {
namespace {

constexpr int kBacklog = 4096;
constexpr int kMostRings = 64;  // taken in at once

bool SameUser(int fd) {
  ucred other{};
  socklen_t size = sizeof(other);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

}  // namespace

absl::StatusOr<FileDescriptor> ListenShm(const ShmToken& token) {
  FileDescriptor fd = ListenUnix({SocketName(token), true}, kBacklog);
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "shm lane: cannot listen on a unix socket");
  return fd;
}

absl::StatusOr<FileDescriptor> ConnectShm(const ShmToken& token) {
  const std::string name = SocketName(token);
  FileDescriptor fd = ConnectUnix({name, true});
  if (!fd.valid()) {
    return absl::ErrnoToStatus(errno == ECONNREFUSED ? ENOENT : errno,
                               absl::StrCat("shm lane: no socket ", name, " on this host"));
  }
  if (!SameUser(fd.get())) return absl::PermissionDeniedError("shm lane: the peer is another user's process");
  return fd;
}

bool SendOffer(const FileDescriptor& connection, const ShmOffer& offer, const FileDescriptor& memory) {
  return SendUnixMessage(connection, {reinterpret_cast<const uint8_t*>(&offer), sizeof(offer)}, memory);
}

OfferState TakeOffer(const FileDescriptor& connection, ShmOffer* offer, FileDescriptor* memory) {
  if (!SameUser(connection.get())) return OfferState::kBad;
  UnixMessage message = TakeUnixMessage(connection, {reinterpret_cast<uint8_t*>(offer), sizeof(*offer)});
  if (message.state == UnixMessage::State::kWaiting) return OfferState::kWaiting;
  const bool good = message.state == UnixMessage::State::kTaken && message.bytes == sizeof(*offer) &&
                    message.descriptor.valid() && offer->version == ShmOffer().version &&
                    offer->source_bytes <= LaneAddress::kMaxBytes;
  *memory = std::move(message.descriptor);
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
