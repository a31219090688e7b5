// One direction between two processes: a ring of packets in memory that both have mapped, one writer and one reader.
//
//   control   one page: four words on cache lines of their own, below
//   packets   `ring_bytes`, a power of two, mapped twice in a row, so that a packet that crosses the end is in one
//   piece
//
//   position  counts bytes from 0 and never wraps; a packet at position p lies at p mod ring_bytes
//   packet    a word (header bytes << 32 | payload bytes), the header, then from the next multiple of 64 bytes the
//             payload; in all a multiple of 64 bytes
//
// The writer publishes a packet by moving `written`, the reader gives its place back by moving `released`. Who is about
// to sleep leaves a flag, looks once more, and is woken by the other, who clears the flag and then rings (by a socket,
// which is not this file's affair). So nobody makes a system call while both are awake.
//
// The other side is not trusted: it may write anything into all of this memory, at any time. What is read from it is
// read once and checked against what this side knows by itself; a packet's header is copied out before it is looked at;
// what cannot be makes the ring `broken`, which then says that it is empty, or full, for good.
//
// Thread rule: a writer and a reader belong to one thread each. Ownership: neither owns the memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/lane/shm/shm_copy_choice.h"

namespace paceline {

struct ShmRingControl {
  alignas(128) std::atomic<uint64_t> written;        // by the writer: position behind the last packet
  alignas(128) std::atomic<uint64_t> released;       // by the reader: position up to which it needs nothing any more
  alignas(128) std::atomic<uint32_t> reader_sleeps;  // set by the reader: wake me when something is written
  alignas(128) std::atomic<uint32_t> writer_sleeps;  // set by the writer: wake me when something is released
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

inline constexpr size_t kShmControlBytes = 4096;
static_assert(sizeof(ShmRingControl) <= kShmControlBytes);

// Where a ring lies: control and packets, as mapped by this side.
struct ShmRingMemory {
  ShmRingControl* control = nullptr;
  uint8_t* packets = nullptr;  // 2 * ring_bytes: the second half shows the same memory as the first
  uint64_t ring_bytes = 0;
};

// Bytes of the ring that a packet takes.
constexpr uint64_t ShmPacketBytes(uint32_t header_bytes, uint32_t payload_bytes) {
  constexpr uint64_t kLine = 64;
  const auto lines = [](uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  return lines(sizeof(uint64_t) + header_bytes) + lines(payload_bytes);
}

class ShmRingWriter {
 public:
  explicit ShmRingWriter(const ShmRingMemory& memory) : memory_(memory), choice_(memory.ring_bytes) {}

  // Copies a packet in. False: there is no room for it (or the ring is broken).
  bool Write(std::span<const uint8_t> header, std::span<const uint8_t> payload);
  // After writing: true, once, when the reader is to be woken.
  bool ReaderSleeps();

  // Bytes that can be written now, at least; what the other side says is only looked at when less than `enough` are
  // known of.
  uint64_t Room(uint64_t enough);
  // Room for `bytes` is what this side will wait for in a sleep: true if the reader will wake it, false if there is.
  bool AskForRoom(uint64_t bytes);
  // Nobody sleeps any more.
  void AskNoMore();

  bool broken() const { return broken_; }

 private:
  void LookForRoom();
  // Of a payload for which there is a choice.
  void CopyLarge(uint8_t* to, const uint8_t* from, uint32_t bytes);

  ShmRingMemory memory_;
  uint64_t written_ = 0;
  uint64_t released_ = 0;  // as last seen
  bool broken_ = false;
  ShmCopyChoice choice_;
};

class ShmRingReader {
 public:
  // A packet, still in the ring; the writer may change its bytes at any time.
  struct Packet {
    const uint8_t* header = nullptr;
    uint32_t header_bytes = 0;
    uint8_t* payload = nullptr;
    uint32_t payload_bytes = 0;
  };

  // Longer headers than `max_header_bytes` break the ring.
  ShmRingReader(const ShmRingMemory& memory, uint32_t max_header_bytes)
      : memory_(memory), max_header_bytes_(max_header_bytes) {}

  // The next packet. It stays in place until Release. False: nothing there.
  bool Read(Packet* packet);
  // Bytes read and not released.
  uint64_t held_bytes() const { return read_ - released_; }
  // Gives everything read back to the writer. True, once: the writer is to be woken.
  bool Release();

  // This side is about to sleep. True: the writer will wake it; false: something is there.
  bool AskForPackets();
  // It does not sleep any more.
  void AskNoMore();

  bool broken() const { return broken_; }

 private:
  // Written and not read, in bytes.
  uint64_t Waiting();

  ShmRingMemory memory_;
  uint32_t max_header_bytes_;
  uint64_t read_ = 0;
  uint64_t released_ = 0;
  uint64_t written_ = 0;  // as last seen
  bool broken_ = false;
};

}  // namespace paceline
