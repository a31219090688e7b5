#include "transport/lane/dpdk/dpdk_packet_times.h"

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <algorithm>

namespace paceline {

namespace {

constexpr Duration kKnown = Duration::Seconds(1);  // after a reading of the port's clock

}  // namespace

void DpdkPacketTimes::AnnounceDepartures() { rte_mbuf_dyn_tx_timestamp_register(nullptr, nullptr); }

std::optional<DpdkPacketTimes> DpdkPacketTimes::Start(uint16_t port, bool arrivals, bool departures) {
  if (!arrivals && !departures) return std::nullopt;
  const auto clock = DpdkPortClock::Start(port);
  if (!clock) return std::nullopt;
  DpdkPacketTimes times(*clock);
  if (arrivals && rte_mbuf_dyn_rx_timestamp_register(&times.stamp_at_, &times.stamped_) != 0) times.stamped_ = 0;
  if (departures && rte_mbuf_dyn_tx_timestamp_register(&times.time_at_, &times.timed_) != 0) times.timed_ = 0;
  if (!times.arrivals() && !times.departures()) return std::nullopt;
  return times;
}

Time DpdkPacketTimes::CameAt(const rte_mbuf& packet, Time now) const {
  if ((packet.ol_flags & stamped_) == 0) return now;
  return std::min(clock_.ToHost(*RTE_MBUF_DYNFIELD(&packet, stamp_at_, const rte_mbuf_timestamp_t*)), now);
}

void DpdkPacketTimes::LeaveAt(rte_mbuf& packet, Time at) const {
  if (at - clock_.read_at() > kKnown) return;
  *RTE_MBUF_DYNFIELD(&packet, time_at_, rte_mbuf_timestamp_t*) = clock_.ToPort(at);
  packet.ol_flags |= timed_;
}

}  // namespace paceline
