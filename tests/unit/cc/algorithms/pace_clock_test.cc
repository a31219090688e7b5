#include "cc/algorithms/pace_clock.h"

#include "gtest/gtest.h"

namespace paceline {
namespace {

TEST(PaceClock, KeepsFractions) {
  PaceClock clock;
  for (int i = 0; i < 10; ++i) clock.Advance(332.8);
  EXPECT_NEAR(static_cast<double>(clock.time().nanos()), 3328, 1);
  PaceClock half;
  half.Advance(0.5);
  EXPECT_EQ(half.time().nanos(), 1);  // rounded up
  half.Advance(0.5);
  EXPECT_EQ(half.time().nanos(), 1);
}

TEST(PaceClock, RaiseOnlyRaises) {
  PaceClock clock;
  clock.RaiseTo(Time::FromNanos(100));
  clock.RaiseTo(Time::FromNanos(50));
  EXPECT_EQ(clock.time().nanos(), 100);
}

TEST(PaceClock, AnInfiniteStepIsBounded) {
  PaceClock clock;
  clock.Advance(1e300);
  EXPECT_EQ(clock.time().nanos(), 3'600'000'000'000);
}

}  // namespace
}  // namespace paceline
