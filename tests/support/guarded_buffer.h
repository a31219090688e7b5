// Memory of an operation in a test: contents that follow from a number, with guard bytes before and behind that must
// never change.
//
// Thread rule: one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "transport/core/types.h"

namespace paceline::support {

// The contents that `id` stands for, eight bytes at a time: those at offset 8 * word, little endian.
inline uint64_t PatternWord(uint64_t id, uint64_t word) {
  uint64_t mixed = (id + 1) * 0x9e3779b97f4a7c15 + word * 0xd6e8feb86659fd93;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9;
  return mixed ^ (mixed >> 32);
}
inline uint8_t PatternByte(uint64_t id, uint64_t offset) {
  return static_cast<uint8_t>(PatternWord(id, offset >> 3) >> (8 * (offset & 7)));
}

inline void FillPattern(uint8_t* data, size_t bytes, uint64_t id, uint64_t first_offset = 0) {
  size_t i = 0;
  while (i < bytes) {
    if ((first_offset + i) % 8 == 0 && bytes - i >= 8) {
      const uint64_t word = PatternWord(id, (first_offset + i) / 8);
      std::memcpy(data + i, &word, 8);
      i += 8;
    } else {
      data[i] = PatternByte(id, first_offset + i);
      ++i;
    }
  }
}

// Index of the first byte that differs from the pattern; `bytes` when none does.
inline size_t FindDifference(const uint8_t* data, size_t bytes, uint64_t id, uint64_t first_offset = 0) {
  size_t i = 0;
  while (i < bytes) {
    if ((first_offset + i) % 8 == 0 && bytes - i >= 8) {
      const uint64_t word = PatternWord(id, (first_offset + i) / 8);
      if (std::memcmp(data + i, &word, 8) == 0) {
        i += 8;
        continue;
      }
    }
    if (data[i] != PatternByte(id, first_offset + i)) return i;
    ++i;
  }
  return bytes;
}

// What no test writes.
inline constexpr uint8_t kPoison = 0xdd;
inline bool IsPoison(const uint8_t* data, size_t bytes) {
  return std::all_of(data, data + bytes, [](uint8_t byte) { return byte == kPoison; });
}

class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes) : bytes_(bytes), memory_(bytes + 2 * kGuard, kGuardByte) { Poison(); }

  uint8_t* data() { return memory_.data() + kGuard; }
  const uint8_t* data() const { return memory_.data() + kGuard; }
  size_t size() const { return bytes_; }
  LocalBuffer local(RegionId region = kUnregistered) { return {data(), bytes_, region}; }

  void Fill(uint64_t id) { FillPattern(data(), bytes_, id); }
  bool Holds(uint64_t id) const { return HoldsFirst(bytes_, id); }
  bool HoldsFirst(size_t bytes, uint64_t id) const { return FindDifference(data(), bytes, id) == bytes; }
  // Sets every byte to kPoison; Untouched: they all still have it, from `from` on.
  void Poison() { std::memset(data(), kPoison, bytes_); }
  bool Untouched(size_t from = 0) const { return IsPoison(data() + from, bytes_ - from); }
  bool GuardsIntact() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (memory_[i] != kGuardByte || memory_[kGuard + bytes_ + i] != kGuardByte) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr uint8_t kGuardByte = 0xa5;
  size_t bytes_;
  std::vector<uint8_t> memory_;
};

}  // namespace paceline::support
