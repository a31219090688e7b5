#include "transport/lane/shm/shm_ring.h"

#include <algorithm>
#include <cstring>

namespace paceline {
namespace {

// Between what this side has written and its look at what the other has: neither must pass the other. The other side
// has the same fence between the same two steps the other way round, so at least one of the two sees the other's.
void Fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

bool TakeFlag(std::atomic<uint32_t>& flag) {
  Fence();
  return flag.load(std::memory_order_relaxed) != 0 && flag.exchange(0, std::memory_order_relaxed) != 0;
}

constexpr uint64_t PayloadAt(uint32_t header_bytes) { return ShmPacketBytes(header_bytes, 0); }

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
  std::memcpy(at + sizeof(word), header.data(), header_bytes);
  if (payload_bytes > 0) std::memcpy(at + PayloadAt(header_bytes), payload.data(), payload_bytes);
  written_ += bytes;
  memory_.control->written.store(written_, std::memory_order_release);
  return true;
}

bool ShmRingWriter::ReaderSleeps() { return TakeFlag(memory_.control->reader_sleeps); }

bool ShmRingWriter::AskForRoom(uint64_t bytes) {
  memory_.control->writer_sleeps.store(1, std::memory_order_relaxed);
  Fence();
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
  return TakeFlag(memory_.control->writer_sleeps);
}

bool ShmRingReader::AskForPackets() {
  memory_.control->reader_sleeps.store(1, std::memory_order_relaxed);
  Fence();
  if (Waiting() == 0) return true;
  AskNoMore();
  return false;
}

}  // namespace paceline
