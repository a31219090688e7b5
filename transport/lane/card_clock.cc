#include "transport/lane/card_clock.h"

#include <algorithm>
#include <cmath>

namespace paceline {
namespace {

constexpr Duration kMeasured = Duration::Seconds(1);
constexpr double kMostOff = 1e-3;  // of the stated rate
constexpr Duration kSmall = Duration::Micros(100);

}  // namespace

int64_t CardClock::TicksSince(uint64_t ticks, uint64_t since) const {
  const uint64_t forward = (ticks - since) & mask_;
  if (forward <= mask_ / 2) return static_cast<int64_t>(forward);
  return -static_cast<int64_t>((since - ticks) & mask_);
}

Time CardClock::ToHost(uint64_t ticks) const {
  return at_ + Duration::Nanos(std::llround(static_cast<double>(TicksSince(ticks, ticks_)) * nanos_per_tick_));
}

uint64_t CardClock::ToCard(Time host) const {
  const auto ticks = std::llround(static_cast<double>((host - at_).nanos()) / nanos_per_tick_);
  return (ticks_ + static_cast<uint64_t>(ticks)) & mask_;
}

void CardClock::Begin(uint64_t ticks, Time at) {
  ticks_ = ticks;
  at_ = measured_since_ = at;
  measured_ticks_ = 0;
  nanos_per_tick_ = stated_;
}

void CardClock::OnReading(uint64_t ticks, Time before, Time after) {
  if (!read_) {
    read_ = true;
    Begin(ticks, before + (after - before) / 2);
    return;
  }
  const Time expected = ToHost(ticks);
  const Time at = std::clamp(expected, before, after);
  const Duration off = std::max(at - expected, expected - at);
  if (off > kSmall + std::max(at - at_, Duration()).Scaled(kMostOff)) {
    Begin(ticks, before + (after - before) / 2);
    return;
  }
  measured_ticks_ += TicksSince(ticks, ticks_);
  ticks_ = ticks;
  at_ = at;
  if (at - measured_since_ < kMeasured) return;
  const double rate = static_cast<double>((at - measured_since_).nanos()) / static_cast<double>(measured_ticks_);
  nanos_per_tick_ = std::clamp(rate, stated_ * (1 - kMostOff), stated_ * (1 + kMostOff));
  measured_since_ = at;
  measured_ticks_ = 0;
}

}  // namespace paceline
