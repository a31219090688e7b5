// The clock of a port, rte_eth_read_clock of DPDK, and the host's. Ports count from anywhere and state no rate, so the
// rate is measured at the start.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "transport/base/time.h"
#include "transport/lane/card_clock.h"

namespace paceline {

class DpdkPortClock {
 public:
  // Of a port that has started. Blocks for 10 ms. Nothing: its clock cannot be read, or stands still.
  static std::optional<DpdkPortClock> Start(uint16_t port);

  // Compares the port's clock with the host's: to be called every few milliseconds.
  void Read();

  Time ToHost(uint64_t ticks) const { return clock_.ToHost(ticks); }
  uint64_t ToPort(Time host) const { return clock_.ToCard(host); }
  // When it was last read.
  Time read_at() const { return read_at_; }

 private:
  DpdkPortClock(uint16_t port, const CardClock& clock, Time read_at) : port_(port), clock_(clock), read_at_(read_at) {}

  uint16_t port_;
  CardClock clock_;
  Time read_at_;
};

}  // namespace paceline
