// Up to eight entropies that came back and wait to be used again, oldest first (Bonato et al., "REPS: Recycled Entropy
// Packet Spraying", 2024: a ring of 8). When it is full, further ones are let go.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <array>
#include <cstdint>

namespace paceline {

class EntropyRing {
 public:
  bool empty() const { return count_ == 0; }
  void Add(uint16_t entropy) {
    if (count_ == kSize) return;
    ring_[(head_ + count_) % kSize] = entropy;
    ++count_;
  }
  uint16_t TakeOldest() {
    const uint16_t entropy = ring_[head_];
    head_ = (head_ + 1) % kSize;
    --count_;
    return entropy;
  }

 private:
  static constexpr uint32_t kSize = 8;
  std::array<uint16_t, kSize> ring_{};
  uint32_t head_ = 0, count_ = 0;
};

}  // namespace paceline
