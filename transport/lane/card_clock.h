// Tells times of a card's clock as times of the host's. The two begin anywhere and run at rates that differ by some
// parts in a million; readings of both, taken together now and then, keep the difference small.
//
// Between two looks at the host's clock the card's was read: so much is certain, and the time told of it is put between
// the two. Where it was expected there already, as when the process was interrupted between its looks, nothing changes.
// How fast the card's clock really runs is measured over a second each. One that is further off than 100 us and a part
// in a thousand of what passed since the last reading has been set, and is begun with again.
//
// Thread rule: one thread. Deterministic: reads no clock.
#pragma once

#include <cstdint>

#include "transport/base/time.h"

namespace paceline {

class CardClock {
 public:
  // `mask`: the bits that the card counts with, from the lowest on. `kilohertz`: what it says of its rate, not 0.
  CardClock(uint64_t mask, uint64_t kilohertz)
      : mask_(mask), stated_(1e6 / static_cast<double>(kilohertz)), nanos_per_tick_(stated_) {}

  // The card's clock stood at `ticks` between `before` and `after`.
  void OnReading(uint64_t ticks, Time before, Time after);

  // The host's time when the card's clock stood at `ticks`, less than half a round of it before or after the last
  // reading. There must have been one.
  Time ToHost(uint64_t ticks) const;
  // Where the card's clock stands at that time, likewise.
  uint64_t ToCard(Time host) const;

 private:
  int64_t TicksSince(uint64_t ticks, uint64_t since) const;
  void Begin(uint64_t ticks, Time at);

  uint64_t mask_;
  double stated_;  // nanoseconds per tick, as the card says
  double nanos_per_tick_;
  bool read_ = false;
  uint64_t ticks_ = 0;  // the last reading
  Time at_;
  Time measured_since_;
  int64_t measured_ticks_ = 0;
};

}  // namespace paceline
