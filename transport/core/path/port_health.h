// Which local ports still reach the peer. A port whose packets are all found lost, while another one's arrive, is
// rested: its share goes to the others, and after a while one burst tries whether it has come back (the rest doubles
// each time).
//
// Thread rule: the endpoint's thread. One object per connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "transport/base/limits.h"
#include "transport/base/time.h"

namespace paceline {

class PortHealth {
 public:
  void OnAck(uint32_t port) {
    if (ports_ != nullptr) (*ports_)[port] = State();
  }

  void OnLoss(uint32_t port, Duration round_trip, Time now) {
    State& state = At(port);
    if (++state.losses_in_a_row < kLossesToRest || state.rested_until > now) return;
    state.rested_until = now + std::min(round_trip * (int64_t{8} << state.rests), kLongestRest);
    state.rests = std::min<uint8_t>(state.rests + 1, 10);
    state.losses_in_a_row = kLossesToRest - 1;  // one more loss and it rests again
  }

  // Nothing comes back although the peer was asked: no other port is needed to tell that it is this one.
  void OnSilence(uint32_t port, Duration round_trip, Time now) {
    At(port).losses_in_a_row = kLossesToRest - 1;
    OnLoss(port, round_trip, now);
  }

  bool Rests(uint32_t port, Time now) const { return ports_ != nullptr && (*ports_)[port].rested_until > now; }
  // It has rested, and nothing has been acknowledged through it since.
  bool IsSuspect(uint32_t port) const { return ports_ != nullptr && (*ports_)[port].rests > 0; }

  // May data go through this port? Always when every other one rests or is down.
  template <typename IsUp>
  bool MayUse(uint32_t port, uint32_t ports, Time now, const IsUp& is_up) const {
    if (!Rests(port, now)) return true;
    for (uint32_t other = 0; other < ports; ++other) {
      if (other != port && is_up(other) && !Rests(other, now)) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t kLossesToRest = 16;
  static constexpr Duration kLongestRest = Duration::Millis(200);
  struct State {
    Time rested_until;
    uint16_t losses_in_a_row = 0;
    uint8_t rests = 0;
  };
  State& At(uint32_t port) {
    if (ports_ == nullptr) ports_ = std::make_unique<std::array<State, limits::kMaxPorts>>();
    return (*ports_)[port];
  }
  std::unique_ptr<std::array<State, limits::kMaxPorts>> ports_;  // made with the first loss
};

}  // namespace paceline
