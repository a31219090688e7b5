// Opening and configuring the kernel sockets of a UDP lane: control path only.
//
// Thread rule: called while a lane is made.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "transport/lane/file_descriptor.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {

inline constexpr int kEcnBits = 3;  // of the IP header's traffic class

struct UdpSocketOptions {
  SocketAddress address;         // to bind to
  std::string device;            // not empty: SO_BINDTODEVICE
  bool ecn = true;               // mark what is sent as ECN capable, ECT(0)
  uint8_t traffic_class = 0;     // of what is sent, but for the two ECN bits
  size_t send_buffer_bytes = 0;  // asked for; what the kernel allows is taken
  bool receives = false;         // false: what arrives is dropped by the kernel at once
  bool gro = true;               // receiving sockets: ask for UDP_GRO, quietly go without
  bool timestamps = true;        // receiving sockets: ask for time stamps, quietly go without
  size_t receive_buffer_bytes = 0;
};

struct UdpSocket {
  FileDescriptor fd;
  SocketAddress address;            // as bound: the port is known
  bool gso = false;                 // the kernel knows UDP_SEGMENT
  bool gro = false;                 // UDP_GRO is on
  bool ecn = false;                 // marks are sent and, on receiving sockets, seen
  bool timestamps = false;          // SO_TIMESTAMPNS is on
  size_t send_buffer_bytes = 0;     // the kernel's limit: payload and its own overhead together
  size_t receive_buffer_bytes = 0;  // the same, of receiving sockets
};

// A non-blocking socket, never fragmenting (DF set, path MTU messages ignored so that a forged one cannot stop a lane).
absl::StatusOr<UdpSocket> OpenUdpSocket(const UdpSocketOptions& options);

}  // namespace paceline
