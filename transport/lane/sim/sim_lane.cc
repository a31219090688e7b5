#include "transport/lane/sim/sim_lane.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "transport/lane/sim/fabric.h"

namespace paceline::sim {

SimLane::SimLane(Fabric& fabric, uint32_t nic) : fabric_(fabric), nic_(nic), address_(AddressOf(nic)), arrived_(16) {
  const FabricConfig& config = fabric.config();
  name_ = absl::StrCat("sim:host", nic / config.topology.nics_per_host, " nic", nic % config.topology.nics_per_host);
  capabilities_.max_packet_bytes = config.mtu_bytes + config.max_header_bytes;
  capabilities_.ecn = config.ecn_max_bytes != 0;
  capabilities_.rx_timestamps = true;
  capabilities_.trimming = config.trimming;
  capabilities_.telemetry = true;
  capabilities_.keeps_path_order = !config.adaptive_routing;
  capabilities_.overtaking = Overtaking::kControl;
  capabilities_.entropies = config.entropies;
  capabilities_.header_bytes = config.header_bytes;
  capabilities_.nominal_header = true;
  capabilities_.link_rate = Rate::BitsPerSecond(static_cast<double>(fabric.topology().links()[nic].bits_per_second));
  capabilities_.base_rtt = fabric.LongestBaseRtt();
}

LaneAddress SimLane::AddressOf(uint32_t nic) {
  LaneAddress address;
  address.size = 4;
  for (size_t i = 0; i < 4; ++i) address.bytes[i] = static_cast<uint8_t>(nic >> (8 * i));
  return address;
}

uint32_t SimLane::OpenPeer(const LaneAddress& address) {
  if (address.size != 4) return 0;
  uint32_t nic = 0;
  for (size_t i = 0; i < 4; ++i) nic |= uint32_t{address.bytes[i]} << (8 * i);
  const Topology& topology = fabric_.topology_;
  return nic < fabric_.nics_ && topology.plane_of(nic) == topology.plane_of(nic_) ? PeerOf(nic) : 0;
}

size_t SimLane::room() const {
  const uint32_t limit = fabric_.config_.nic_queue_packets;
  return waiting_ < limit ? limit - waiting_ : 0;
}

size_t SimLane::Send(std::span<const TxSegment> segments) {
  const size_t taken = std::min(segments.size(), room());
  for (const TxSegment& segment : segments.first(taken)) SendOne(segment);
  counters_.tx_calls += 1;
  if (room() == 0) full_ = true;
  return taken;
}

void SimLane::SendOne(const TxSegment& segment) {
  assert(segment.kind == SegmentKind::kPacket);
  assert(segment.payload_bytes <= fabric_.config_.mtu_bytes);
  // A longer header (a protected packet's) takes the room from the payload.
  assert(segment.header_bytes + segment.payload_bytes <=
         (segment.payload_bytes == 0 ? std::max(fabric_.config_.max_control_bytes, capabilities_.max_packet_bytes)
                                     : capabilities_.max_packet_bytes));
  counters_.tx_packets += 1;
  counters_.tx_bytes += segment.header_bytes + segment.payload_bytes;
  const uint32_t to = NicOf(segment.peer);
  if (to >= fabric_.nics_ || to == nic_) {
    counters_.tx_drops += 1;  // no such peer, or ourselves: the fabric has no loop back
    return;
  }
  PacketPool& pool = fabric_.pool_;
  const bool phantom = segment.payload == nullptr;
  const uint32_t packet = pool.Allocate(segment.header_bytes + (phantom ? 0 : segment.payload_bytes));
  Packet& record = pool[packet];
  record.source = nic_;
  record.destination = fabric_.topology_.slot_of(to);
  record.header_bytes = segment.header_bytes;
  record.payload_bytes = segment.payload_bytes;
  record.wire_bytes = fabric_.config_.header_bytes + (segment.control ? 0 : segment.payload_bytes);
  record.route_hash = Topology::RouteHash(nic_, to, segment.entropy, fabric_.route_salt_);
  if (segment.control) record.set(Packet::kControl);
  if (segment.ecn_capable) record.set(Packet::kEcnCapable);
  if (phantom) record.set(Packet::kPhantom);
  if (segment.telemetry) {
    record.set(Packet::kTelemetry);
    pool.trail(packet).hops = 0;
  }
  uint8_t* bytes = pool.bytes(packet);
  std::memcpy(bytes, segment.header, segment.header_bytes);
  if (!phantom) std::memcpy(bytes + segment.header_bytes, segment.payload, segment.payload_bytes);
  const Port& port = fabric_.ports_[nic_];
  const bool waits =
      port.waiting || port.busy_until > fabric_.queue_.now() || (port.paused && !record.is(Packet::kControl));
  fabric_.Enqueue(nic_, packet);
  if (waits) ++waiting_;
}

bool SimLane::OnDequeued() {
  --waiting_;
  if (!full_ || waiting_ > fabric_.config_.nic_queue_packets / 2) return false;
  full_ = false;
  return true;
}

void SimLane::OnLinkChange(bool up) {
  status_.up = up;
  ++status_.change_count;
}

void SimLane::Deliver(uint32_t packet, Picos time) {
  if (count_ == arrived_.size()) {
    std::vector<Arrival> larger(arrived_.size() * 2);
    for (size_t i = 0; i < count_; ++i) larger[i] = arrived_[(first_ + i) & (arrived_.size() - 1)];
    arrived_.swap(larger);
    first_ = 0;
  }
  arrived_[(first_ + count_++) & (arrived_.size() - 1)] = {packet, time};
}

size_t SimLane::Receive(std::span<RxSegment> out, Time) {
  PacketPool& pool = fabric_.pool_;
  for (uint32_t packet : lent_) pool.Free(packet);
  lent_.clear();
  const size_t taken = std::min(out.size(), count_);
  for (size_t i = 0; i < taken; ++i) {
    const Arrival& arrival = arrived_[first_];
    const Packet& record = pool[arrival.packet];
    RxSegment& segment = out[i];
    segment = RxSegment{};
    segment.congestion_experienced = record.is(Packet::kMarked);
    segment.trimmed = record.is(Packet::kTrimmed);
    segment.data_bytes = record.real_bytes();
    if (record.is(Packet::kPhantom) && !segment.trimmed) segment.phantom_bytes = record.payload_bytes;
    segment.data = pool.bytes(arrival.packet);
    segment.source = &fabric_.lanes_[record.source]->address_;
    segment.received_at = ToTime(arrival.time);
    if (record.is(Packet::kTelemetry)) {
      const TelemetryTrail& trail = pool.trail(arrival.packet);
      segment.telemetry = std::span(trail.hop).first(trail.hops);
    }
    counters_.rx_packets += 1;
    counters_.rx_bytes += segment.data_bytes + segment.phantom_bytes;
    lent_.push_back(arrival.packet);
    first_ = (first_ + 1) & (arrived_.size() - 1);
    --count_;
  }
  counters_.rx_calls += 1;
  return taken;
}

}  // namespace paceline::sim
