// What the sending half puts into packets: their numbers, headers, and the acknowledgement that rides on one.
#include <algorithm>

#include "transport/core/tx/sender.h"
#include "transport/wire/checksum.h"
#include "transport/wire/rate16.h"

namespace paceline {
namespace {

constexpr uint32_t kSlotBits = 12;  // of the immediate: message number; the rest: packet sequence number
constexpr size_t kMostRidingBytes = 24 + limits::kSackWords * 16;  // the longest acknowledgement
constexpr uint64_t kSegmentsBeforeRider = 15;  // of a short message: those before the one with an acknowledgement

}  // namespace

// The newest packet of its kind on its path.
uint64_t& Sender::LastOnPath(const Packet& packet) {
  std::vector<uint64_t>* last =
      packet.write ? &last_write_on_path_ : &last_on_path_[static_cast<size_t>(packet.traffic_class)];
  if (last->empty()) last->assign(context_->ports.size() * entropies_, 0);
  return (*last)[packet.local_port * entropies_ + packet.entropy];
}

// Gives the packets their numbers; returns the first.
uint64_t Sender::Track(const Packet& packet, Time now) {
  const uint64_t first = outstanding_.Append(packet.count), end = first + packet.count;
  uint64_t& last = LastOnPath(packet);
  Outstanding& entry = outstanding_[first];
  entry = Outstanding();
  entry.sent_at = now;
  if (packet.kind == Outstanding::Kind::kBundle) {
    entry.offset = packet.message->number;
    entry.parts = packet.messages;
  } else {
    entry.message = packet.message;
    entry.offset = packet.offset;  // of a probe: how much payload it stands for
  }
  entry.previous_on_path = last;
  entry.bytes = packet.bytes;
  entry.entropy = packet.entropy;
  entry.local_port = packet.local_port;
  entry.remote_port = peer_->routes.remote_of[packet.local_port];
  entry.kind = packet.kind;
  entry.traffic_class = packet.traffic_class;
  entry.written = packet.write;
  entry.state = Outstanding::State::kOutstanding;
  uint64_t offset = entry.offset;
  for (uint64_t psn = first + 1; psn < end; ++psn) {
    Outstanding& next = outstanding_[psn];
    next = entry;
    next.offset = offset += packet.bytes;
    next.previous_on_path = psn - 1;
  }
  last = end - 1;
  if (packet.message != nullptr) packet.message->last_psn = last;
  unacked_.SetRange(first, packet.count);
  Recovery(packet.local_port, packet.traffic_class).OnSent(first, packet.count, now);
  outstanding_count_ += packet.count;
  return first;
}

// The flow's counts hold all of the run already.
void Sender::Emit(const Packet& packet, TxBurst& burst, size_t at, Time now) {
  Paths(packet.local_port);
  const uint64_t psn = Track(packet, now);
  Flow& flow = ActiveFlow(peer_->routes.remote_of[packet.local_port], now);
  flow.told_end = flow.tx_total + backlog();
  flow.told_lost = flow.lost_total;

  TxSegment& segment = burst.segments[at];
  segment = TxSegment();
  segment.peer = peer_->routes.handle[packet.local_port];
  segment.entropy = packet.entropy;
  segment.ecn_capable = context_->ports[packet.local_port].capabilities.ecn;
  segment.payload_bytes = packet.bytes;
  EndpointCounters& counters = context_->counters;
  if (packet.bytes > 0) {
    segment.payload = packet.payload;
    segment.telemetry = flow.wants_telemetry;
    counters.tx_data_packets += packet.count;
    counters.tx_data_bytes += uint64_t{packet.bytes} * packet.count;
  } else if (packet.padding > 0) {
    segment.payload = context_->padding.data();
    segment.payload_bytes = packet.padding;
  } else {
    // A probe of what waits in the queues of data waits there, too.
    const bool keeps_class = packet.kind == Outstanding::Kind::kProbe && packet.traffic_class == TrafficClass::kBulk;
    segment.control = !keeps_class || context_->ports[packet.local_port].capabilities.overtaking == Overtaking::kNone;
  }
  counters.tx_packets += packet.count;
  if (packet.write) {
    EmitWrite(packet, psn, segment);
    return;
  }

  floor_told_ = outstanding_.begin();
  wire::DataHeader header = HeaderOf(packet, flow, psn, std::max(now, packet.leaves_at));
  const bool checked = segment.payload != nullptr && packet.bytes > 0 && peer_->payload_crc && !packet.on_device;
  segment.payload_stays = segment.on_device = packet.on_device;
  if (checked) {
    header.payload_crc = wire::Crc32c({segment.payload, packet.bytes});
    // What is sent again may be acknowledged by its first copy, so that its owner has it back before it is read.
    // Secured connections have no such checksum: what they encrypt stands in buffers of the core's.
    const bool may_be_late = packet.retransmission || packet.kind != Outstanding::Kind::kSegment;
    segment.payload_stays = packet.message->stays && !may_be_late;
  } else {
    header.flags |= wire::kNoPayloadCrc;
  }
  std::array<uint8_t, kMostRidingBytes> riding;
  if (MayRide(packet))
    header.frames = std::span(riding).first(EncodeRidingAck(riding, std::max(now, packet.leaves_at)));
  segment.header = burst.headers[at].data();
  segment.header_bytes = static_cast<uint16_t>(wire::EncodeData(header, burst.headers[at]));
  if (packet.count > 1) StampRun(packet, header, checked, burst, at);
  if (packet.leaves_at > Time()) Schedule(packet, psn, std::span(burst.segments).subspan(at, packet.count), now);
}

// What is late leaves at once. A round trip begins when a packet leaves. (All of a run carry the time of the first; the
// lane's delay_error covers that.)
void Sender::Schedule(const Packet& packet, uint64_t psn, std::span<TxSegment> run, Time now) {
  Time due = packet.leaves_at;
  for (TxSegment& segment : run) {
    if (due > now) segment.leaves_at = outstanding_[psn].sent_at = due;
    due = due + packet.gap;
    ++psn;
  }
}

// The packets of a run behind the first.
void Sender::StampRun(const Packet& packet, const wire::DataHeader& header, bool checked, TxBurst& burst, size_t at) {
  TxSegment segment = burst.segments[at];
  wire::DataStamp stamp = wire::StampOf(header);
  uint64_t behind = uint64_t{packet.bytes} * (packet.count - 1) + backlog();
  for (uint32_t i = 1; i < packet.count; ++i) {
    behind -= packet.bytes;
    if (i == packet.ack_from) stamp.flags |= wire::kAckNow;
    if (behind == 0) stamp.flags |= wire::kLastOfBacklog;
    ++stamp.psn;
    ++stamp.floor_distance;
    stamp.offset += packet.bytes;
    stamp.backlog = wire::EncodeBacklog(behind);
    stamp.tx_total += packet.bytes;
    if (segment.payload != nullptr) segment.payload += packet.bytes;
    if (checked) stamp.payload_crc = wire::Crc32c({segment.payload, packet.bytes});
    segment.header = burst.headers[at + i].data();
    wire::StampData(burst.headers[at].data(), segment.header_bytes, stamp, burst.headers[at + i].data());
    burst.segments[at + i] = segment;
  }
}

void Sender::EmitWrite(const Packet& packet, uint64_t psn, TxSegment& segment) {
  const TxMessage* message = packet.message;
  segment.kind = SegmentKind::kWrite;
  segment.connection = peer_->peer_connection;
  const uint64_t slot = message == nullptr ? 0 : message->number;
  segment.immediate = static_cast<uint32_t>((slot & ((1u << kSlotBits) - 1)) << (32 - kSlotBits) |
                                            (psn & ((1u << (32 - kSlotBits)) - 1)));
  segment.remote_address = 0;
  if (message == nullptr) return;
  segment.remote_address = message->placement->address + packet.offset;
  segment.remote_key = message->placement->keys[peer_->routes.remote_of[packet.local_port]];
  if (message->device != kNoDevice) segment.payload_key = DeviceKey(*message, packet.local_port);
}

// Of the first packet, all but its payload's checksum and what rides on it.
wire::DataHeader Sender::HeaderOf(const Packet& packet, const Flow& flow, uint64_t psn, Time now) const {
  const uint64_t of_others = uint64_t{packet.bytes} * (packet.count - 1);
  const TxMessage* message = packet.message;
  wire::DataHeader header;
  if (packet.ack_from == 0) header.flags |= wire::kAckNow;
  if (packet.retransmission) header.flags |= wire::kRetransmission;
  if (backlog() + of_others == 0 || (message != nullptr && message->single)) header.flags |= wire::kLastOfBacklog;
  header.connection = peer_->peer_connection;
  header.psn = static_cast<uint32_t>(psn);
  header.timestamp = static_cast<uint32_t>(now.nanos());
  header.floor_distance = static_cast<uint16_t>(psn - outstanding_.begin());
  header.cap = wire::EncodeRate(flow.controller->cap());
  header.entropy = packet.entropy;
  header.backlog = wire::EncodeBacklog(backlog() + of_others);
  header.tx_total = static_cast<uint32_t>(flow.tx_total - of_others);
  header.lost_total = static_cast<uint32_t>(flow.lost_total);
  if (message == nullptr) return header;
  header.kind = message->kind;
  if (packet.kind == Outstanding::Kind::kAnnouncement && message->kind == wire::MessageKind::kWrite) {
    header.kind = wire::MessageKind::kAnnounce;
  }
  header.message = static_cast<uint32_t>(message->number);
  header.offset = packet.offset;
  header.length = message->length;
  header.match_sequence = static_cast<uint32_t>(message->match_sequence);
  header.tag = message->tag;
  header.remote_key = message->remote_key;
  header.remote_offset = message->remote_offset;
  header.operand = message->operand;
  header.compare = message->compare;
  header.atomic_op = message->atomic_op;
  header.atomic_type = message->atomic_type;
  header.elements = message->elements;
  header.fetch = message->answer_bytes > 0;
  header.request = message->request;
  header.value = message->value;
  if (packet.kind == Outstanding::Kind::kBundle) {
    header.kind = wire::MessageKind::kBundle;
    header.length = packet.bytes;
  } else if (message->has_immediate) {
    header.flags |= wire::kHasImmediate;
    header.immediate = message->immediate;
  }
  return header;
}

// An acknowledgement that is due now or soon goes along where the packet has room for it: it saves a packet. Of a short
// message it takes the last one, so that those before have one size and leave at once. Simulated lanes count every
// packet with headers of one nominal size, so nothing rides there.
bool Sender::MayRide(const Packet& packet) const {
  if (!acks_->pending() || packet.padding > 0) return false;
  const LaneCapabilities& lane = context_->ports[packet.local_port].capabilities;
  if (lane.nominal_header) return false;
  if (packet.bytes > 0 && !packet.retransmission && !packet.message->single) {
    const uint64_t behind = packet.message->payload_bytes - packet.offset - packet.bytes;
    if (behind > 0 && behind <= kSegmentsBeforeRider * peer_->segment_bytes) return false;
  }
  const size_t header_bytes = context_->data_header_bytes();
  const size_t most =
      std::min<size_t>(lane.max_packet_bytes, PayloadBytes(packet.local_port) + header_bytes);  // that passes
  return packet.bytes + header_bytes + kMostRidingBytes <= most;
}

size_t Sender::EncodeRidingAck(std::span<uint8_t> room, Time now) {
  wire::AckFrame ack;
  acks_->Build(&ack, now);
  wire::Writer writer(room);
  wire::WriteAck(writer, ack);
  ++context_->counters.acks_sent;
  return writer.size();
}

}  // namespace paceline
