// The times of a card's clock on the host's.
#include "transport/lane/card_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "transport/base/random.h"

namespace paceline {
namespace {

constexpr uint64_t kKilohertz = 156'250;  // 6.4 ns a tick

// A card's clock that runs `per_million` too fast.
struct Card {
  double per_million = 0;
  uint64_t offset = 123'456'789'000;
  uint64_t mask = ~uint64_t{0};
  uint64_t TicksAt(Time host) const {
    const double ticks = static_cast<double>(host.nanos()) * kKilohertz / 1e6 * (1 + per_million / 1e6);
    return (offset + static_cast<uint64_t>(std::llround(ticks))) & mask;
  }
};

int64_t Off(const CardClock& clock, const Card& card, Time at) {
  return std::abs((clock.ToHost(card.TicksAt(at)) - at).nanos());
}

TEST(CardClock, TellsTimesBeforeAndAfterAReading) {
  const Card card;
  CardClock clock(card.mask, kKilohertz);
  const Time at = Time::FromNanos(5'000'000'000);
  clock.OnReading(card.TicksAt(at), at - Duration::Nanos(100), at + Duration::Nanos(100));
  for (const int micros : {-10'000, -1, 0, 1, 10'000}) {
    EXPECT_LE(Off(clock, card, at + Duration::Micros(micros)), 10) << micros;
  }
}

// Also where the clock has come round since, or is about to.
TEST(CardClock, TellsWhereTheCardStandsAtATime) {
  for (const uint64_t mask : {~uint64_t{0}, (uint64_t{1} << 24) - 1}) {
    const Card card{.mask = mask};
    CardClock clock(card.mask, kKilohertz);
    const Time at = Time::FromNanos(5'000'000'000);
    clock.OnReading(card.TicksAt(at), at - Duration::Nanos(100), at + Duration::Nanos(100));
    for (const int micros : {-10'000, -1, 0, 1, 10'000}) {
      const Time then = at + Duration::Micros(micros);
      EXPECT_LE((clock.ToCard(then) - card.TicksAt(then) + 2) & mask, 4u) << micros;
      EXPECT_LE(std::abs((clock.ToHost(clock.ToCard(then)) - then).nanos()), 7) << micros;
    }
  }
}

// Looks that are up to 2 us apart, one in ten with an interruption of up to 5 ms between them. After 2 s the rate is
// known well enough for a second without a reading.
TEST(CardClock, FollowsAClockThatRunsFastOrSlow) {
  for (const double per_million : {-200.0, -3.0, 0.0, 80.0, 500.0}) {
    SCOPED_TRACE(per_million);
    const Card card{.per_million = per_million};
    CardClock clock(card.mask, kKilohertz);
    Random random(7);
    Time now = Time::FromNanos(1'000'000'000);
    for (int reading = 0; reading < 1000; ++reading) {
      now = now + Duration::Millis(5);
      const Duration width = Duration::Nanos(static_cast<int64_t>(random.Below(1000)));
      const Duration interrupted =
          Duration::Nanos(random.Below(10) == 0 ? static_cast<int64_t>(random.Below(5'000'000)) : 0);
      clock.OnReading(card.TicksAt(now), now - width, now + width + interrupted);
      if (reading < 10) continue;  // one of the first may have been interrupted
      const bool known = reading > 410;
      ASSERT_LE(Off(clock, card, known ? now + Duration::Millis(5) : now), known ? 3000 : 10'000);
    }
    EXPECT_LE(Off(clock, card, now + Duration::Seconds(1)), 10'000);
  }
}

TEST(CardClock, AReadingThatWasInterruptedChangesNothing) {
  const Card card;
  CardClock clock(card.mask, kKilohertz);
  Time at = Time::FromNanos(1'000'000'000);
  clock.OnReading(card.TicksAt(at), at, at);
  at = at + Duration::Millis(5);
  clock.OnReading(card.TicksAt(at), at, at + Duration::Millis(50));
  EXPECT_LE(Off(clock, card, at), 10);
}

TEST(CardClock, CountsOnWhereTheCardBeginsAgain) {
  Card card{.mask = (uint64_t{1} << 32) - 1};  // a round takes 27 s
  card.offset = card.mask - 1000;
  CardClock clock(card.mask, kKilohertz);
  for (int step = 0; step < 100; ++step) {
    const Time at = Time::FromNanos(step * 700'000'000LL);
    clock.OnReading(card.TicksAt(at), at, at);
    EXPECT_LE(Off(clock, card, at + Duration::Millis(500)), 20) << step;
    EXPECT_LE(Off(clock, card, at - Duration::Micros(step > 0 ? 1000 : 0)), 20) << step;
  }
}

TEST(CardClock, BeginsAgainWhereTheCardsClockWasSet) {
  Card card{.per_million = 80};
  CardClock clock(card.mask, kKilohertz);
  Time now = Time::FromNanos(1'000'000'000);
  for (int reading = 0; reading < 2000; ++reading) {
    now = now + Duration::Millis(5);
    if (reading == 1000) card.offset = 5;
    clock.OnReading(card.TicksAt(now), now, now + Duration::Micros(1));
    EXPECT_LE(Off(clock, card, now), 1000) << reading;
    EXPECT_LE(Off(clock, card, now + Duration::Seconds(1)), 100'000) << "a rate that the card does not have";
  }
  EXPECT_LE(Off(clock, card, now + Duration::Seconds(1)), 3000) << "the rate is measured anew";
}

}  // namespace
}  // namespace paceline
