// Whether this machine and this process can have xdp lanes, without making one.
#include <sys/socket.h>

#include <cerrno>

#include "transport/lane/file_descriptor.h"
#include "transport/lane/xdp/xdp_lane.h"
#include "transport/lane/xdp/xdp_library.h"
#include "transport/lane/xdp/xdp_program.h"

namespace paceline {

absl::Status CheckXdpLane() {
  const absl::StatusOr<const XdpLibrary*> library = LoadXdpLibrary();
  if (!library.ok()) return library.status();
  const FileDescriptor fd(socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!fd.valid()) {
    if (errno == EAFNOSUPPORT) return absl::UnimplementedError("the kernel has no AF_XDP (CONFIG_XDP_SOCKETS)");
    if (errno == EPERM) return absl::PermissionDeniedError("needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run as root");
    return absl::ErrnoToStatus(errno, "cannot open an AF_XDP socket");
  }
  return XdpProgram::Check(**library);
}

}  // namespace paceline
