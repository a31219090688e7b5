// Which segments of one message have arrived. Up to 64 segments in one word without allocation; longer messages through
// a sliding window, so that a message of a terabyte costs no more than its out-of-order span.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/base/bit_window.h"
#include "transport/base/limits.h"

namespace paceline {

class SegmentTracker {
 public:
  void Reset(uint64_t segments) {
    segments_ = segments;
    word_ = 0;
    arrived_ = 0;
    window_ = segments > 64 ? std::make_unique<BitWindow>(limits::kMaxSegmentsAhead) : nullptr;
  }

  enum class Result { kNew, kDuplicate, kOutOfWindow };
  Result Set(uint64_t segment) {
    if (segment >= segments_) return Result::kOutOfWindow;
    if (window_ == nullptr) {
      const uint64_t bit = uint64_t{1} << segment;
      if (word_ & bit) return Result::kDuplicate;
      word_ |= bit;
    } else {
      if (segment < window_->begin()) return Result::kDuplicate;
      if (!window_->Reaches(segment)) return Result::kOutOfWindow;
      if (!window_->Set(segment)) return Result::kDuplicate;
      if (segment == window_->begin()) window_->AdvanceTo(window_->FirstClear(segment));
    }
    ++arrived_;
    return Result::kNew;
  }
  // Takes [segment, segment + count), `count` > 0, if all of them are new and can be taken; false: none is taken.
  bool SetNew(uint64_t segment, uint64_t count) {
    if (segment + count > segments_) return false;
    if (window_ == nullptr) {
      const uint64_t bits = LowBits(count) << segment;
      if (word_ & bits) return false;
      word_ |= bits;
    } else {
      if (segment < window_->begin() || !window_->Reaches(segment + count - 1) || window_->AnyIn(segment, count)) {
        return false;
      }
      window_->SetRange(segment, count);
      if (segment == window_->begin()) window_->AdvanceTo(window_->FirstClear(segment + count));
    }
    arrived_ += count;
    return true;
  }
  // Set() could take it.
  bool Reaches(uint64_t segment) const {
    return segment < segments_ && (window_ == nullptr || segment < window_->begin() || window_->Reaches(segment));
  }
  bool Test(uint64_t segment) const {
    if (segment >= segments_) return false;
    if (window_ == nullptr) return (word_ >> segment) & 1;
    return segment < window_->begin() || window_->Test(segment);
  }
  bool complete() const { return segments_ > 0 && arrived_ == segments_; }

 private:
  uint64_t segments_ = 0;
  uint64_t word_ = 0;
  uint64_t arrived_ = 0;
  std::unique_ptr<BitWindow> window_;
};

}  // namespace paceline
