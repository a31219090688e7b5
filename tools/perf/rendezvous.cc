#include "tools/perf/rendezvous.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace paceline::tools {
namespace {

constexpr uint32_t kMaxFrame = 256u << 20;

}  // namespace

Rendezvous::Rendezvous(uint32_t rank, uint32_t world, std::vector<int> sockets)
    : rank_(rank), world_(world), sockets_(std::move(sockets)), idle_([] { usleep(100); }) {
  for (const int socket : sockets_) {
    if (socket >= 0) fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  }
}

Rendezvous::~Rendezvous() {
  for (const int socket : sockets_) {
    if (socket >= 0) close(socket);
  }
}

absl::StatusOr<std::vector<std::string>> Rendezvous::AllGather(const std::string& own) {
  std::vector<std::string> all(world_);
  if (rank_ != 0) {
    if (absl::Status status = SendFrame(sockets_[0], 0, own); !status.ok()) return status;
    for (uint32_t rank = 0; rank < world_; ++rank) {
      auto text = ReceiveFrame(sockets_[0], 0);
      if (!text.ok()) return text.status();
      all[rank] = *std::move(text);
    }
    return all;
  }
  all[0] = own;
  for (uint32_t rank = 1; rank < world_; ++rank) {
    auto text = ReceiveFrame(sockets_[rank], rank);
    if (!text.ok()) return text.status();
    all[rank] = *std::move(text);
  }
  for (uint32_t rank = 1; rank < world_; ++rank) {
    for (const std::string& text : all) {
      if (absl::Status status = SendFrame(sockets_[rank], rank, text); !status.ok()) return status;
    }
  }
  return all;
}

absl::Status Rendezvous::Barrier() { return AllGather("").status(); }

absl::Status Rendezvous::SendFrame(int socket, uint32_t peer, const std::string& text) {
  const auto length = static_cast<uint32_t>(text.size());
  std::string frame(reinterpret_cast<const char*>(&length), sizeof(length));
  frame += text;
  for (size_t at = 0; at < frame.size();) {
    const ssize_t sent = send(socket, frame.data() + at, frame.size() - at, MSG_NOSIGNAL);
    if (sent > 0) {
      at += static_cast<size_t>(sent);
    } else if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
      idle_();
    } else {
      return absl::UnavailableError(absl::StrCat("rank ", peer, " has gone away"));
    }
  }
  return absl::OkStatus();
}

absl::Status Rendezvous::ReceiveBytes(int socket, uint32_t peer, char* data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    const ssize_t got = recv(socket, data + at, bytes - at, 0);
    if (got > 0) {
      at += static_cast<size_t>(got);
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      idle_();
    } else {
      return absl::UnavailableError(absl::StrCat("rank ", peer, " has gone away"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Rendezvous::ReceiveFrame(int socket, uint32_t peer) {
  uint32_t length = 0;
  absl::Status status = ReceiveBytes(socket, peer, reinterpret_cast<char*>(&length), sizeof(length));
  if (!status.ok()) return status;
  if (length > kMaxFrame) return absl::FailedPreconditionError(absl::StrCat("rank ", peer, " is not a paceline perf"));
  std::string text(length, '\0');
  status = ReceiveBytes(socket, peer, text.data(), length);
  if (!status.ok()) return status;
  return text;
}

}  // namespace paceline::tools
