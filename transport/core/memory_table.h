// Registered memory: local regions by id, remote access by random 64-bit key. Revocation is at once: a removed key is
// unknown from the next packet on.
//
// Thread rule: the endpoint's thread. The memory itself belongs to the user.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/core/types.h"

namespace paceline {

struct Region {
  uint8_t* base = nullptr;  // nullptr: phantom
  uint64_t bytes = 0;
  uint8_t access = kLocalOnly;
  MemoryKind kind = MemoryKind::kHost;
  ConnectionId connection = kNoConnection;  // only this peer; kNoConnection: any
  RegionId id = kUnregistered;
  uint64_t key = 0;
  uint64_t origin = 0;  // offset by which remote operations name its first byte
  std::array<uint64_t, limits::kMaxPorts> lane_keys{};
  uint8_t lent_ports = 0;  // bit per port whose lane reads payloads from it later
  // kDevice, as LaneMemory:
  int device = kNoDevice;
  int dma_buf = -1;
  uint64_t dma_buf_offset = 0;
  bool numbered_elsewhere = false;  // Add took the number that it had
  bool live = false;

  LaneMemory ForLanes() const {
    return {.base = base, .bytes = bytes, .device = device, .dma_buf = dma_buf, .dma_buf_offset = dma_buf_offset};
  }
  uint8_t* At(uint64_t offset) const { return base + (offset - origin); }
};

class MemoryTable {
 public:
  // Takes everything from `region`, whose key must be fresh. An id that it has is that of the same region in another
  // table; where some have one, all have. kUnregistered: no id left, or that one is in use.
  RegionId Add(const Region& region);
  void Remove(RegionId id);
  bool HasKey(uint64_t key) const { return by_key_.contains(key); }
  const Region* Find(RegionId id) const;
  // The region's keys on the lanes were exchanged for new ones.
  void SetLaneKeys(RegionId id, const std::array<uint64_t, limits::kMaxPorts>& keys);

  // The GPU in whose memory the region is; kNoDevice: in none's, or no such region.
  int DeviceOf(RegionId id) const {
    const Region* region = id == kUnregistered ? nullptr : Find(id);
    return region == nullptr ? kNoDevice : region->device;
  }

  // May a local operation use this buffer? Unregistered host memory may always be used.
  bool CheckLocal(const LocalBuffer& buffer) const;
  // The region that `key` opens for all of [offset, offset + bytes) with the given access by this connection, or
  // nullptr.
  const Region* CheckRemote(uint64_t key, uint64_t offset, uint64_t bytes, uint8_t access,
                            ConnectionId connection) const;

 private:
  static constexpr uint32_t kSlotBits = 20;
  static constexpr uint32_t kSlotMask = (1u << kSlotBits) - 1;
  std::vector<Region> slots_;
  std::vector<uint32_t> free_;
  absl::flat_hash_map<uint64_t, RegionId> by_key_;
};

}  // namespace paceline
