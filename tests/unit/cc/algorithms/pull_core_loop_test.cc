#include "cc/algorithms/pull_core_loop.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace paceline {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// The first `count` different rates when the same arrives every microsecond.
std::vector<double> Rates(PullCoreLoop& loop, Time& now, size_t count, uint64_t packets, uint64_t marked,
                          uint64_t trimmed) {
  std::vector<double> rates;
  double last = loop.rate();
  for (int i = 0; i < 1000 && rates.size() < count; ++i) {
    loop.Advance(now);
    if (loop.rate() != last) rates.push_back(last = loop.rate());
    loop.OnArrival(packets, marked, trimmed);
    now = now + Duration::Micros(1);
  }
  return rates;
}

MATCHER_P(Near, value, "") { return ::testing::Value(arg, DoubleNear(value, 1e-9)); }

TEST(PullCoreLoop, MarksLowerTheRateByTheirAverage) {
  PullCoreLoop loop({}, Duration::Micros(14), 4, 1);
  Time now = Time::FromNanos(1000);
  // g = 0.5, 0.75, 0.875; the rate is multiplied by 1 - (g - 0.3) / 2 each time.
  EXPECT_THAT(Rates(loop, now, 3, 10, 10, 0), ElementsAre(Near(0.9), Near(0.9 * 0.775), Near(0.9 * 0.775 * 0.7125)));
  EXPECT_DOUBLE_EQ(loop.congestion(), 0.875);
}

TEST(PullCoreLoop, TrimsAreTakenOffAndQuietDoublesTheSteps) {
  PullCoreLoop loop({}, Duration::Micros(14), 4, 1);
  Time now = Time::FromNanos(1000);
  EXPECT_THAT(Rates(loop, now, 2, 10, 0, 4), ElementsAre(Near(0.6), Near(0.225)));  // 0.2 is below 0.9 / 4
  // What is left of the interval still has trims in it and changes nothing.
  EXPECT_THAT(Rates(loop, now, 3, 10, 0, 0), ElementsAre(Near(0.235), Near(0.255), Near(0.295)));
}

TEST(PullCoreLoop, AFewMarksStopTheDoublingOnly) {
  PullCoreLoop loop({}, Duration::Micros(14), 4, 1);
  Time now = Time::FromNanos(1000);
  Rates(loop, now, 2, 10, 0, 4);
  EXPECT_THAT(Rates(loop, now, 3, 10, 1, 0), ElementsAre(Near(0.235), Near(0.245), Near(0.255)));
}

TEST(PullCoreLoop, StaysWithinItsBounds) {
  PullCoreLoop little({}, Duration::Micros(14), 1000, 1);
  Time now = Time::FromNanos(1000);
  for (int i = 0; i < 20; ++i) Rates(little, now, 1, 10, 10, 10);
  EXPECT_DOUBLE_EQ(little.rate(), 0.01);  // not 0.0009
  Rates(little, now, 1000, 1, 0, 0);
  EXPECT_DOUBLE_EQ(little.rate(), 1);
}

TEST(PullCoreLoop, IntervalsAreOneAndAHalfRoundTripsSpread) {
  PullCoreLoop loop({.step = 0.0001}, Duration::Micros(100), 4, 7);
  Time now = Time::FromNanos(1000);
  Rates(loop, now, 1, 10, 0, 1);  // 0.9: far from the bounds
  std::vector<int64_t> gaps;
  double last = loop.rate();
  Time changed = now;
  for (int i = 0; i < 1200; ++i) {
    loop.OnArrival(10, 1, 0);
    now = now + Duration::Micros(1);
    loop.Advance(now);
    if (loop.rate() == last) continue;
    last = loop.rate();
    gaps.push_back((now - changed).nanos() / 1000);
    changed = now;
  }
  gaps.erase(gaps.begin());
  ASSERT_GE(gaps.size(), 5u);
  for (const int64_t gap : gaps) {
    EXPECT_GE(gap, 111);  // 0.75 * 150
    EXPECT_LE(gap, 189);  // 1.25 * 150
  }
  EXPECT_NE(gaps[0], gaps[1]);
}

}  // namespace
}  // namespace paceline
