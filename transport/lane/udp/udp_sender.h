// The sending half of a UDP lane: turns runs of segments into as few system calls as the kernel allows.
//
// Consecutive segments of one peer, entropy, ECN wish and size (the last may be shorter) become one message with
// UDP_SEGMENT: the kernel carries it through its stack as one packet and cuts it at the very end. Up to 32 messages of
// one socket go into one sendmmsg. A long segment is two vectors, header and payload. Short ones are copied behind each
// other, one vector for all of a message: collecting two pieces takes the kernel longer than copying both takes here,
// all the more as the payload was read right before for its checksum (docs/lanes/udp.md has figures).
//
// Where UDP_SEGMENT is refused (an interface without checksum offload, an IPsec route, a kernel before 4.18) the sender
// finds out by the first refusal, sends plain messages from then on and does not ask again.
//
// Limits of the kernel that shape a message: 64 segments, 65,507 bytes (65,487 over IPv6 to stay within gso_max_size
// with its headers), 1,024 vectors. Source: Linux net/ipv4/udp.c, include/linux/udp.h, include/uapi/linux/uio.h.
//
// Thread rule: the engine's thread. Nothing is allocated after construction; no clock is read.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/lane/lane.h"
#include "transport/lane/udp/udp_peers.h"

namespace paceline {

class UdpSender {
 public:
  // Arguments and result of sendmmsg(2). A test puts a stand-in here.
  using SendFunction = int (*)(int fd, mmsghdr* messages, unsigned count, int flags);
  // The kernel: sendmmsg, or sendmsg for one message, which is cheaper.
  static int SendByKernel(int fd, mmsghdr* messages, unsigned count, int flags);

  // Bytes that wait in a socket, also for a neighbour that does not answer the kernel.
  using QueuedFunction = int (*)(int fd);
  static int QueuedInKernel(int fd);

  // As connect(2); 0: it is.
  using ConnectFunction = int (*)(int fd, const SocketAddress& to);
  static int ConnectByKernel(int fd, const SocketAddress& to);

  struct Options {
    std::vector<int> sockets;  // not owned; entropy e leaves by socket e % sockets.size(); the first one receives
    bool ipv6 = false;
    bool gso = false;               // try UDP_SEGMENT
    bool ecn = false;               // the sockets mark ECT(0) by themselves: segments that do not want it carry a note
    uint32_t max_packet_bytes = 0;  // larger segments are dropped and counted
    SendFunction send = &SendByKernel;
    // Expendable segments leave by their own socket while no more than this waits there, else by the spare one (-1:
    // there is none, and they are dropped). What has no room is dropped: packets to addresses that nobody has stay in
    // the kernel for seconds, and would fill the socket that connections need.
    int most_queued_bytes = 0;
    int spare_socket = -1;
    QueuedFunction queued = &QueuedInKernel;
    int traffic_class = 0;                       // of the sockets, without the two ECN bits
    ConnectFunction connect = &ConnectByKernel;  // nullptr: no socket is connected, and Forget need not be called
  };

  static constexpr size_t kMaxSegments = 64;  // of one message; UDP_MAX_SEGMENTS before Linux 6.9
  // Messages in a row that a socket has sent to one peer before it is connected to it. The kernel then keeps the route,
  // which it looks for with each message otherwise.
  static constexpr uint32_t kRunBeforeConnect = 32;

  explicit UdpSender(Options options);

  // See Lane::Send. Stops early only when the kernel has no room: then blocked_socket() names the socket.
  size_t Send(std::span<const TxSegment> segments, const UdpPeers& peers, LaneCounters& counters);

  // The number may name another address from now on.
  void Forget(uint32_t peer);

  // The socket that had no room at the last Send, or -1.
  int blocked_socket() const { return blocked_socket_; }
  void ClearBlocked() { blocked_socket_ = -1; }

  bool gso() const { return options_.gso; }

 private:
  static constexpr size_t kMaxMessages = 32;
  static constexpr size_t kMaxVectors = 1024;
  static constexpr size_t kMostCopied = 2048;     // bytes of a segment
  static constexpr size_t kCopiedBytes = 131072;  // of a batch: a burst of the engine; what is left goes as vectors

  struct Control {
    alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int))> bytes;
  };
  struct MessageInfo {
    uint32_t segments = 0;
    uint32_t bytes = 0;
  };
  // Preallocated, addresses stay put.
  struct Batch {
    std::array<mmsghdr, kMaxMessages> messages{};
    std::array<MessageInfo, kMaxMessages> info{};
    std::array<Control, kMaxMessages> control{};
    std::array<iovec, kMaxVectors> vectors{};
    size_t message_count = 0;
    size_t vector_count = 0;
    std::array<uint8_t, kCopiedBytes> copied;
    size_t copied_bytes = 0;

    void Clear() { message_count = vector_count = copied_bytes = 0; }
  };

  // Of a socket: to whom it sends.
  struct Way {
    uint32_t last = 0;       // peer
    uint32_t in_row = 0;     // messages to that one
    uint32_t connected = 0;  // peer; 0: none
  };

  size_t IndexFor(const TxSegment& segment) const { return segment.entropy % options_.sockets.size(); }
  int SocketFor(const TxSegment& segment) const { return options_.sockets[IndexFor(segment)]; }
  // Where a message of this segment goes by its socket: nullptr: where that is connected to.
  const SocketAddress* NameFor(const TxSegment& segment, const SocketAddress& to);
  bool Sendable(const TxSegment& segment, const UdpPeers& peers) const;
  // Adds one message made from the front of `segments` (not empty, sendable); returns how many it took.
  size_t AddMessage(std::span<const TxSegment> segments, const SocketAddress* to);
  // To the message whose vectors begin with `first_vector`.
  void AddVectors(const TxSegment& segment, size_t first_vector);
  void AddControl(size_t message, bool segmented, uint16_t segment_bytes, bool ecn_capable);
  void SendExpendable(const TxSegment& segment, const SocketAddress& to, LaneCounters& counters);
  // Sends the batch; returns how many segments left or were dropped, from the front.
  size_t Flush(int socket, LaneCounters& counters);
  // A message was refused: finds out whether UDP_SEGMENT is the reason by sending its first segment alone. Returns how
  // many segments this settled (1, the whole message, or 0 when the socket had no room).
  size_t ProbeWithoutGso(int socket, size_t message, LaneCounters& counters);

  Options options_;
  uint32_t max_message_bytes_;
  int blocked_socket_ = -1;
  std::unique_ptr<Batch> batch_;
  std::vector<Way> ways_;  // by socket
};

}  // namespace paceline
