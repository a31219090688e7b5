// Which fragments of the segments of one message have arrived. Only segments of which a part is here take memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "transport/base/bit_window.h"
#include "transport/core/fragments.h"

namespace paceline {

class FragmentTracker {
 public:
  explicit FragmentTracker(uint32_t segment_bytes)
      : segment_bytes_(segment_bytes), unit_(FragmentUnit(segment_bytes)) {}

  // Whether [offset, offset + bytes) of a message of `payload` bytes is one fragment.
  static bool IsFragment(uint32_t segment_bytes, uint64_t offset, uint32_t bytes, uint64_t payload) {
    const uint64_t unit = FragmentUnit(segment_bytes);
    const uint64_t begin = offset % segment_bytes, end = begin + bytes;
    if (bytes == 0 || offset >= payload || begin % unit != 0) return false;
    const uint64_t whole = std::min<uint64_t>(segment_bytes, payload - (offset - begin));
    return end == whole || (end < whole && end % unit == 0);
  }

  enum class Result { kNew, kDuplicate, kWhole, kFull };
  // Takes one fragment of a segment that is not whole. kWhole: with it the segment is, and is forgotten here. kFull:
  // the fragments of `most` segments are here already, and of this one none.
  Result Add(uint64_t offset, uint32_t bytes, uint64_t payload, size_t most) {
    const uint64_t segment = offset / segment_bytes_, begin = offset % segment_bytes_;
    const uint64_t whole = std::min(segment_bytes_, payload - (offset - begin));
    const uint64_t bits = LowBits(Units(begin + bytes)) & ~LowBits(begin / unit_);
    const auto found = arrived_.find(segment);
    if (found == arrived_.end() && arrived_.size() >= most) return Result::kFull;
    uint64_t& arrived = found == arrived_.end() ? arrived_[segment] : found->second;
    if ((arrived & bits) == bits) return Result::kDuplicate;
    arrived |= bits;
    if (arrived != LowBits(Units(whole))) return Result::kNew;
    arrived_.erase(segment);
    return Result::kWhole;
  }
  // [segment, segment + count) have arrived as a whole.
  void Forget(uint64_t segment, uint64_t count) {
    for (uint64_t i = 0; i < count && !arrived_.empty(); ++i) arrived_.erase(segment + i);
  }
  // Calls `visit` with the offset and the size of each unit that is here of a segment that is not whole. (The last of a
  // message may be shorter than that.)
  template <typename Visit>
  void ForEachUnit(const Visit& visit) const {
    for (const auto& [segment, arrived] : arrived_) {
      for (uint64_t bits = arrived; bits != 0; bits &= bits - 1) {
        const uint64_t begin = static_cast<uint64_t>(std::countr_zero(bits)) * unit_;
        visit(segment * segment_bytes_ + begin, std::min(unit_, segment_bytes_ - begin));
      }
    }
  }
  // Segments of which a part is here.
  size_t size() const { return arrived_.size(); }

 private:
  uint64_t Units(uint64_t bytes) const { return (bytes + unit_ - 1) / unit_; }

  uint64_t segment_bytes_, unit_;
  absl::flat_hash_map<uint64_t, uint64_t> arrived_;  // by segment: a bit per unit
};

}  // namespace paceline
