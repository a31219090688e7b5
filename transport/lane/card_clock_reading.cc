#include "transport/lane/card_clock_reading.h"

#include <time.h>

namespace paceline {
namespace {

constexpr int kMostReadings = 3;
constexpr Duration kNarrow = Duration::Micros(2);

Time Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time::FromNanos(now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec);
}

}  // namespace

std::optional<CardClockReading> ReadCardClock(absl::FunctionRef<bool(uint64_t*)> read) {
  std::optional<CardClockReading> narrowest;
  for (int i = 0; i < kMostReadings; ++i) {
    CardClockReading reading;
    reading.before = Now();
    if (!read(&reading.ticks)) return std::nullopt;
    reading.after = Now();
    if (!narrowest || reading.width() < narrowest->width()) narrowest = reading;
    if (narrowest->width() <= kNarrow) break;
  }
  return narrowest;
}

}  // namespace paceline
