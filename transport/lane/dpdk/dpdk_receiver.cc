#include "transport/lane/dpdk/dpdk_receiver.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>

#include "transport/lane/dpdk/dpdk_peers.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {
namespace {

// In the IP header.
constexpr size_t kIpv4ProtocolAt = 9, kIpv6ProtocolAt = 6;

}  // namespace

DpdkReceiver::DpdkReceiver(const DpdkPort* port, Neighbours* neighbours, const FrameFlow& own)
    : port_(port), neighbours_(neighbours), own_(own) {}

DpdkReceiver::~DpdkReceiver() { Release(); }

void DpdkReceiver::Release() {
  rte_pktmbuf_free_bulk(burst_.data(), static_cast<unsigned>(filled_));
  filled_ = next_ = 0;
}

const LaneAddress* DpdkReceiver::SourceOf(const FrameFlow& flow) {
  if (source_count_ == 0 || flow.source != last_source_.source || flow.source_port != last_source_.source_port) {
    last_source_ = flow;
    sources_[source_count_++] = ToLaneAddress(flow.version, flow.source, flow.source_port);
  }
  return &sources_[source_count_ - 1];
}

// UDP for this port, as far as can be said of a frame that is damaged.
bool DpdkReceiver::IsForUs(std::span<const uint8_t> frame) const {
  const bool v4 = own_.version == IpVersion::kV4;
  const uint16_t type = v4 ? kEtherTypeIpv4 : kEtherTypeIpv6;
  const size_t protocol_at = kEthernetHeaderBytes + (v4 ? kIpv4ProtocolAt : kIpv6ProtocolAt);
  return frame.size() >= kEthernetHeaderBytes &&
         std::equal(own_.source_mac.bytes.begin(), own_.source_mac.bytes.end(), frame.begin()) &&
         frame[12] == type >> 8 && frame[13] == (type & 0xff) &&
         (frame.size() <= protocol_at || frame[protocol_at] == kIpProtocolUdp);
}

bool DpdkReceiver::Take(rte_mbuf* buffer, Time now, LaneCounters& counters, RxSegment& out) {
  const DpdkPortTraits& traits = port_->traits();
  if (buffer->nb_segs > 1 && rte_pktmbuf_linearize(buffer) != 0) {
    ++counters.rx_drops;
    return false;
  }
  auto* bytes = rte_pktmbuf_mtod(buffer, uint8_t*);
  const std::span<const uint8_t> frame(bytes, rte_pktmbuf_data_len(buffer));
  if (neighbours_->HandleFrame(frame, now)) return false;

  // A card without the switch leaves it to us. Frames of software ports have never been on a cable, and may come before
  // a card has finished them; the transport has checksums of its own.
  const uint64_t verdict = buffer->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
  const bool checked = traits.checks_udp_checksums && verdict != RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN;
  const auto parsed = ParseFrame(frame, traits.physical && !checked);
  if (!parsed) {
    counters.rx_drops += IsForUs(frame) ? 1 : 0;
    return false;
  }
  if (parsed->flow.version != own_.version || parsed->flow.destination != own_.source ||
      parsed->flow.destination_port != own_.source_port || parsed->flow.destination_mac != traits.mac) {
    return false;
  }
  if (checked && verdict == RTE_MBUF_F_RX_L4_CKSUM_BAD) {
    ++counters.rx_drops;
    return false;
  }
  out = RxSegment{};
  out.congestion_experienced = parsed->congestion_experienced();
  out.data = bytes + (parsed->payload.data() - bytes);
  out.data_bytes = static_cast<uint32_t>(parsed->payload.size());
  out.source = SourceOf(parsed->flow);
  const auto& times = port_->packet_times();
  out.received_at = times ? times->CameAt(*buffer, now) : now;
  ++counters.rx_packets;
  counters.rx_bytes += out.data_bytes;
  return true;
}

void DpdkReceiver::TakeBurst(LaneCounters& counters) {
  Release();
  source_count_ = 0;
  for (uint16_t i = 0; i < port_->traits().receive_queues && filled_ < kBurst; ++i) {
    ++counters.rx_calls;
    filled_ += rte_eth_rx_burst(port_->id(), queue_, &burst_[filled_], static_cast<uint16_t>(kBurst - filled_));
    if (++queue_ == port_->traits().receive_queues) queue_ = 0;
  }
  for (size_t i = 0; i < filled_; ++i) rte_prefetch0(rte_pktmbuf_mtod(burst_[i], const void*));
}

size_t DpdkReceiver::Receive(std::span<RxSegment> out, Time now, LaneCounters& counters) {
  size_t count = 0;
  // A full burst of other people's frames says nothing of what is behind it.
  for (size_t bursts = 0; count == 0 && bursts < kMostBursts; ++bursts) {
    const bool more = next_ == filled_;
    if (more) TakeBurst(counters);
    while (count < out.size() && next_ < filled_) {
      if (Take(burst_[next_++], now, counters, out[count])) ++count;
    }
    if (more && filled_ < kBurst) break;
  }
  return count;
}

}  // namespace paceline
