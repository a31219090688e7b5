// Spaces what is sent at a rate. In any span of time t it lets through at most rate * (t + slack) bytes plus one
// packet. Where the lane waits with each packet until it is due, more go into its hands, so far ahead.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <algorithm>

#include "transport/base/time.h"

namespace paceline {

class Pacer {
 public:
  // May a packet go now? (`slack`: how far behind its schedule the pacer may catch up in one go.)
  bool CanSend(Time now) const { return next_nanos_ <= static_cast<double>(now.nanos()); }
  // When it may: for a timer.
  Time next_send() const { return Time::FromNanos(static_cast<int64_t>(next_nanos_) + 1); }

  // When the first packet of the Send that follows is due; each one behind it a packet's time later.
  Time Due(Duration slack, Time now) const {
    return std::max(Time::FromNanos(static_cast<int64_t>(next_nanos_)), now - slack);
  }

  // Packets of `wire_bytes` go, the first of them now in any case, and as many more of `most` as are due before `ahead`
  // has passed: returns how many.
  uint32_t Send(uint32_t most, int64_t wire_bytes, Rate rate, Duration slack, Time now, Duration ahead = Duration()) {
    if (rate.is_unlimited()) {
      next_nanos_ = 0;
      return most;
    }
    const double earliest = static_cast<double>((now - slack).nanos());
    const double gap = std::min(rate.NanosFor(wire_bytes), 1e12);
    uint32_t sent = 0;
    do {
      next_nanos_ = std::max(next_nanos_, earliest) + gap;
    } while (++sent < most && CanSend(now + ahead));
    return sent;
  }

 private:
  double next_nanos_ = 0;
};

}  // namespace paceline
