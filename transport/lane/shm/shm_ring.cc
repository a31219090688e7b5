#include "transport/lane/shm/shm_ring.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "transport/base/time.h"
#include "transport/lane/shm/streaming_copy.h"

namespace paceline {
namespace {

// The flag that a sleeper leaves is only ever exchanged. Of two exchanges the later one sees the earlier and all that
// was done before it: so whoever moves a position and then takes the flag sees that the other sleeps, or the other,
// which leaves its flag and then looks once more, sees the position.
bool Exchange(std::atomic<uint32_t>& flag, bool value) { return flag.exchange(value, std::memory_order_acq_rel) != 0; }

constexpr uint64_t PayloadAt(uint32_t header_bytes) { return ShmPacketBytes(header_bytes, 0); }
static_assert(PayloadAt(1) % kStreamedLineBytes == 0);

}  // namespace

// ---- the writer

void ShmRingWriter::LookForRoom() {
  const uint64_t released = memory_.control->released.load(std::memory_order_acquire);
  // Behind what was released before, or ahead of what was written: no reader of ours does that.
  broken_ |= released < released_ || released > written_;
  if (!broken_) released_ = released;
}

uint64_t ShmRingWriter::Room(uint64_t enough) {
  if (memory_.ring_bytes - (written_ - released_) < enough) LookForRoom();
  return broken_ ? 0 : memory_.ring_bytes - (written_ - released_);
}

bool ShmRingWriter::Write(std::span<const uint8_t> header, std::span<const uint8_t> payload) {
  const auto header_bytes = static_cast<uint32_t>(header.size());
  const auto payload_bytes = static_cast<uint32_t>(payload.size());
  const uint64_t bytes = ShmPacketBytes(header_bytes, payload_bytes);
  if (Room(bytes) < bytes) return false;
  uint8_t* at = memory_.packets + (written_ & (memory_.ring_bytes - 1));
  const uint64_t word = uint64_t{header_bytes} << 32 | payload_bytes;
  std::memcpy(at, &word, sizeof(word));
  if (header_bytes > 0) std::memcpy(at + sizeof(word), header.data(), header_bytes);
  if (payload_bytes >= ShmCopyChoice::kLeastBytes) {
    CopyLarge(at + PayloadAt(header_bytes), payload.data(), payload_bytes);
  } else if (payload_bytes > 0) {
    std::memcpy(at + PayloadAt(header_bytes), payload.data(), payload_bytes);
  }
  written_ += bytes;
  memory_.control->written.store(written_, std::memory_order_release);
  return true;
}

void ShmRingWriter::CopyLarge(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  using Clock = std::chrono::steady_clock;
  const ShmCopyChoice::Turn turn = choice_.Next(bytes);
  const Clock::time_point before = turn.is_timed ? Clock::now() : Clock::time_point();
  if (turn.way == ShmCopyChoice::Way::kStreaming) {
    StreamingCopy(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
  if (!turn.is_timed) return;
  const std::chrono::nanoseconds took = Clock::now() - before;
  choice_.Note(turn.way, bytes, Duration::Nanos(took.count()));
}

bool ShmRingWriter::ReaderSleeps() { return Exchange(memory_.control->reader_sleeps, false); }

void ShmRingWriter::AskNoMore() { Exchange(memory_.control->writer_sleeps, false); }

bool ShmRingWriter::AskForRoom(uint64_t bytes) {
  Exchange(memory_.control->writer_sleeps, true);
  if (broken_ || Room(bytes) < bytes) return true;
  AskNoMore();
  return false;
}

// ---- the reader

uint64_t ShmRingReader::Waiting() {
  if (written_ == read_) {
    const uint64_t written = memory_.control->written.load(std::memory_order_acquire);
    broken_ |= written < written_ || written - released_ > memory_.ring_bytes;
    if (!broken_) written_ = written;
  }
  return broken_ ? 0 : written_ - read_;
}

// Positions are sums of ShmPacketBytes, whatever the writer says, so the word lies within the ring.
bool ShmRingReader::Read(Packet* packet) {
  const uint64_t waiting = Waiting();
  if (waiting == 0) return false;
  uint8_t* at = memory_.packets + (read_ & (memory_.ring_bytes - 1));
  // The lines of a short packet come from the writer's cache at the same time, not one after the other.
  if (waiting > 64) __builtin_prefetch(at + 64);
  if (waiting > 128) __builtin_prefetch(at + 128);
  const uint64_t word = __atomic_load_n(reinterpret_cast<const uint64_t*>(at), __ATOMIC_RELAXED);
  const auto header_bytes = static_cast<uint32_t>(word >> 32);
  const auto payload_bytes = static_cast<uint32_t>(word);
  if (header_bytes > max_header_bytes_ || ShmPacketBytes(header_bytes, payload_bytes) > waiting) {
    broken_ = true;
    return false;
  }
  packet->header = at + sizeof(word);
  packet->header_bytes = header_bytes;
  packet->payload = at + PayloadAt(header_bytes);
  packet->payload_bytes = payload_bytes;
  read_ += ShmPacketBytes(header_bytes, payload_bytes);
  return true;
}

bool ShmRingReader::Release() {
  if (released_ == read_) return false;
  released_ = read_;
  memory_.control->released.store(released_, std::memory_order_release);
  return Exchange(memory_.control->writer_sleeps, false);
}

bool ShmRingReader::AskForPackets() {
  Exchange(memory_.control->reader_sleeps, true);
  if (Waiting() == 0) return true;
  AskNoMore();
  return false;
}

void ShmRingReader::AskNoMore() { Exchange(memory_.control->reader_sleeps, false); }

}  // namespace paceline
