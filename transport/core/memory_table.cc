#include "transport/core/memory_table.h"

namespace paceline {

RegionId MemoryTable::Add(const Region& region) {
  uint32_t slot;
  if (region.id != kUnregistered) {
    slot = region.id & kSlotMask;
    if (slot >= slots_.size()) slots_.resize(slot + 1);
    if (slots_[slot].live) return kUnregistered;
  } else if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else {
    if (slots_.size() >= (1u << kSlotBits)) return kUnregistered;
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  }
  const uint32_t generation = ((slots_[slot].id >> kSlotBits) + 1) & ((1u << (32 - kSlotBits)) - 1);
  const RegionId fresh = (generation == 0 ? 1 : generation) << kSlotBits | slot;
  slots_[slot] = region;
  slots_[slot].numbered_elsewhere = region.id != kUnregistered;
  if (!slots_[slot].numbered_elsewhere) slots_[slot].id = fresh;
  slots_[slot].live = true;
  by_key_[region.key] = slots_[slot].id;
  return slots_[slot].id;
}

void MemoryTable::Remove(RegionId id) {
  const Region* region = Find(id);
  if (region == nullptr) return;
  const uint32_t slot = id & kSlotMask;
  by_key_.erase(region->key);
  slots_[slot].live = false;
  if (!slots_[slot].numbered_elsewhere) free_.push_back(slot);
}

const Region* MemoryTable::Find(RegionId id) const {
  const uint32_t slot = id & kSlotMask;
  if (id == kUnregistered || slot >= slots_.size() || !slots_[slot].live || slots_[slot].id != id) return nullptr;
  return &slots_[slot];
}

void MemoryTable::SetLaneKeys(RegionId id, const std::array<uint64_t, limits::kMaxPorts>& keys) {
  if (Find(id) != nullptr) slots_[id & kSlotMask].lane_keys = keys;
}

bool MemoryTable::CheckLocal(const LocalBuffer& buffer) const {
  if (buffer.region == kUnregistered) return buffer.data != nullptr || buffer.bytes == 0;
  const Region* region = Find(buffer.region);
  if (region == nullptr) return false;
  if (region->kind == MemoryKind::kPhantom) return buffer.bytes <= region->bytes;
  const auto* begin = static_cast<const uint8_t*>(buffer.data);
  return begin >= region->base && buffer.bytes <= region->bytes &&
         static_cast<uint64_t>(begin - region->base) <= region->bytes - buffer.bytes;
}

const Region* MemoryTable::CheckRemote(uint64_t key, uint64_t offset, uint64_t bytes, uint8_t access,
                                       ConnectionId connection) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  const Region* region = Find(found->second);
  if (region == nullptr || (region->access & access) != access) return nullptr;
  if (region->connection != kNoConnection && region->connection != connection) return nullptr;
  if (offset < region->origin) return nullptr;
  offset -= region->origin;
  if (offset > region->bytes || bytes > region->bytes - offset) return nullptr;
  return region;
}

}  // namespace paceline
