// The most payload bytes of a packet through one port. The path MTU may shrink while a connection stands (a tunnel,
// another route). When payload is no longer acknowledged, or 32 packets are lost and none as long arrives, probes of
// several sizes find what still passes, as in the black-hole detection of RFC 8899 (DPLPMTUD), but all sizes at once:
// eighths of a segment, and what every network takes. Larger sizes are probed again, soon at first (a full queue, too,
// drops long packets sooner than short ones), then ever more seldom.
//
// Thread rule: the endpoint's thread. One object per connection and local port. Sizes are payload bytes of data
// packets; all but a whole segment are multiples of FragmentUnit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/base/time.h"
#include "transport/core/fragments.h"

namespace paceline {

class PayloadLimit {
 public:
  static constexpr Duration kFirstTrial = Duration::Millis(10);  // of larger packets; the next after twice the time
  static constexpr Duration kLongestTrial = Duration::Seconds(64);
  static constexpr uint32_t kSuspicious = 32;  // so many packets from which nothing arrives: their size may be why

  // `least_bytes`: passes everywhere.
  PayloadLimit(uint32_t segment_bytes, uint32_t least_bytes) : segment_bytes_(segment_bytes), bytes_(segment_bytes) {
    const uint32_t unit = FragmentUnit(segment_bytes);
    const auto add = [this, unit](uint32_t bytes) {
      bytes = bytes / unit * unit;
      if (bytes > 0 && (count_ == 0 || bytes > sizes_[count_ - 1])) sizes_[count_++] = bytes;
    };
    add(std::min(least_bytes, segment_bytes / kSteps));
    for (uint32_t i = 1; i < kSteps; ++i) add(segment_bytes / kSteps * i);
    sizes_[count_++] = segment_bytes;
  }

  uint32_t bytes() const { return bytes_; }

  // A packet with so much payload has been lost. So many since one as large has arrived suggest that its size is why.
  void OnLost(uint32_t bytes, Duration patience, Time now) {
    if (lost_ == 0) lost_since_ = now;
    least_lost_ = lost_ == 0 ? bytes : std::min(least_lost_, bytes);
    if (++lost_ < kSuspicious) return;
    lost_ = 0;
    TrySmaller(/*also_short=*/least_lost_ * 2 <= bytes_, patience, now);
  }
  // This size and smaller ones are to be asked for; those of half the size and less, which a network may send ahead of
  // long ones that wait, only where `also_short`. `patience`: how long larger ones may take to arrive behind smaller
  // ones.
  void TrySmaller(bool also_short, Duration patience, Time now) {
    if (!proven_ && candidate_ > 0) return;  // it has been asked
    wait_until_ = now + patience;
    proven_ = false;
    candidate_ = 0;
    Ask(also_short ? 0 : CountUpTo(bytes_ / 2), CountUpTo(bytes_));
  }
  // Smaller sizes have been asked for, and nothing of this size has arrived since: data is better held back, until
  // Lower() or, where no size at all arrives, for the patience.
  bool in_doubt(Time now) const { return !proven_ && (candidate_ > 0 || now < wait_until_); }
  // Larger sizes are to be asked for, if it is time to.
  void TryLarger(Time now) {
    if (bytes_ == segment_bytes_ || now < try_larger_at_) return;
    trial_ = std::min(trial_ * 2, kLongestTrial);
    try_larger_at_ = now + trial_;
    Ask(CountUpTo(bytes_), count_);
  }
  // The next size to ask for by a probe, largest first; 0: none. Next() is for when one is.
  uint32_t next() const { return left_ > 0 ? sizes_[first_ + left_ - 1] : 0; }
  void Next() { --left_; }

  // A packet sent then, as large as a data packet with so much payload, has arrived.
  void OnArrived(uint32_t bytes, bool is_probe, Time sent_at) {
    if (bytes >= least_lost_ && sent_at >= lost_since_) lost_ = 0;
    if (bytes < segment_bytes_) bytes -= bytes % FragmentUnit(segment_bytes_);
    if (bytes >= bytes_) {
      bytes_ = bytes;
      proven_ = true;
    } else if (is_probe && bytes >= sizes_.front()) {
      candidate_ = std::max(candidate_, bytes);
    }
  }
  // The patience is over, and only smaller sizes have arrived, and no other packet of this size: then the limit falls,
  // and true is returned. (Short packets may overtake long ones that wait in a queue: these are given some time.)
  bool Lower(Time now) {
    if (proven_ || candidate_ == 0 || now < wait_until_) return false;
    bytes_ = candidate_;
    proven_ = true;
    trial_ = kFirstTrial;
    try_larger_at_ = now + trial_;
    return true;
  }

 private:
  static constexpr uint32_t kSteps = 8;

  size_t CountUpTo(uint32_t bytes) const {
    const auto begin = sizes_.begin(), end = begin + static_cast<std::ptrdiff_t>(count_);
    return static_cast<size_t>(std::upper_bound(begin, end, bytes) - begin);
  }
  void Ask(size_t first, size_t end) {
    first_ = first;
    left_ = end - first;
  }

  uint32_t segment_bytes_;
  uint32_t bytes_;
  uint32_t lost_ = 0;  // packets of at least least_lost_ since one of them has arrived that was sent after lost_since_
  uint32_t least_lost_ = 0;
  Time lost_since_;
  Time wait_until_;                           // for what was asked for last
  bool proven_ = true;                        // a packet of this size, or larger, has arrived since
  uint32_t candidate_ = 0;                    // the largest probe of a smaller size that has arrived since; 0: none
  std::array<uint32_t, kSteps + 1> sizes_{};  // ascending
  size_t count_ = 0;
  size_t first_ = 0, left_ = 0;  // of sizes_, to be asked for
  Duration trial_ = kFirstTrial;
  Time try_larger_at_;
};

}  // namespace paceline
