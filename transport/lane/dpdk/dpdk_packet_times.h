// When packets came, as the port has stamped them (RTE_ETH_RX_OFFLOAD_TIMESTAMP), and when they are to leave
// (RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP): the dynamic fields of DPDK's buffers for both, in the time of the host.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "transport/base/time.h"
#include "transport/lane/dpdk/dpdk_port_clock.h"

struct rte_mbuf;

namespace paceline {

class DpdkPacketTimes {
 public:
  // Before a port that can send on time is started: drivers look whether anybody has asked for the field.
  static void AnnounceDepartures();
  // Of a port that was configured to stamp what arrives, or to send on time, and has started; see
  // DpdkPortClock::Start. Nothing where neither can be had.
  static std::optional<DpdkPacketTimes> Start(uint16_t port, bool arrivals, bool departures);

  bool arrivals() const { return stamped_ != 0; }
  bool departures() const { return timed_ != 0; }

  // See DpdkPortClock::Read.
  void ReadClock() { clock_.Read(); }

  // Never after `now`; `now` for a packet without a stamp.
  Time CameAt(const rte_mbuf& packet, Time now) const;

  // The port holds the packet back until then; one that is to leave long after the port's clock was last read leaves at
  // once. Needs departures().
  void LeaveAt(rte_mbuf& packet, Time at) const;

 private:
  explicit DpdkPacketTimes(const DpdkPortClock& clock) : clock_(clock) {}

  DpdkPortClock clock_;
  int stamp_at_ = 0, time_at_ = 0;    // bytes from the beginning of a buffer's state
  uint64_t stamped_ = 0, timed_ = 0;  // the flags of buffers that have them; 0: none has
};

}  // namespace paceline
