// How many bytes may be in flight through one of several local ports while faster ones have room. A message ends with
// the last of its packets, so a port must not hold packets for longer than another one needs for the whole rest of the
// message (as BLEST and ECF schedule the paths of MPTCP: Ferlin et al., IFIP Networking 2016; Lim et al., CoNEXT 2017).
// The bound follows the round trips that are measured: no rate has to be known. Sizes are payload bytes.
//
// Thread rule: the endpoint's thread. One object per connection and local port.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "transport/base/time.h"

namespace paceline {

class PortWindow {
 public:
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
  static constexpr Duration kNoTarget = Duration::Seconds(3600);

  // `in_flight`: payload bytes through this port, those just sent among them.
  void OnSent(uint64_t in_flight, Time now) {
    most_in_flight_ = std::max(most_in_flight_, in_flight);
    used_at_ = now;
  }

  // `rtt`: of a packet with payload; `host_delay`: what hosts may add to it.
  void OnRtt(Duration rtt, Duration host_delay, uint32_t segment_bytes, Time now) {
    recent_rtt_ = measured() ? recent_rtt_ + (rtt - recent_rtt_) / kSamples : rtt;
    if (now - round_start_ < recent_rtt_) return;
    round_start_ = now;
    most_before_ = std::exchange(most_in_flight_, 0);
    if (most_before_ == 0) return;
    const bool unlimited = window_ == kUnlimited;
    const Duration limit = unlimited ? target_ * 3 + host_delay : target_ + (target_ + host_delay) / 2;
    if (recent_rtt_ > limit) {
      window_ = static_cast<uint64_t>(static_cast<double>(most_before_) * static_cast<double>(limit.nanos()) /
                                      static_cast<double>(recent_rtt_.nanos()));
      rounds_unused_ = 0;
    } else if (most_before_ * 2 >= window_) {
      window_ = std::max<uint64_t>(window_ + window_ / 2, segment_bytes);
      rounds_unused_ = 0;
    } else if (!unlimited && ++rounds_unused_ >= kRoundsUnused) {
      window_ = kUnlimited;
    }
  }

  bool measured() const { return recent_rtt_ > Duration(); }
  // How long it takes until `bytes` more than those in flight are acknowledged.
  Duration RoundTripWith(uint64_t bytes) const {
    const uint64_t in_flight = std::max({most_in_flight_, most_before_, uint64_t{1}});
    const double share = static_cast<double>(bytes) / static_cast<double>(in_flight);
    return recent_rtt_ + Duration::Nanos(static_cast<int64_t>(static_cast<double>(recent_rtt_.nanos()) * share));
  }
  // The shortest RoundTripWith of the other usable ports, for the rest of the message that is to be sent next;
  // kNoTarget: no other port is usable.
  void SetTarget(Duration target) { target_ = target; }
  // How many bytes may be in flight.
  uint64_t BytesAllowed(uint32_t segment_bytes, Time now) const {
    if (target_ == kNoTarget) return kUnlimited;
    // An unused port is not measured: one segment now and then shows whether it has become faster.
    const bool tries = recent_rtt_ <= target_ || now - used_at_ >= kTrialInterval;
    return window_ < segment_bytes && tries ? segment_bytes : window_;
  }

 private:
  static constexpr int64_t kSamples = 4;
  static constexpr int kRoundsUnused = 16;
  static constexpr Duration kTrialInterval = Duration::Millis(100);

  uint64_t window_ = kUnlimited;
  int rounds_unused_ = 0;  // in a row in which half of the window was enough
  Duration recent_rtt_;
  Duration target_ = kNoTarget;
  uint64_t most_in_flight_ = 0;  // in this round trip
  uint64_t most_before_ = 0;     // and in the one before
  Time round_start_;
  Time used_at_;
};

}  // namespace paceline
