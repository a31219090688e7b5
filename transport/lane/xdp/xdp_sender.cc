#include "transport/lane/xdp/xdp_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace paceline {
namespace {

uint32_t SizeOf(const TxSegment& segment) { return segment.header_bytes + segment.payload_bytes; }

void SetAddress(const SocketAddress& from, IpAddress& to) {
  to = {};
  if (from.family() == AF_INET) {
    std::memcpy(to.data(), &from.v4.sin_addr, 4);
  } else {
    std::memcpy(to.data(), &from.v6.sin6_addr, 16);
  }
}

uint16_t PortOf(const SocketAddress& address) {
  return ntohs(address.family() == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}

}  // namespace

XdpSender::XdpSender(Options options, std::span<const std::unique_ptr<XdpQueue>> queues, const UdpPeers* peers,
                     XdpNeighbours* neighbours)
    : options_(std::move(options)),
      queues_(queues),
      peers_(peers),
      neighbours_(neighbours),
      by_kernel_(options_.by_kernel) {
  flow_.source_mac = options_.mac;
  flow_.version = options_.address.family() == AF_INET ? IpVersion::kV4 : IpVersion::kV6;
  SetAddress(options_.address, flow_.source);
}

bool XdpSender::Sendable(const TxSegment& segment) const {
  if (segment.kind != SegmentKind::kPacket || SizeOf(segment) > options_.max_packet_bytes) return false;
  return segment.payload != nullptr || segment.payload_bytes == 0;  // phantoms: for simulated lanes only
}

size_t XdpSender::WriteHeaders(const TxSegment& segment, const SocketAddress& to, const MacAddress& mac, uint8_t* out) {
  const size_t size = FrameHeaderBytes(flow_.version);
  const uint16_t entropy = static_cast<uint16_t>(segment.entropy % options_.ports.size());
  const BurstHeaders::Key key{segment.peer, SizeOf(segment), entropy, segment.ecn_capable, mac};
  if (headers_.Copy(key, out)) return size;
  flow_.destination_mac = mac;
  SetAddress(to, flow_.destination);
  flow_.source_port = options_.ports[entropy];
  flow_.destination_port = PortOf(to);
  flow_.flow_label = flow_.source_port;  // RFC 6438: as different as the ports are
  flow_.traffic_class =
      static_cast<uint8_t>(options_.traffic_class | (options_.ecn && segment.ecn_capable ? kEcnCapable : 0));
  const std::array<std::span<const uint8_t>, 2> payload = {
      std::span<const uint8_t>(segment.header, segment.header_bytes),
      std::span<const uint8_t>(segment.payload, segment.payload_bytes)};
  WriteFrameHeaders(flow_, payload, UdpChecksumMode::kWhereRequired, out);
  headers_.Keep(key, flow_.version, out);
  return size;
}

void XdpSender::Build(const TxSegment& segment, const SocketAddress& to, const MacAddress& mac, XdpQueue& queue) {
  uint8_t* frame = queue.Frame();
  size_t size = WriteHeaders(segment, to, mac, frame);
  if (segment.header_bytes > 0) std::memcpy(frame + size, segment.header, segment.header_bytes);
  size += segment.header_bytes;
  if (segment.payload_bytes > 0) std::memcpy(frame + size, segment.payload, segment.payload_bytes);
  size += segment.payload_bytes;
  queue.Commit(static_cast<uint32_t>(size));
}

size_t XdpSender::Send(std::span<const TxSegment> segments, bool up, Time now, LaneCounters& counters) {
  headers_.Forget();
  size_t taken = 0;
  for (const TxSegment& segment : segments) {
    const SocketAddress* to = Sendable(segment) ? peers_->Find(segment.peer) : nullptr;
    XdpNeighbours::Answer neighbour;
    if (to != nullptr) {
      // Who may not exist is not looked up.
      neighbour.way = XdpNeighbours::Way::kResolving;
      if (!segment.expendable) neighbour = neighbours_->Find(segment.peer, *to, now);
    }
    if (neighbour.way == XdpNeighbours::Way::kNone || !up) {
      ++counters.tx_drops;
    } else if (neighbour.way == XdpNeighbours::Way::kResolving) {
      if (by_kernel_.Send({&segment, 1}, *peers_, counters) == 0) ++counters.tx_drops;
    } else {
      XdpQueue& queue = *queues_[segment.entropy % queues_.size()];
      if (queue.FreeFrames() == 0) break;
      Build(segment, *to, neighbour.mac, queue);
      ++counters.tx_packets;
      counters.tx_bytes += SizeOf(segment);
    }
    ++taken;
  }
  Flush(counters);
  return taken;
}

bool XdpSender::Flush(LaneCounters& counters) {
  waiting_ = false;
  for (const std::unique_ptr<XdpQueue>& queue : queues_) {
    if (queue->Waiting() == 0) continue;
    counters.tx_calls += queue->Kick();
    waiting_ |= queue->Waiting() > 0;
  }
  return !waiting_;
}

}  // namespace paceline
