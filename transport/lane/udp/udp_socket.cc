#include "transport/lane/udp/udp_socket.h"

#include <linux/filter.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

constexpr int kEct0 = 2;  // RFC 3168: ECN-capable transport, codepoint 0

bool SetOption(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

// Asks as the administrator first: that may exceed net.core.rmem_max and wmem_max.
void SetBuffer(int fd, int forced, int plain, size_t bytes) {
  const int value = static_cast<int>(std::min<size_t>(bytes, 1u << 30));
  if (!SetOption(fd, SOL_SOCKET, forced, value)) SetOption(fd, SOL_SOCKET, plain, value);
}

absl::Status BindError(int error, const UdpSocketOptions& options) {
  const std::string where = FormatLaneAddress(FromSocketAddress(options.address, true));
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(
        absl::StrCat("UDP port of ", where, " is in use; choose another one, or 0 for any free one"));
  }
  if (error == EACCES) {
    return absl::PermissionDeniedError(absl::StrCat("UDP port of ", where, " needs privilege; choose one above 1023"));
  }
  return absl::ErrnoToStatus(error, absl::StrCat("cannot bind a UDP socket to ", where));
}

// The limit that the kernel has set; 0: not known.
size_t BufferBytes(int fd, int option) {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  return getsockopt(fd, SOL_SOCKET, option, &bytes, &size) == 0 ? static_cast<size_t>(bytes) : 0;
}

// What arrives at a socket that only sends is dropped before it takes memory.
void DropAllArrivals(int fd) {
  sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &drop};
  setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

void ConfigureReceiving(const UdpSocketOptions& options, bool v4, UdpSocket& socket) {
  const int fd = socket.fd.get();
  if (options.ecn) {
    socket.ecn = v4 ? SetOption(fd, IPPROTO_IP, IP_RECVTOS, 1) : SetOption(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
  }
  socket.gro = options.gro && SetOption(fd, IPPROTO_UDP, UDP_GRO, 1);
  socket.timestamps = options.timestamps && SetOption(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  SetOption(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  SetBuffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, options.receive_buffer_bytes);
  socket.receive_buffer_bytes = BufferBytes(fd, SO_RCVBUF);
}

}  // namespace

absl::StatusOr<UdpSocket> OpenUdpSocket(const UdpSocketOptions& options) {
  const bool v4 = options.address.family() == AF_INET;
  UdpSocket result;
  result.fd =
      FileDescriptor(::socket(options.address.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!result.fd.valid())
    return absl::ErrnoToStatus(errno, v4 ? "cannot open an IPv4 socket" : "cannot open an IPv6 socket");
  const int fd = result.fd.get();

  if (!options.device.empty() && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, options.device.data(),
                                            static_cast<socklen_t>(options.device.size())) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot tie a socket to interface ", options.device));
  }
  if (!v4) SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (v4) {
    SetOption(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  } else {
    SetOption(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  }
  const auto set_class = [&](int value) {
    return v4 ? SetOption(fd, IPPROTO_IP, IP_TOS, value) : SetOption(fd, IPPROTO_IPV6, IPV6_TCLASS, value);
  };
  const int traffic_class = options.traffic_class & ~kEcnBits;
  if (traffic_class != 0) set_class(traffic_class);
  if (options.ecn) result.ecn = set_class(traffic_class | kEct0);
  if (!options.receives) DropAllArrivals(fd);  // before bind: nothing slips in
  if (options.send_buffer_bytes > 0) SetBuffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, options.send_buffer_bytes);
  result.send_buffer_bytes = BufferBytes(fd, SO_SNDBUF);
  if (options.receives) {
    const bool marks_sent = result.ecn;
    ConfigureReceiving(options, v4, result);
    result.ecn = result.ecn && marks_sent;
  }
  int segment = 0;
  socklen_t segment_size = sizeof(segment);
  result.gso = getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, &segment_size) == 0;

  if (bind(fd, &options.address.generic, options.address.size) != 0) return BindError(errno, options);
  result.address.size = sizeof(sockaddr_in6);
  if (getsockname(fd, &result.address.generic, &result.address.size) != 0) {
    return absl::ErrnoToStatus(errno, "cannot read back the address of a UDP socket");
  }
  return result;
}

}  // namespace paceline
