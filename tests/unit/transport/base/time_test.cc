#include "transport/base/time.h"

#include <gtest/gtest.h>

#include <limits>

namespace paceline {
namespace {

TEST(TimeTest, ArithmeticAndComparison) {
  const Time start = Time::FromNanos(100);
  EXPECT_EQ((start + Duration::Micros(2)).nanos(), 2100);
  EXPECT_EQ((start + Duration::Micros(2)) - start, Duration::Micros(2));
  EXPECT_LT(start, start + Duration::Nanos(1));
  EXPECT_EQ(Duration::Micros(3) * 2, Duration::Nanos(6000));
  EXPECT_EQ(Duration::Micros(3).Scaled(0.5), Duration::Nanos(1500));
}

TEST(TimeTest, NeverAndInfiniteStay) {
  EXPECT_TRUE((Time::Never() + Duration::Seconds(1)).is_never());
  EXPECT_TRUE((Time::FromNanos(5) + Duration::Infinite()).is_never());
}

TEST(RateTest, ConvertsBytesAndTime) {
  const Rate rate = Rate::Gbps(100);
  EXPECT_DOUBLE_EQ(rate.gbps(), 100);
  EXPECT_EQ(rate.TimeFor(4160), Duration::Nanos(333));  // 332.8 rounded up
  EXPECT_EQ(rate.BytesIn(Duration::Micros(1)), 12'500);
}

TEST(RateTest, Extremes) {
  EXPECT_EQ(Rate::Unlimited().TimeFor(1 << 30), Duration());
  EXPECT_TRUE(Rate().TimeFor(1).is_infinite());
  EXPECT_TRUE(Rate().is_zero());
  EXPECT_TRUE(Rate::BytesPerSecond(1e-12).TimeFor(1 << 20).is_infinite());
  EXPECT_GT(Rate::Unlimited(), Rate::Gbps(1e6));
  EXPECT_EQ(Rate::Unlimited().BytesIn(Duration::Seconds(1)), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace paceline
