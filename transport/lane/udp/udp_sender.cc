#include "transport/lane/udp/udp_sender.h"

#include <linux/sockios.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

namespace paceline {
namespace {

// The kernel has no room now: the same call may succeed later.
bool IsFull(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM; }

// What a kernel or an interface without UDP_SEGMENT answers, and no ICMP message can make it say. EINVAL has other
// causes too (a segment larger than the MTU on older kernels, an address that has left the interface), so it is only a
// suspicion.
bool MayMeanNoGso(int error) { return error == EINVAL || error == EIO; }

uint32_t SizeOf(const TxSegment& segment) { return segment.header_bytes + segment.payload_bytes; }

void CountSent(LaneCounters& counters, uint64_t segments, uint64_t bytes) {
  counters.tx_packets += segments;
  counters.tx_bytes += bytes;
}

}  // namespace

int UdpSender::SendByKernel(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (count > 1) return sendmmsg(fd, messages, count, flags);
  return sendmsg(fd, &messages->msg_hdr, flags) >= 0 ? 1 : -1;
}

int UdpSender::ConnectByKernel(int fd, const SocketAddress& to) { return connect(fd, &to.generic, to.size); }

int UdpSender::QueuedInKernel(int fd) {
  int bytes = 0;
  return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

UdpSender::UdpSender(Options options)
    : options_(std::move(options)),
      max_message_bytes_(options_.ipv6 ? 65487 : 65507),
      batch_(std::make_unique<Batch>()),
      ways_(options_.sockets.size()) {}

void UdpSender::Forget(uint32_t peer) {
  for (Way& way : ways_) {
    if (way.last == peer || way.connected == peer) way = Way();
  }
}

// Never the first socket, which would receive from that peer only.
const SocketAddress* UdpSender::NameFor(const TxSegment& segment, const SocketAddress& to) {
  const size_t index = IndexFor(segment);
  Way& way = ways_[index];
  if (way.connected == segment.peer) return nullptr;
  way.in_row = way.last == segment.peer ? way.in_row + 1 : 1;
  way.last = segment.peer;
  if (index == 0 || way.in_row < kRunBeforeConnect || options_.connect == nullptr) return &to;
  way.in_row = 0;
  if (options_.connect(options_.sockets[index], to) != 0) return &to;
  way.connected = segment.peer;
  return nullptr;
}

bool UdpSender::Sendable(const TxSegment& segment, const UdpPeers& peers) const {
  if (segment.kind != SegmentKind::kPacket || SizeOf(segment) > options_.max_packet_bytes) return false;
  if (segment.payload == nullptr && segment.payload_bytes > 0) return false;  // phantom: for simulated lanes only
  return peers.Find(segment.peer) != nullptr;
}

void UdpSender::AddVectors(const TxSegment& segment, size_t first_vector) {
  const uint32_t bytes = SizeOf(segment);
  if (bytes <= kMostCopied && batch_->copied_bytes + bytes <= kCopiedBytes) {
    uint8_t* const to = batch_->copied.data() + batch_->copied_bytes;
    batch_->copied_bytes += bytes;
    if (segment.header_bytes > 0) std::memcpy(to, segment.header, segment.header_bytes);
    if (segment.payload_bytes > 0) std::memcpy(to + segment.header_bytes, segment.payload, segment.payload_bytes);
    if (batch_->vector_count > first_vector) {
      iovec& last = batch_->vectors[batch_->vector_count - 1];
      if (static_cast<uint8_t*>(last.iov_base) + last.iov_len == to) {
        last.iov_len += bytes;
        return;
      }
    }
    batch_->vectors[batch_->vector_count++] = {to, bytes};
    return;
  }
  // sendmmsg reads only; iovec has no const.
  if (segment.header_bytes > 0) {
    batch_->vectors[batch_->vector_count++] = {const_cast<uint8_t*>(segment.header), segment.header_bytes};
  }
  if (segment.payload_bytes > 0) {
    batch_->vectors[batch_->vector_count++] = {const_cast<uint8_t*>(segment.payload), segment.payload_bytes};
  }
}

void UdpSender::AddControl(size_t message, bool segmented, uint16_t segment_bytes, bool ecn_capable) {
  msghdr& header = batch_->messages[message].msg_hdr;
  const bool unmark = options_.ecn && !ecn_capable;
  header.msg_control = nullptr;
  header.msg_controllen = 0;
  if (!segmented && !unmark) return;
  header.msg_control = batch_->control[message].bytes.data();
  header.msg_controllen = batch_->control[message].bytes.size();
  cmsghdr* entry = CMSG_FIRSTHDR(&header);
  size_t used = 0;
  if (segmented) {
    entry->cmsg_level = IPPROTO_UDP;
    entry->cmsg_type = UDP_SEGMENT;
    entry->cmsg_len = CMSG_LEN(sizeof(segment_bytes));
    std::memcpy(CMSG_DATA(entry), &segment_bytes, sizeof(segment_bytes));
    used += CMSG_SPACE(sizeof(segment_bytes));
    entry = reinterpret_cast<cmsghdr*>(batch_->control[message].bytes.data() + used);
  }
  if (unmark) {
    const int not_ect = options_.traffic_class;
    entry->cmsg_level = options_.ipv6 ? static_cast<int>(IPPROTO_IPV6) : static_cast<int>(IPPROTO_IP);
    entry->cmsg_type = options_.ipv6 ? IPV6_TCLASS : IP_TOS;
    entry->cmsg_len = CMSG_LEN(sizeof(not_ect));
    std::memcpy(CMSG_DATA(entry), &not_ect, sizeof(not_ect));
    used += CMSG_SPACE(sizeof(not_ect));
  }
  header.msg_controllen = used;
}

size_t UdpSender::AddMessage(std::span<const TxSegment> segments, const SocketAddress* to) {
  const TxSegment& first = segments.front();
  const size_t message = batch_->message_count++;
  const size_t first_vector = batch_->vector_count;
  const uint32_t segment_bytes = SizeOf(first);
  uint32_t total = segment_bytes;
  size_t count = 1;
  AddVectors(first, first_vector);
  // What may be too large for its path (a padded request) takes nothing else along.
  const bool alone = !options_.gso || segment_bytes == 0 || (first.control && first.payload_bytes > 0);
  const size_t limit = alone ? 1 : std::min(kMaxSegments, segments.size());
  while (count < limit) {
    const TxSegment& next = segments[count];
    const uint32_t bytes = SizeOf(next);
    if (next.peer != first.peer || next.entropy != first.entropy || next.ecn_capable != first.ecn_capable ||
        next.expendable || next.kind != SegmentKind::kPacket || (next.payload == nullptr && next.payload_bytes > 0) ||
        bytes == 0 || bytes > segment_bytes || total + bytes > max_message_bytes_) {
      break;
    }
    AddVectors(next, first_vector);
    total += bytes;
    ++count;
    if (bytes < segment_bytes) break;  // only the last of a message may be shorter
  }

  msghdr& header = batch_->messages[message].msg_hdr;
  header.msg_name = to == nullptr ? nullptr : const_cast<sockaddr*>(&to->generic);
  header.msg_namelen = to == nullptr ? 0 : to->size;
  header.msg_iov = &batch_->vectors[first_vector];
  header.msg_iovlen = batch_->vector_count - first_vector;
  header.msg_flags = 0;
  AddControl(message, count > 1, static_cast<uint16_t>(segment_bytes), first.ecn_capable);
  batch_->info[message] = {static_cast<uint32_t>(count), total};
  return count;
}

size_t UdpSender::ProbeWithoutGso(int socket, size_t message, LaneCounters& counters) {
  msghdr& header = batch_->messages[message].msg_hdr;
  const MessageInfo info = batch_->info[message];
  uint16_t segment_bytes = 0;
  std::memcpy(&segment_bytes, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(segment_bytes));
  // A segmented message's note on ECN, if any, is the second one.
  const bool unmarked = header.msg_controllen > CMSG_SPACE(sizeof(uint16_t));
  size_t bytes = 0;
  size_t vectors = 0;
  while (bytes < segment_bytes) bytes += header.msg_iov[vectors++].iov_len;
  header.msg_iov[vectors - 1].iov_len -= bytes - segment_bytes;  // it may hold several segments
  header.msg_iovlen = vectors;
  AddControl(message, false, 0, !unmarked);

  ++counters.tx_calls;
  if (options_.send(socket, &batch_->messages[message], 1, MSG_DONTWAIT) == 1) {
    options_.gso = false;
    CountSent(counters, 1, segment_bytes);
    return 1;
  }
  if (IsFull(errno)) {
    blocked_socket_ = socket;
    return 0;
  }
  counters.tx_drops += info.segments;
  return info.segments;
}

void UdpSender::SendExpendable(const TxSegment& segment, const SocketAddress& to, LaneCounters& counters) {
  int socket = SocketFor(segment);
  if (options_.queued(socket) > options_.most_queued_bytes) socket = options_.spare_socket;
  batch_->Clear();
  AddMessage({&segment, 1}, &to);
  for (int tries = socket >= 0 ? 2 : 0; tries > 0; --tries) {  // as in Flush
    ++counters.tx_calls;
    if (options_.send(socket, batch_->messages.data(), 1, MSG_DONTWAIT) == 1) {
      CountSent(counters, 1, batch_->info[0].bytes);
      return;
    }
    if (IsFull(errno)) break;
  }
  ++counters.tx_drops;
}

size_t UdpSender::Flush(int socket, LaneCounters& counters) {
  size_t segments = 0;
  size_t next = 0;
  size_t again = 0;  // messages below were tried twice, or left
  while (next < batch_->message_count) {
    ++counters.tx_calls;
    const int sent = options_.send(socket, &batch_->messages[next], static_cast<unsigned>(batch_->message_count - next),
                                   MSG_DONTWAIT);
    if (sent > 0) {
      for (int i = 0; i < sent; ++i, ++next) {
        CountSent(counters, batch_->info[next].segments, batch_->info[next].bytes);
        segments += batch_->info[next].segments;
      }
      continue;
    }
    if (errno == EINTR) continue;
    if (IsFull(errno)) {
      blocked_socket_ = socket;
      return segments;
    }
    // To a socket that is or was connected the kernel tells what became of an earlier packet (nobody listens there any
    // more, too large for the path), and this one, to whomever, has not been tried.
    if (next >= again && (batch_->messages[next].msg_hdr.msg_name == nullptr || !MayMeanNoGso(errno))) {
      again = next + 1;
      continue;
    }
    if (MayMeanNoGso(errno) && batch_->info[next].segments > 1) {
      segments += ProbeWithoutGso(socket, next, counters);
      return segments;  // what is left is put together again, with or without UDP_SEGMENT
    }
    // Too long for the route, no route, refused by a firewall: this one is lost, the next may not be.
    counters.tx_drops += batch_->info[next].segments;
    segments += batch_->info[next].segments;
    ++next;
  }
  return segments;
}

size_t UdpSender::Send(std::span<const TxSegment> segments, const UdpPeers& peers, LaneCounters& counters) {
  blocked_socket_ = -1;
  size_t taken = 0;
  while (taken < segments.size() && blocked_socket_ < 0) {
    if (!Sendable(segments[taken], peers)) {
      ++counters.tx_drops;
      ++taken;
      continue;
    }
    if (segments[taken].expendable) {
      SendExpendable(segments[taken], *peers.Find(segments[taken].peer), counters);
      ++taken;
      continue;
    }
    const int socket = SocketFor(segments[taken]);
    batch_->Clear();
    size_t built = taken;
    while (built < segments.size() && batch_->message_count < kMaxMessages &&
           batch_->vector_count + 2 * kMaxSegments <= kMaxVectors) {
      const TxSegment& segment = segments[built];
      if (segment.expendable || SocketFor(segment) != socket || !Sendable(segment, peers)) break;
      built += AddMessage(segments.subspan(built), NameFor(segment, *peers.Find(segment.peer)));
    }
    taken += Flush(socket, counters);
  }
  return taken;
}

}  // namespace paceline
