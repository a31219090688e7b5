#include "tests/support/fake_hca_lane.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

namespace paceline::support {

LaneCapabilities HcaLaneCapabilities() {
  LaneCapabilities capabilities;
  capabilities.max_packet_bytes = 4096 + 128;
  capabilities.remote_placement = true;
  capabilities.max_write_bytes = 4096;
  capabilities.entropies = 16;
  capabilities.header_bytes = 64;
  capabilities.link_rate = Rate::Gbps(100);
  capabilities.base_rtt = Duration::Micros(11);
  return capabilities;
}

uint64_t FakeHcaLane::RegisterMemory(const LaneMemory& memory) {
  Region region{.base = reinterpret_cast<uintptr_t>(memory.base),
                .bytes = memory.bytes,
                .reach = static_cast<uint8_t*>(memory.base)};
  if (memory.on_device()) {
    if (refuses_devices_) return 0;
    region.mapped_bytes = memory.dma_buf_offset + memory.bytes;
    void* mapped = mmap(nullptr, region.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.dma_buf, 0);
    if (mapped == MAP_FAILED) return 0;
    region.mapped = static_cast<uint8_t*>(mapped);
    region.reach = region.mapped + memory.dma_buf_offset;
  }
  next_key_ += 0x101;
  regions_[next_key_] = region;
  return next_key_;
}

void FakeHcaLane::Unmap(const Region& region) {
  if (region.mapped != nullptr) munmap(region.mapped, region.mapped_bytes);
}

FakeHcaLane::~FakeHcaLane() {
  for (const auto& [key, region] : regions_) Unmap(region);
}

void FakeHcaLane::DeregisterMemory(uint64_t key) {
  const auto found = regions_.find(key);
  if (found == regions_.end()) {
    network().NoteViolation(std::string(name()) + ": deregistered a key it does not have");
    return;
  }
  Unmap(found->second);
  regions_.erase(found);
}

const uint8_t* FakeHcaLane::PayloadOf(const TxSegment& segment) {
  if (segment.payload_key == 0) return segment.payload;
  const auto region = regions_.find(segment.payload_key);
  const auto address = reinterpret_cast<uint64_t>(segment.payload);
  if (region == regions_.end() || !region->second.Holds(address, segment.payload_bytes)) {
    network().NoteViolation(std::string(name()) + ": a payload outside of the memory whose key it names");
    return nullptr;
  }
  return region->second.reach + (address - region->second.base);
}

void FakeHcaLane::Protect(const void* base, size_t bytes) {
  if (bytes > 0) protected_[reinterpret_cast<uintptr_t>(base)] = bytes;
}

void FakeHcaLane::Unprotect(const void* base, size_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(base);
  const uintptr_t end = start + bytes;
  auto it = protected_.lower_bound(start);
  if (it != protected_.begin() && std::prev(it)->first + std::prev(it)->second > start) --it;
  while (it != protected_.end() && it->first < end) {
    const uintptr_t old_start = it->first;
    const uintptr_t old_end = old_start + it->second;
    it = protected_.erase(it);
    if (old_start < start) protected_[old_start] = start - old_start;
    if (old_end > end) it = protected_.emplace(end, old_end - end).first;
  }
}

void FakeHcaLane::TakeWay(const TxSegment& segment, NetworkPacket& packet) {
  Way& way = ways_[{segment.peer, segment.connection, segment.entropy}];
  if (!std::exchange(way.open, true)) way.opened = network().packets_sent();
  packet.way = way.number;
  packet.opened = way.opened;
}

void FakeHcaLane::EndWrites(uint32_t peer, uint32_t connection) {
  ++writes_ended_;
  for (auto& [path, way] : ways_) {
    if (std::get<0>(path) == peer && std::get<1>(path) == connection) GiveUp(way);
  }
}

void FakeHcaLane::FenceWrites(uint32_t connection) {
  ++writes_fenced_;
  if (fences_ == Fences::kNever) return;
  if (fences_ == Fences::kHold) fenced_[connection] = network().packets_sent();
  NetworkPacket told;
  told.kind = SegmentKind::kFenced;
  told.connection = connection;
  HandOut(std::move(told));
}

bool FakeHcaLane::Place(const NetworkPacket& packet) {
  uint32_t& newest = newest_way_[{packet.from, packet.connection, packet.entropy}];
  const auto fenced = fenced_.find(packet.connection);
  if (packet.way < newest || (fenced != fenced_.end() && packet.opened < fenced->second)) {
    ++writes_refused_;
    return false;
  }
  newest = packet.way;
  const uint64_t bytes = packet.payload_bytes;
  if (bytes > 0) {
    const auto region = regions_.find(packet.remote_key);
    if (region == regions_.end() || !region->second.Holds(packet.remote_address, bytes)) {
      ++writes_refused_;
      return false;
    }
    const auto start = static_cast<uintptr_t>(packet.remote_address);
    auto next = protected_.lower_bound(start);
    const bool hits_next = next != protected_.end() && next->first < start + bytes;
    const bool hits_previous = next != protected_.begin() && std::prev(next)->first + std::prev(next)->second > start;
    if (hits_next || hits_previous) {
      network().NoteViolation(std::string(name()) + ": packet " + std::to_string(packet.index) +
                              " wrote into memory that its owner has got back");
    }
    if (packet.phantom_bytes == 0) {
      std::memcpy(region->second.reach + (start - region->second.base), packet.bytes.data(), bytes);
    }
  }
  ++writes_placed_;
  return true;
}

}  // namespace paceline::support
