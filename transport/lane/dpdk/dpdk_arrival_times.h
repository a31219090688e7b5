// When packets came, as the port has stamped them, on the host's clock: RTE_ETH_RX_OFFLOAD_TIMESTAMP and
// rte_eth_read_clock of DPDK. Ports count from anywhere and state no rate, so the rate is measured at the start.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "transport/base/time.h"
#include "transport/lane/card_clock.h"

struct rte_mbuf;

namespace paceline {

class DpdkArrivalTimes {
 public:
  // Of a port that was configured to stamp, and has started. Blocks for 10 ms. Nothing: its clock cannot be read, or
  // stands still.
  static std::optional<DpdkArrivalTimes> Start(uint16_t port);

  // Compares the port's clock with the host's: to be called every few milliseconds.
  void ReadClock();

  // Never after `now`; `now` for a packet without a stamp.
  Time CameAt(const rte_mbuf& packet, Time now) const;

 private:
  DpdkArrivalTimes(uint16_t port, int stamp_at, uint64_t stamped, const CardClock& clock)
      : port_(port), stamp_at_(stamp_at), stamped_(stamped), clock_(clock) {}

  uint16_t port_;
  int stamp_at_;      // bytes from the beginning of a buffer's state
  uint64_t stamped_;  // the flag of buffers that have a stamp
  CardClock clock_;
};

}  // namespace paceline
