// Segments in fragments: how large packets may be on paths that came to take smaller ones, and how segments are cut.
#include <algorithm>

#include "transport/core/tx/sender.h"

namespace paceline {
namespace {

// A probe's header is shorter than the longest of a data packet.
constexpr uint32_t kProbeHeaderBytes = 64;
constexpr uint32_t kProbeLacks = limits::kMaxDataHeaderBytes - kProbeHeaderBytes;

}  // namespace

// Zero padding where the lane's network does not tell packets apart by their size.
uint32_t Sender::PaddingOf(uint32_t local_port, uint32_t payload_bytes) const {
  const bool by_size = context_->ports[local_port].capabilities.overtaking == Overtaking::kShort;
  return by_size ? payload_bytes + kProbeLacks : 0;
}

// nullptr: the path takes what it took at first, or the peer does not know fragments.
PayloadLimit* Sender::FindLimit(uint32_t local_port) {
  const LaneCapabilities& lane = context_->ports[local_port].capabilities;
  if (!lane.path_may_be_narrower || !peer_->fragments) return nullptr;
  if (payload_limits_.empty()) {
    const uint32_t least = limits::kLeastPacketBytes - static_cast<uint32_t>(context_->data_header_bytes());
    payload_limits_.resize(context_->ports.size(), PayloadLimit(peer_->segment_bytes, least));
  }
  return &payload_limits_[local_port];
}

Duration Sender::SizePatience(uint32_t local_port) const { return ProbeDelay(local_port) * 2; }

// Nothing has arrived for some time, which may be for its size.
void Sender::AskForSizes(uint32_t local_port, Time now) {
  PayloadLimit* const limit = FindLimit(local_port);
  if (limit == nullptr) return;
  const bool silent = std::max(Recovery(local_port, TrafficClass::kBulk).timeouts_in_a_row(),
                               Recovery(local_port, TrafficClass::kShort).timeouts_in_a_row()) >= kTimeoutsBeforeShort;
  limit->TrySmaller(silent, SizePatience(local_port), now);
}

void Sender::NoteSizeLost(const Outstanding& entry, Time now) {
  PayloadLimit* const limit = entry.bytes == 0 || entry.written ? nullptr : FindLimit(entry.local_port);
  if (limit != nullptr) limit->OnLost(entry.bytes, SizePatience(entry.local_port), now);
}

size_t Sender::EmitSizeProbes(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now) {
  PayloadLimit& limit = payload_limits_[port];
  if (limit.Lower(now)) ++context_->counters.payload_limits_lowered;
  if (backlog() > 0 && !Recovery(port, TrafficClass::kBulk).in_backoff()) limit.TryLarger(now);
  size_t filled = 0;
  for (; limit.next() > 0 && filled < room && RoomForNew(); limit.Next()) {
    Emit(ProbeOf(port, ClassOf(port, limit.next()), limit.next()), burst, at + filled, now);
    ++filled;
    ++context_->counters.tail_probes;
  }
  if (limit.next() > 0 && filled == room) state_->ready_ports |= static_cast<uint8_t>(1u << port);
  return filled;
}

// Some path takes less than a segment.
bool Sender::HasLimit() const {
  return std::any_of(payload_limits_.begin(), payload_limits_.end(),
                     [this](const PayloadLimit& limit) { return limit.bytes() < peer_->segment_bytes; });
}

// A packet like it, sent then, has arrived.
void Sender::NoteSizeArrived(const Outstanding& entry, Time sent_at) {
  const bool is_probe = entry.kind == Outstanding::Kind::kProbe;
  const auto bytes = is_probe ? static_cast<uint32_t>(entry.offset) : entry.bytes;
  payload_limits_[entry.local_port].OnArrived(bytes, is_probe, sent_at);
}

// How much of [offset, offset + bytes), which lies in one segment, the next packet takes. What a card may place goes
// whole: it cuts by itself, and the receiver could not tell its bytes from those of fragments.
uint32_t Sender::FirstFragment(uint32_t local_port, const TxMessage& message, uint32_t bytes) const {
  return message.placement != nullptr ? bytes : std::min(bytes, payload_limits_[local_port].bytes());
}

// Bytes of a message from `offset` to the end of its segment.
uint32_t Sender::RestOfSegment(const TxMessage& message, uint64_t offset) const {
  const uint64_t behind = peer_->segment_bytes - offset % peer_->segment_bytes;
  return static_cast<uint32_t>(std::min(behind, message.payload_bytes - offset));
}

// Bytes of a lost segment that were retransmitted already, as fragments.
uint32_t Sender::FragmentsSent(const Outstanding& entry) const {
  return entry.kind == Outstanding::Kind::kSegment ? entry.parts * FragmentUnit(peer_->segment_bytes) : 0;
}

// The next fragment of a lost segment is retransmitted; the rest stays queued.
void Sender::SendFragmentOf(Outstanding& lost, uint32_t bytes) {
  lost.parts = static_cast<uint16_t>(lost.parts + bytes / FragmentUnit(peer_->segment_bytes));
  retransmit_bytes_ -= bytes;
  NoteFragmented(*lost.message);
}

// One packet more is to be acknowledged before it is whole.
void Sender::NoteFragmented(TxMessage& message) {
  message.fragmented = true;
  ++message.segments_left;
}

}  // namespace paceline
