#include "tests/support/scripted_lane.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace paceline::support {

LaneCapabilities PacketLaneCapabilities() {
  LaneCapabilities capabilities;
  capabilities.max_packet_bytes = 4096 + 128;
  capabilities.ecn = true;
  capabilities.trimming = true;
  capabilities.entropies = 64;
  capabilities.header_bytes = 64;
  capabilities.link_rate = Rate::Gbps(100);
  capabilities.base_rtt = Duration::Micros(11);
  return capabilities;
}

ScriptedLane::ScriptedLane(ScriptedNetwork* network, const LaneCapabilities& capabilities)
    : network_(network),
      capabilities_(capabilities),
      port_(network->AddPort(this)),
      address_(AddressOfPort(port_)),
      name_("scripted:" + std::to_string(port_)) {}

ScriptedLane::~ScriptedLane() { network_->RemovePort(port_); }

LaneAddress ScriptedLane::AddressOfPort(uint32_t port) {
  LaneAddress address;
  address.size = sizeof(port);
  std::memcpy(address.bytes.data(), &port, sizeof(port));
  return address;
}

uint32_t ScriptedLane::OpenPeer(const LaneAddress& address) {
  uint32_t port = ~0u;  // an address that nobody has: packets to it vanish
  if (address.size == sizeof(port)) std::memcpy(&port, address.bytes.data(), sizeof(port));
  if (reach_ && !reach_(port)) return 0;
  for (auto& [number, peer] : peers_) {
    if (peer.port == port) {
      ++peer.references;
      return number;
    }
  }
  peers_[next_peer_] = Peer{port, 1};
  return next_peer_++;
}

void ScriptedLane::ClosePeer(uint32_t peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) {
    network_->NoteViolation(name_ + ": a peer was closed more often than it was opened");
  } else if (--found->second.references == 0) {
    peers_.erase(found);
  }
}

size_t ScriptedLane::RoomTo(uint32_t peer) {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.port == full_port_ ? 0 : room();
}

void ScriptedLane::CheckSegment(const TxSegment& segment) {
  auto require = [this](bool holds, const char* rule) {
    if (!holds) network_->NoteViolation(name_ + ": " + rule);
  };
  require(peers_.contains(segment.peer), "segment for a peer that is not open");
  require(segment.entropy < capabilities_.entropies, "segment with an entropy that the lane does not have");
  if (segment.kind == SegmentKind::kPacket) {
    require(segment.header != nullptr && segment.header_bytes > 0, "packet without a header");
    require(segment.header_bytes + segment.payload_bytes <= capabilities_.max_packet_bytes, "packet too long");
    require(segment.payload_key == 0, "packet with a payload that only a card can read");
    const bool may_be_late = capabilities_.reads_later && segment.payload_stays && segment.payload != nullptr;
    const std::shared_ptr<Lent> lent = may_be_late ? LentAt(segment.payload, segment.payload_bytes) : nullptr;
    require(!may_be_late || lent != nullptr, "payload that stays in memory that was not lent");
    require(!segment.on_device || ReadsFromDevice(segment.payload, segment.payload_bytes),
            "payload in memory of a GPU that the card does not read");
  } else {
    require(capabilities_.remote_placement, "write on a lane that takes none");
    require(segment.payload_bytes <= capabilities_.max_write_bytes, "write too long");
  }
}

size_t ScriptedLane::Send(std::span<const TxSegment> segments) {
  const size_t count = std::min(segments.size(), room_limit_);
  for (const TxSegment& segment : segments.first(count)) {
    CheckSegment(segment);
    NetworkPacket packet;
    const auto peer = peers_.find(segment.peer);
    packet.from = port_;
    packet.to = peer == peers_.end() ? ~0u : peer->second.port;
    packet.kind = segment.kind;
    packet.ecn_capable = segment.ecn_capable;
    packet.control = segment.control;
    packet.entropy = segment.entropy;
    packet.payload_bytes = segment.payload_bytes;
    packet.connection = segment.connection;
    packet.immediate = segment.immediate;
    packet.remote_key = segment.remote_key;
    if (segment.kind == SegmentKind::kWrite) {
      packet.remote_address = segment.remote_address;
      TakeWay(segment, packet);
    } else {
      packet.header_bytes = segment.header_bytes;
      packet.bytes.assign(segment.header, segment.header + segment.header_bytes);
    }
    if (segment.payload_bytes > 0 && segment.payload == nullptr) {
      packet.phantom_bytes = segment.payload_bytes;
    } else if (const std::shared_ptr<Lent> lent =
                   segment.payload_stays ? LentAt(segment.payload, segment.payload_bytes) : nullptr;
               lent != nullptr) {
      ++late_packets_;
      packet.add_payload = [lent, at = segment.payload - lent->base, count = segment.payload_bytes](auto& bytes) {
        const uint8_t* from = (lent->returned ? lent->kept.data() : lent->view) + at;
        bytes.insert(bytes.end(), from, from + count);
      };
    } else if (segment.payload_bytes > 0) {
      const uint8_t* payload = PayloadOf(segment);
      if (payload != nullptr) packet.bytes.insert(packet.bytes.end(), payload, payload + segment.payload_bytes);
    }
    ++counters_.tx_packets;
    counters_.tx_bytes += packet.bytes.size() + packet.phantom_bytes;
    network_->Send(std::move(packet));
  }
  ++counters_.tx_calls;
  return count;
}

std::shared_ptr<ScriptedLane::Lent> ScriptedLane::LentAt(const uint8_t* payload, size_t bytes) const {
  for (const std::shared_ptr<Lent>& lent : lent_) {
    const bool begins = bytes > 0 && payload >= lent->base && payload < lent->base + lent->bytes;
    if (begins && bytes <= lent->bytes - static_cast<size_t>(payload - lent->base)) return lent;
  }
  return nullptr;
}

bool ScriptedLane::LendMemory(const LaneMemory& memory) {
  if (!capabilities_.reads_later) network_->NoteViolation(name_ + ": memory was lent to a lane that reads none");
  Lent lent{.base = static_cast<const uint8_t*>(memory.base), .bytes = memory.bytes, .on_device = memory.on_device()};
  lent.view = lent.base;
  if (memory.on_device()) {
    if (least_of_devices_ == SIZE_MAX) return false;
    const size_t bytes = memory.dma_buf_offset + memory.bytes;
    void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, memory.dma_buf, 0);
    if (mapped == MAP_FAILED) return false;
    lent.mapping = {mapped, [bytes](void* at) { munmap(at, bytes); }};
    lent.view = static_cast<const uint8_t*>(mapped) + memory.dma_buf_offset;
  }
  lent_.push_back(std::make_shared<Lent>(std::move(lent)));
  return true;
}

bool ScriptedLane::ReadsFromDevice(const uint8_t* payload, size_t bytes) const {
  const std::shared_ptr<Lent> lent = LentAt(payload, bytes);
  if (lent == nullptr || !lent->on_device || bytes < least_of_devices_) return false;
  constexpr uintptr_t kPage = 4096;
  const auto address = [](const uint8_t* at) { return reinterpret_cast<uintptr_t>(at); };
  return address(payload) >= (address(lent->base) + kPage - 1) / kPage * kPage &&
         address(payload) + bytes <= (address(lent->base) + lent->bytes) / kPage * kPage;
}

void ScriptedLane::ReturnMemory(const LaneMemory& memory) {
  const auto found = std::find_if(lent_.begin(), lent_.end(), [&memory](const std::shared_ptr<Lent>& lent) {
    return lent->base == memory.base && lent->bytes == memory.bytes;
  });
  if (found == lent_.end()) {
    network_->NoteViolation(name_ + ": memory was given back that was not lent");
    return;
  }
  (*found)->kept.assign((*found)->view, (*found)->view + (*found)->bytes);
  (*found)->returned = true;
  lent_.erase(found);
}

bool ScriptedLane::Place(const NetworkPacket&) {
  network_->NoteViolation(name_ + ": a write arrived at a lane that takes none");
  return false;
}

void ScriptedLane::Deliver(NetworkPacket packet) {
  // What a card has placed it also tells of: only packets find the queue full.
  if (packet.kind == SegmentKind::kPacket && rx_queue_limit_ > 0 && arrived_.size() >= rx_queue_limit_) {
    ++counters_.rx_drops;
    return;
  }
  if (packet.add_payload) packet.add_payload(packet.bytes);
  if (packet.kind == SegmentKind::kWrite && !Place(packet)) return;
  HandOut(std::move(packet));
}

size_t ScriptedLane::Receive(std::span<RxSegment> out, Time now) {
  handed_out_.clear();
  sources_.clear();
  const size_t count = std::min(out.size(), arrived_.size());
  if (count == 0) return 0;
  sources_.reserve(count);  // pointers into it are handed out
  for (size_t i = 0; i < count; ++i) {
    handed_out_.push_back(std::move(arrived_.front()));
    arrived_.pop_front();
  }
  for (size_t i = 0; i < count; ++i) {
    NetworkPacket& packet = handed_out_[i];
    sources_.push_back(AddressOfPort(packet.from));
    RxSegment& segment = out[i];
    segment = RxSegment{};
    segment.kind = packet.kind;
    segment.congestion_experienced = packet.congestion_experienced;
    segment.trimmed = packet.trimmed;
    segment.received_at = now - waited_;
    segment.entropy = packet.entropy;
    if (packet.kind == SegmentKind::kPacket) {
      // An exact copy on the heap: a read past the end is seen by the address sanitizer.
      packet.bytes.shrink_to_fit();
      segment.data = packet.bytes.data();
      segment.data_bytes = static_cast<uint32_t>(packet.bytes.size());
      segment.phantom_bytes = packet.phantom_bytes;
      if (packet.index % 2 == 1 && packet.bytes.size() > packet.header_bytes) {  // apart, as some lanes do
        segment.data_bytes = packet.header_bytes;
        segment.payload = segment.data + packet.header_bytes;
        segment.payload_bytes = static_cast<uint32_t>(packet.bytes.size()) - packet.header_bytes;
      }
      segment.source = &sources_[i];
    } else {
      segment.connection = packet.connection;
      segment.immediate = packet.immediate;
      segment.placed_bytes = packet.payload_bytes;
    }
    ++counters_.rx_packets;
    counters_.rx_bytes += packet.bytes.size() + packet.phantom_bytes;
  }
  ++counters_.rx_calls;
  PutWhereGuessed(out.first(count));
  return count;
}

// Packets from the first on that are not longer than was thought, whatever they are. The rest of the room is spoilt, as
// a lane may that finds out too late that it has put something there which belongs elsewhere.
void ScriptedLane::PutWhereGuessed(std::span<RxSegment> segments) {
  const PlacementGuess guess = std::exchange(guess_, PlacementGuess());
  if (guess.packets > 0) std::memset(guess.to, 0xa5, size_t{guess.packets} * guess.payload_bytes);
  guessed_headers_.clear();
  for (size_t i = 0; i < std::min<size_t>(segments.size(), guess.packets); ++i) {
    RxSegment& segment = segments[i];
    const std::vector<uint8_t>& bytes = handed_out_[i].bytes;
    if (segment.kind != SegmentKind::kPacket || segment.trimmed || segment.phantom_bytes > 0 ||
        bytes.size() <= guess.header_bytes || bytes.size() > size_t{guess.header_bytes} + guess.payload_bytes) {
      break;
    }
    guessed_headers_.emplace_back(bytes.begin(), bytes.begin() + guess.header_bytes);
    segment.data = guessed_headers_.back().data();
    segment.data_bytes = guess.header_bytes;
    segment.payload = guess.to + i * guess.payload_bytes;
    segment.payload_bytes = static_cast<uint32_t>(bytes.size()) - guess.header_bytes;
    std::memcpy(segment.payload, bytes.data() + guess.header_bytes, segment.payload_bytes);
    segment.guessed = true;
  }
}

}  // namespace paceline::support
