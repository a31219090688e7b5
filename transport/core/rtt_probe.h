// The round trip to a peer as a receiver measures it, who gets no acknowledgements: by pings, which the peer echoes,
// while data packets arrive. A ping goes with the first one, and then with one in kPacketsPerPing, at most every
// kInterval, and never while one is unanswered that may still be.
//
// Thread rule: the endpoint's thread. One object per connection that receives; made with its first data packet.
#pragma once

#include <cstdint>

#include "transport/base/time.h"
#include "transport/core/tx/rtt.h"

namespace paceline {

class RttProbe {
 public:
  // True: a ping is due, whose value will be BeginPing's.
  bool OnArrival(uint32_t packets, Time now) {
    packets_ += packets;
    if (asked_ && (packets_ < kPacketsPerPing || now - sent_at_ < (waits_ ? kPatience : kInterval))) return false;
    packets_ = 0;
    asked_ = true;
    return true;
  }
  uint32_t BeginPing(Time now) {
    sent_at_ = now;
    waits_ = true;
    return value();
  }
  // True: `rtt()` may have changed. (A ping that waits for the peer's program tells nothing of the network.)
  bool OnPong(uint32_t value_echoed, Time now) {
    if (!waits_ || value_echoed != value()) return false;
    waits_ = false;
    rtt_.OnSample(now - sent_at_, now);
    return rtt_.measured();
  }
  Duration rtt() const { return rtt_.least(); }

 private:
  static constexpr uint32_t kPacketsPerPing = 32;
  static constexpr Duration kInterval = Duration::Millis(2);
  static constexpr Duration kPatience = Duration::Millis(100);  // then an answer is taken for lost

  uint32_t value() const { return static_cast<uint32_t>(sent_at_.nanos()); }

  RttEstimator rtt_{Duration()};
  Time sent_at_;
  uint32_t packets_ = 0;  // since the last ping
  bool asked_ = false;    // at all
  bool waits_ = false;    // the newest ping is not answered
};

}  // namespace paceline
