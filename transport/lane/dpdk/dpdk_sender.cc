#include "transport/lane/dpdk/dpdk_sender.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

namespace paceline {
namespace {

constexpr uint32_t kReferFrom = 256;        // bytes of payload
constexpr uint32_t kCardReferFrom = 1024;   // the same for cards, which fetch another descriptor for it
constexpr uint16_t kFirstOtherPort = 1024;  // entropies whose sum is past the last port go on here
constexpr uint32_t kPorts = 65536;

uint32_t SizeOf(const TxSegment& segment) { return segment.header_bytes + segment.payload_bytes; }

// Entropy 0 is the port that receives, so that who hears from it can answer.
uint16_t SourcePort(uint16_t own, uint16_t entropy) {
  const uint32_t port = uint32_t{own} + entropy;
  return static_cast<uint16_t>(port < kPorts ? port : port - kPorts + kFirstOtherPort);
}

}  // namespace

DpdkSender::DpdkSender(const DpdkPort* port, const DpdkMemory* memory, Neighbours* neighbours, IpVersion version,
                       uint32_t max_packet_bytes)
    : port_(port),
      memory_(memory),
      neighbours_(neighbours),
      is_v4_(version == IpVersion::kV4),
      max_packet_bytes_(max_packet_bytes) {
  held_.reserve(kMostHeld);
}

DpdkSender::~DpdkSender() {
  for (const Held& held : held_) rte_pktmbuf_free(held.frame);
}

bool DpdkSender::Sendable(const TxSegment& segment, const DpdkPeers& peers) const {
  if (segment.kind != SegmentKind::kPacket || SizeOf(segment) > max_packet_bytes_) return false;
  if (segment.payload == nullptr && segment.payload_bytes > 0) return false;  // phantom: for simulated lanes only
  if (segment.on_device && LoanFor(segment) == nullptr) return false;         // it was given back meanwhile
  return peers.Find(segment.peer) != nullptr;
}

size_t DpdkSender::WriteHeaders(const TxSegment& segment, const DpdkPeers::Peer& peer, const MacAddress& to,
                                uint8_t* out) {
  const BurstHeaders::Key key{segment.peer, SizeOf(segment), segment.entropy, segment.ecn_capable, to};
  if (headers_.Copy(key, out)) return FrameHeaderBytes(peer.flow.version);
  FrameFlow flow = peer.flow;
  flow.destination_mac = to;
  flow.source_port = SourcePort(flow.source_port, segment.entropy);
  if (segment.ecn_capable) flow.traffic_class |= kEcnCapable;
  const std::array<std::span<const uint8_t>, 2> pieces = {
      {{segment.header, segment.header_bytes}, {segment.payload, segment.payload_bytes}}};
  const UdpChecksumMode mode =
      port_->traits().finishes_udp_checksums ? UdpChecksumMode::kPseudoHeader : UdpChecksumMode::kWhereRequired;
  const size_t bytes = WriteFrameHeaders(flow, pieces, mode, out);
  headers_.Keep(key, flow.version, out);
  return bytes;
}

// Over IPv6 somebody has to compute the UDP checksum: the card, or nobody else could.
bool DpdkSender::ReadsFromDevice(const uint8_t* payload, size_t bytes) const {
  const bool is_left_alone = port_->traits().finishes_udp_checksums || is_v4_;
  return is_left_alone && bytes >= kCardReferFrom && memory_->Find(payload, bytes) != nullptr;
}

const PayloadLoans* DpdkSender::LoanFor(const TxSegment& segment) const {
  if (port_->traits().copies_while_sending) return segment.payload_bytes >= kReferFrom ? &brief_ : nullptr;
  const bool is_lasting = segment.payload_stays && segment.payload_bytes >= kCardReferFrom;
  return is_lasting ? memory_->Find(segment.payload, segment.payload_bytes) : nullptr;
}

rte_mbuf* DpdkSender::Build(const TxSegment& segment, const DpdkPeers::Peer& peer, const MacAddress& to,
                            bool may_refer) {
  rte_mbuf* frame = rte_pktmbuf_alloc(port_->pool());
  if (frame == nullptr) return nullptr;
  const PayloadLoans* loans = may_refer ? LoanFor(segment) : nullptr;
  rte_mbuf* reference = loans != nullptr ? rte_pktmbuf_alloc(port_->references()) : nullptr;
  const bool refer = reference != nullptr;  // without one left it is copied: a frame has room for all of it
  if (segment.on_device && !refer) {
    rte_pktmbuf_free(frame);
    return nullptr;
  }

  if (segment.leaves_at > Time()) port_->packet_times()->LeaveAt(*frame, segment.leaves_at);
  auto* out = rte_pktmbuf_mtod(frame, uint8_t*);
  size_t bytes = WriteHeaders(segment, peer, to, out);
  if (port_->traits().finishes_udp_checksums) {
    const bool v4 = peer.flow.version == IpVersion::kV4;
    frame->l2_len = kEthernetHeaderBytes;
    frame->l3_len = v4 ? kIpv4HeaderBytes : kIpv6HeaderBytes;
    frame->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM | (v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6);
  }
  if (segment.header_bytes > 0) std::memcpy(out + bytes, segment.header, segment.header_bytes);
  bytes += segment.header_bytes;
  if (!refer && segment.payload_bytes > 0) {
    std::memcpy(out + bytes, segment.payload, segment.payload_bytes);
    bytes += segment.payload_bytes;
  }
  frame->data_len = static_cast<uint16_t>(bytes);
  frame->pkt_len = static_cast<uint32_t>(bytes);
  if (refer) {
    const auto length = static_cast<uint16_t>(segment.payload_bytes);
    // Cards that read later use the process's own addresses.
    rte_pktmbuf_attach_extbuf(reference, const_cast<uint8_t*>(segment.payload),
                              reinterpret_cast<rte_iova_t>(segment.payload), length, loans->Add());
    reference->data_off = 0;
    reference->data_len = length;
    if (segment.on_device) {
      frame->ol_flags |= port_->traits().not_inline;
      reference->ol_flags |= port_->traits().not_inline;
    }
    frame->next = reference;
    frame->nb_segs = 2;
    frame->pkt_len += length;
  }
  return frame;
}

void DpdkSender::Hold(const TxSegment& segment, const DpdkPeers::Peer& peer, LaneCounters& counters) {
  const size_t most = segment.expendable ? kMostHeld / 2 : kMostHeld;
  if (neighbours_->state(peer.neighbour) != Neighbours::State::kAsking || held_.size() >= most) {
    ++counters.tx_drops;
    return;
  }
  rte_mbuf* frame = Build(segment, peer, MacAddress{}, false);
  if (frame == nullptr) {
    ++counters.tx_drops;
    return;
  }
  neighbours_->Keep(peer.neighbour);
  held_.push_back({frame, peer.neighbour, SizeOf(segment), QueueOf(segment)});
}

size_t DpdkSender::Flush(uint16_t queue, bool link_up, LaneCounters& counters) {
  if (batch_size_ == 0) return 0;
  ++counters.tx_calls;
  size_t settled = rte_eth_tx_burst(port_->id(), queue, batch_.data(), static_cast<uint16_t>(batch_size_));
  counters.tx_packets += settled;
  for (const Batched& sent : std::span(batched_).first(settled)) {
    counters.tx_bytes += sent.bytes;
    counters.tx_in_place += sent.in_place ? 1 : 0;
  }
  if (settled < batch_size_) {
    rte_pktmbuf_free_bulk(&batch_[settled], static_cast<unsigned>(batch_size_ - settled));
    if (!link_up) {
      counters.tx_drops += batch_size_ - settled;
      settled = batch_size_;
    }
  }
  batch_size_ = 0;
  return settled;
}

size_t DpdkSender::Send(std::span<const TxSegment> segments, const DpdkPeers& peers, bool link_up,
                        LaneCounters& counters) {
  headers_.Forget();
  size_t taken = 0;
  while (taken < segments.size()) {
    bool exhausted = false, unsent = false;
    const uint16_t queue = QueueOf(segments[taken]);
    size_t built = taken;
    for (; built < segments.size() && batch_size_ < kBatch && QueueOf(segments[built]) == queue; ++built) {
      const TxSegment& segment = segments[built];
      unsent = !Sendable(segment, peers);
      if (unsent) break;
      const DpdkPeers::Peer& peer = *peers.Find(segment.peer);
      const MacAddress* to = neighbours_->Find(peer.neighbour);
      unsent = to == nullptr;
      if (unsent) break;
      rte_mbuf* frame = Build(segment, peer, *to, true);
      exhausted = frame == nullptr;
      if (exhausted) break;
      batch_[batch_size_] = frame;
      batched_[batch_size_++] = {SizeOf(segment), frame->nb_segs > 1};
    }
    const size_t settled = Flush(queue, link_up, counters);
    const bool full = settled < built - taken;
    taken += settled;
    if (full || exhausted) return taken;
    if (!unsent) continue;
    // The one that ended the batch.
    const TxSegment& segment = segments[taken++];
    if (Sendable(segment, peers)) {
      Hold(segment, *peers.Find(segment.peer), counters);
    } else {
      ++counters.tx_drops;
    }
  }
  return taken;
}

void DpdkSender::SendFrame(std::span<const uint8_t> frame) {
  rte_mbuf* buffer = rte_pktmbuf_alloc(port_->pool());
  if (buffer == nullptr) return;
  std::memcpy(rte_pktmbuf_mtod(buffer, uint8_t*), frame.data(), frame.size());
  buffer->data_len = static_cast<uint16_t>(frame.size());
  buffer->pkt_len = static_cast<uint32_t>(frame.size());
  if (rte_eth_tx_burst(port_->id(), 0, &buffer, 1) == 0) rte_pktmbuf_free(buffer);
}

void DpdkSender::ReleaseHeld(bool usable, LaneCounters& counters) {
  size_t kept = 0;
  for (const Held& held : held_) {
    if (neighbours_->state(held.neighbour) == Neighbours::State::kAsking) {
      held_[kept++] = held;
      continue;
    }
    const MacAddress* to = neighbours_->Find(held.neighbour);
    neighbours_->Close(held.neighbour);
    rte_mbuf* frame = held.frame;
    if (to != nullptr) std::memcpy(rte_pktmbuf_mtod(frame, uint8_t*), to->bytes.data(), to->bytes.size());
    ++counters.tx_calls;
    if (to == nullptr || !usable || rte_eth_tx_burst(port_->id(), held.queue, &frame, 1) == 0) {
      rte_pktmbuf_free(frame);
      ++counters.tx_drops;
      continue;
    }
    ++counters.tx_packets;
    counters.tx_bytes += held.bytes;
  }
  held_.resize(kept);
}

}  // namespace paceline
