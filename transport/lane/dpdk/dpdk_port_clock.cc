#include "transport/lane/dpdk/dpdk_port_clock.h"

#include <rte_ethdev.h>

#include <chrono>
#include <thread>

#include "transport/lane/card_clock_reading.h"

namespace paceline {
namespace {

constexpr std::chrono::milliseconds kMeasuring(10);
constexpr double kMostKilohertz = 1e8;  // beyond any card: it was set meanwhile

std::optional<CardClockReading> ReadPort(uint16_t port) {
  return ReadCardClock([port](uint64_t* ticks) { return rte_eth_read_clock(port, ticks) == 0; });
}

Time Middle(const CardClockReading& reading) { return reading.before + reading.width() / 2; }

}  // namespace

std::optional<DpdkPortClock> DpdkPortClock::Start(uint16_t port) {
  const auto first = ReadPort(port);
  if (!first) return std::nullopt;
  std::this_thread::sleep_for(kMeasuring);
  const auto second = ReadPort(port);
  if (!second || second->ticks <= first->ticks) return std::nullopt;
  const auto nanos = static_cast<double>((Middle(*second) - Middle(*first)).nanos());
  const double kilohertz = static_cast<double>(second->ticks - first->ticks) * 1e6 / nanos;
  if (!(kilohertz >= 1 && kilohertz <= kMostKilohertz)) return std::nullopt;
  CardClock clock(~uint64_t{0}, static_cast<uint64_t>(kilohertz));
  clock.OnReading(second->ticks, second->before, second->after);
  return DpdkPortClock(port, clock, second->after);
}

void DpdkPortClock::Read() {
  const auto reading = ReadPort(port_);
  if (!reading) return;
  clock_.OnReading(reading->ticks, reading->before, reading->after);
  read_at_ = reading->after;
}

}  // namespace paceline
