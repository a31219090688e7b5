#include "transport/lane/dpdk/dpdk_memif.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "transport/lane/dpdk/dpdk_device.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/udp/udp_mtu.h"

namespace paceline {
namespace {

constexpr size_t kMostPath = 107;               // of a unix socket
constexpr uint32_t kDefaultBufferBytes = 2048;  // the driver's

// An invalid descriptor: another process has it.
absl::StatusOr<FileDescriptor> Lock(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) file = FileDescriptor();
  return file;
}

}  // namespace

absl::StatusOr<std::string> OwnMemifFolder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && access(runtime, W_OK | X_OK) == 0) return std::string(runtime);
  const std::string folder = absl::StrCat("/tmp/paceline-", getuid());
  struct stat found {};
  if ((mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) || lstat(folder.c_str(), &found) != 0 ||
      !S_ISDIR(found.st_mode) || found.st_uid != getuid() || (found.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(folder, " is not a folder of this user's alone: remove it, or set XDG_RUNTIME_DIR"));
  }
  return folder;
}

uint32_t MemifBufferBytes(std::string_view arguments) {
  return DpdkDriverNumber(arguments, "bsize", kDefaultBufferBytes);
}

absl::StatusOr<MemifEnd> OpenMemifPair(uint32_t mtu) {
  static std::atomic<unsigned> made{0};
  const auto folder = OwnMemifFolder();
  if (!folder.ok()) return folder.status();
  const std::string socket = absl::StrCat(*folder, "/paceline-memif.sock");
  if (socket.size() > kMostPath) {
    return absl::InvalidArgumentError(absl::StrCat(socket, " is too long for a socket: set a shorter XDG_RUNTIME_DIR"));
  }
  const uint32_t frame_bytes = std::min(mtu, kJumboMtu) + kEthernetHeaderBytes;
  const uint32_t buffer_bytes = std::max(kDefaultBufferBytes, (frame_bytes + 63) / 64 * 64);
  for (const bool server : {true, false}) {
    const char* role = server ? "server" : "client";
    absl::StatusOr<FileDescriptor> lock = Lock(absl::StrCat(socket, ".", role));
    if (!lock.ok()) return lock.status();
    if (!lock->valid()) continue;
    if (server) unlink(socket.c_str());  // a process that was killed has left it behind
    return MemifEnd{
        absl::StrCat("net_memif_paceline", made++, ",role=", role, ",socket=", socket,
                     ",socket-abstract=no,bsize=", buffer_bytes, ",address=169.254.1.", server ? 1 : 2, "/16"),
        *std::move(lock)};
  }
  return absl::AlreadyExistsError(
      absl::StrCat("lane \"dpdk\" without a port is a memif between two processes, and both ends of ", socket,
                   " are taken: name ports (--device, PACELINE_BIND; docs/lanes/dpdk.md), or give each pair an "
                   "XDG_RUNTIME_DIR"));
}

}  // namespace paceline
