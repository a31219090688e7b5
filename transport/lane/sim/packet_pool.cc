#include "transport/lane/sim/packet_pool.h"

#include <cassert>
#include <cstring>

namespace paceline::sim {

uint32_t PacketPool::Allocate(uint32_t real_bytes) {
  if (free_ == kNoPacket) Grow();
  const uint32_t packet = free_;
  Packet& record = records_[packet];
  free_ = record.next;
  record = Packet{};
  if (real_bytes > kInlineBytes) {
    assert(real_bytes <= block_bytes_);
    record.block = TakeBlock();
  }
  ++in_use_;
  return packet;
}

uint32_t PacketPool::Clone(uint32_t packet) {
  const uint32_t real_bytes = records_[packet].real_bytes();
  const uint32_t copy = Allocate(real_bytes);
  const uint32_t block = records_[copy].block;
  records_[copy] = records_[packet];
  records_[copy].block = block;
  if (records_[copy].is(Packet::kTelemetry)) trail(copy) = trail(packet);
  std::memcpy(bytes(copy), bytes(packet), real_bytes);
  return copy;
}

void PacketPool::Grow() {
  const auto first = static_cast<uint32_t>(records_.size());
  records_.resize(first + kPerChunk);
  inline_chunks_.push_back(std::make_unique<uint8_t[]>(size_t{kPerChunk} * kInlineBytes));
  for (uint32_t i = kPerChunk; i-- > 0;) {  // the lowest index is used first
    records_[first + i].next = free_;
    free_ = first + i;
  }
}

uint32_t PacketPool::TakeBlock() {
  if (free_blocks_.empty()) {
    const auto first = static_cast<uint32_t>(block_chunks_.size()) * kPerChunk;
    block_chunks_.push_back(std::make_unique<uint8_t[]>(size_t{kPerChunk} * block_bytes_));
    for (uint32_t i = kPerChunk; i-- > 0;) free_blocks_.push_back(first + i);
  }
  const uint32_t block = free_blocks_.back();
  free_blocks_.pop_back();
  return block;
}

}  // namespace paceline::sim
