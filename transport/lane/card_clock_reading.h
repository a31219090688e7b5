// Reads a card's clock beside the host's: what a CardClock is told.
//
// Thread rule: as the card's clock.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "transport/base/time.h"

namespace paceline {

// What a card's clock showed between two looks at the host's (CLOCK_MONOTONIC).
struct CardClockReading {
  uint64_t ticks = 0;
  Time before, after;
  Duration width() const { return after - before; }
};

// `read`: puts what the clock shows there; false when it cannot be read. Of up to three readings the narrowest, as
// somebody may have interrupted the process between its looks. Nothing: one failed.
std::optional<CardClockReading> ReadCardClock(absl::FunctionRef<bool(uint64_t*)> read);

}  // namespace paceline
