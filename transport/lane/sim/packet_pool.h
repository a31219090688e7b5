// Packets in flight in the simulated fabric: a compact record that switches look at (half a cache line), and beside it
// the bytes that only end hosts look at. Both come from free lists; once the fabric has warmed up nothing is allocated.
//
// Up to kInlineBytes of header live beside the record; a packet with a real payload takes one block of the largest
// packet's size from a second pool, header and payload behind each other. A phantom payload has a length and no bytes.
//
// Thread rule: one owner. A record's reference is valid until the next Allocate, its bytes until Free.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/base/limits.h"
#include "transport/base/telemetry.h"

namespace paceline::sim {

inline constexpr uint32_t kNoPacket = 0xffffffff;

struct Packet {
  enum Flags : uint8_t {
    kControl = 1,     // travels in the priority queue, is never trimmed
    kEcnCapable = 2,  // may be marked
    kMarked = 4,      // congestion experienced
    kTrimmed = 8,     // payload was cut by a switch
    kPhantom = 16,    // payload has a length only
    kTelemetry = 32,  // switch ports write into its TelemetryTrail
  };

  uint32_t next = kNoPacket;  // in whichever queue it waits
  uint32_t wire_bytes = 0;
  uint32_t source = 0;       // NIC
  uint32_t destination = 0;  // slot of the NIC, see topology.h
  uint32_t route_hash = 0;   // 16 bits for each tier that has a choice
  uint32_t payload_bytes = 0;
  uint32_t block = kNoPacket;  // in the second pool, or kNoPacket: the bytes are inline
  uint16_t header_bytes = 0;   // real bytes of the opaque header
  uint8_t flags = 0;
  uint8_t unused = 0;

  bool is(Flags flag) const { return (flags & flag) != 0; }
  void set(Flags flag) { flags = static_cast<uint8_t>(flags | flag); }
  // Real bytes behind the record: the header, and the payload unless it is a phantom or was cut.
  uint32_t real_bytes() const { return header_bytes + ((flags & (kPhantom | kTrimmed)) != 0 ? 0 : payload_bytes); }
};
static_assert(sizeof(Packet) == 32);

// What the ports on the way have said of themselves, in their order.
struct TelemetryTrail {
  uint32_t hops = 0;
  std::array<HopTelemetry, limits::kMaxTelemetryHops> hop;

  void Add(const HopTelemetry& record) {
    if (hops < hop.size()) hop[hops++] = record;
  }
};

class PacketPool {
 public:
  static constexpr uint32_t kInlineBytes = 128;

  explicit PacketPool(uint32_t block_bytes) : block_bytes_(block_bytes) {}

  // A cleared record with room for `real_bytes` (at most the larger of kInlineBytes and block_bytes).
  uint32_t Allocate(uint32_t real_bytes);
  uint32_t Clone(uint32_t packet);
  void Free(uint32_t packet) {
    Packet& record = records_[packet];
    if (record.block != kNoPacket) free_blocks_.push_back(record.block);
    record.next = free_;
    free_ = packet;
    --in_use_;
  }

  Packet& operator[](uint32_t packet) { return records_[packet]; }
  const Packet& operator[](uint32_t packet) const { return records_[packet]; }
  uint8_t* bytes(uint32_t packet) {
    const uint32_t block = records_[packet].block;
    return block == kNoPacket ? Chunk(inline_chunks_, packet, kInlineBytes) : Chunk(block_chunks_, block, block_bytes_);
  }

  // Of a packet with kTelemetry; starts with whatever an earlier packet left. Takes no memory before the first call.
  TelemetryTrail& trail(uint32_t packet) {
    while (trail_chunks_.size() <= packet / kPerChunk) {
      trail_chunks_.push_back(std::make_unique<TelemetryTrail[]>(kPerChunk));
    }
    return trail_chunks_[packet / kPerChunk][packet % kPerChunk];
  }

  size_t in_use() const { return in_use_; }
  size_t capacity() const { return records_.size(); }

 private:
  static constexpr uint32_t kPerChunk = 256;
  using Chunks = std::vector<std::unique_ptr<uint8_t[]>>;

  static uint8_t* Chunk(const Chunks& chunks, uint32_t index, uint32_t size) {
    // cppcheck-suppress CastIntegerToAddressAtReturn ; it loses the type behind [] of a constant vector
    return chunks[index / kPerChunk].get() + size_t{index % kPerChunk} * size;
  }
  void Grow();
  uint32_t TakeBlock();

  const uint32_t block_bytes_;
  std::vector<Packet> records_;
  Chunks inline_chunks_;
  Chunks block_chunks_;
  std::vector<std::unique_ptr<TelemetryTrail[]>> trail_chunks_;
  std::vector<uint32_t> free_blocks_;
  uint32_t free_ = kNoPacket;
  size_t in_use_ = 0;
};

}  // namespace paceline::sim
