#include "cc/algorithms/core_limit.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace paceline {
namespace {

class CoreLimitTest : public ::testing::Test {
 protected:
  CoreLimitTest() {
    parameters_.line_rate = 12.5e9;
    parameters_.window = Duration::Micros(20);
  }

  // Delivers `rate` of the line for `windows` windows, in packets of 4160 bytes, the share `marked` of them marked; all
  // or none of them have waited on their way.
  void Deliver(double rate, int windows, double marked, bool downlink_full = false, bool queued = false) {
    const auto gap = static_cast<int64_t>(4160 / (rate * parameters_.line_rate) * 1e9);
    const Time end = now_ + parameters_.window * windows;
    double marks = 0;
    while (now_ < end) {
      now_ = now_ + Duration::Nanos(gap);
      marks += marked;
      const uint32_t mark = marks >= 1 ? 1 : 0;
      marks -= mark;
      limit_.OnArrival(parameters_, now_, 4160, 1, mark, queued ? 1 : 0, downlink_full);
    }
  }

  CoreLimitParameters parameters_;
  CoreLimit limit_;
  Time now_ = Time::FromNanos(1000);
};

TEST_F(CoreLimitTest, NoMarksNoLimit) {
  Deliver(1.0, 50, 0);
  EXPECT_FALSE(limit_.limited());
}

TEST_F(CoreLimitTest, HeavyMarksTakeTheDeliveredRate) {
  Deliver(0.25, 3, 1.0);
  ASSERT_TRUE(limit_.limited());
  EXPECT_LT(limit_.limit(), 0.26 * parameters_.line_rate);
  EXPECT_GT(limit_.limit(), 0.15 * parameters_.line_rate);
}

TEST_F(CoreLimitTest, AFewMarksOrAlmostLineRateAreNoReason) {
  Deliver(0.5, 10, 0.1);
  EXPECT_FALSE(limit_.limited());
  limit_ = CoreLimit();
  Deliver(0.9, 10, 1.0);
  EXPECT_FALSE(limit_.limited());
}

TEST_F(CoreLimitTest, OnceLimitedItDrainsInProportionToTheMarks) {
  Deliver(0.25, 3, 1.0);
  EXPECT_NEAR(limit_.limit(), 0.7 * 0.25 * parameters_.line_rate, 0.01 * parameters_.line_rate);
  Deliver(0.25, 3, 0.1);
  EXPECT_NEAR(limit_.limit(), 0.97 * 0.25 * parameters_.line_rate, 0.01 * parameters_.line_rate);
}

TEST_F(CoreLimitTest, AFewMarksAreAimedAt) {
  Deliver(0.25, 3, 1.0);
  const double found = limit_.limit() / 0.7;
  Deliver(0.25, 8, 0.1);
  EXPECT_GT(limit_.limit(), 1.05 * found);
  const double more = limit_.limit() / 0.97;
  Deliver(0.3, 8, 0.4);
  EXPECT_LT(limit_.limit() / 0.88, more);
}

TEST_F(CoreLimitTest, WhatIsExpectedHoldsUntilSomethingIsMeasured) {
  const double stated = 0.25 * parameters_.line_rate;
  limit_ = CoreLimit(stated);
  limit_.Expect(2 * stated);
  EXPECT_DOUBLE_EQ(limit_.limit(), 2 * stated);
  limit_.Expect(0.5 * stated);  // never below what is stated
  EXPECT_DOUBLE_EQ(limit_.limit(), stated);
  limit_.Expect(2 * stated);
  Deliver(0.3, 20, 1.0);  // others take more than was thought
  const double measured = limit_.limit();
  EXPECT_LT(measured, 1.3 * stated);
  limit_.Expect(4 * stated);
  EXPECT_DOUBLE_EQ(limit_.limit(), measured);
  CoreLimit unknown;
  unknown.Expect(stated);
  EXPECT_FALSE(unknown.limited());
}

// Where nothing is known, what others leave is taken up within a few windows.
TEST_F(CoreLimitTest, WhatOthersLeaveIsSoonTakenUp) {
  Deliver(0.25, 3, 1.0);
  Deliver(0.2, 3, 0.3, false, true);
  const double before = limit_.limit();
  for (int i = 0; i < 4 && limit_.limited(); ++i) {
    Deliver(std::min(limit_.limit() / parameters_.line_rate, 1.0), 1, 0);
  }
  EXPECT_GT(limit_.limit(), 2 * before);
}

// Two ports of which one has measured more than the other end with the same, unless there is less than was thought.
TEST_F(CoreLimitTest, WhatIsExpectedDrawsTheLimitToEqualShares) {
  const double stated = 0.25 * parameters_.line_rate, expected = 2 * stated;
  limit_ = CoreLimit(stated);
  limit_.Expect(expected);
  Deliver(0.3, 20, 1.0);
  ASSERT_LT(limit_.limit(), 0.7 * expected);
  Deliver(0.35, 20, 0.05, false, true);
  const double from_below = limit_.limit();
  Deliver(0.7, 20, 0, false, true);
  EXPECT_NEAR(limit_.limit(), expected, 0.01 * expected);  // of what is not in use it takes no more
  limit_ = CoreLimit(stated);
  limit_.Expect(expected);
  Deliver(0.5, 4, 0);  // nobody else is there
  ASSERT_TRUE(limit_.limited());
  ASSERT_GT(limit_.limit(), 1.1 * expected);
  Deliver(0.5, 20, 0.05, false, true);
  EXPECT_NEAR(from_below / limit_.limit(), 1, 0.1);
}

TEST_F(CoreLimitTest, AStatedRateIsWhereItStartsAndWhatItReturnsTo) {
  const double stated = 0.25 * parameters_.line_rate;
  limit_ = CoreLimit(stated);
  EXPECT_DOUBLE_EQ(limit_.limit(), stated);
  Deliver(0.25, 100, 0, false, true);  // the core is in use: others have their share
  EXPECT_DOUBLE_EQ(limit_.limit(), stated);
  Deliver(0.2, 20, 1.0);  // marks drain the queue, but say nothing against what is known
  EXPECT_DOUBLE_EQ(limit_.limit(), (1 - parameters_.drain) * stated);
  Deliver(0.2, 2, 0, false, true);
  EXPECT_DOUBLE_EQ(limit_.limit(), stated);
}

TEST_F(CoreLimitTest, AStatedRateIsExceededWhereNobodyWaits) {
  const double stated = 0.25 * parameters_.line_rate;
  limit_ = CoreLimit(stated);
  Deliver(0.25, 1, 0);  // first it is tried
  EXPECT_DOUBLE_EQ(limit_.limit(), stated);
  Deliver(0.25, 2, 0);
  EXPECT_GT(limit_.limit(), 1.1 * stated);
  EXPECT_LT(limit_.limit(), 1.6 * stated);
  for (int i = 0; i < 20 && limit_.limited(); ++i) Deliver(limit_.limit() / parameters_.line_rate, 1, 0);
  EXPECT_FALSE(limit_.limited());
}

TEST_F(CoreLimitTest, ASearchEndsWithTheFirstPacketsThatWaitAndGoesBackALittle) {
  const double stated = 0.25 * parameters_.line_rate;
  limit_ = CoreLimit(stated);
  Deliver(0.25, 4, 0);
  const double reached = limit_.limit();
  ASSERT_GT(reached, 1.2 * stated);
  Deliver(reached / parameters_.line_rate, 1, 0, false, true);
  EXPECT_LT(limit_.limit(), reached);
  EXPECT_GT(limit_.limit(), 0.9 * reached);
  const double found = limit_.limit();
  Deliver(found / parameters_.line_rate, 10, 0, false, true);
  EXPECT_DOUBLE_EQ(limit_.limit(), found);
}

TEST_F(CoreLimitTest, WhatIsNotUsedIsNotRaised) {
  const double stated = 0.25 * parameters_.line_rate;
  limit_ = CoreLimit(stated);
  Deliver(0.1, 20, 0);
  EXPECT_LT(limit_.limit(), 1.3 * stated);
}

TEST_F(CoreLimitTest, AFullDownlinkTeachesNothing) {
  Deliver(1.0, 10, 1.0, true);
  EXPECT_FALSE(limit_.limited());
}

TEST_F(CoreLimitTest, RisesWhileInUseAndIsRememberedWhileIdle) {
  Deliver(0.25, 3, 1.0);
  Deliver(0.17, 3, 0);  // the marks are gone: back to what was measured
  const double before = limit_.limit();
  now_ = now_ + Duration::Seconds(10);
  EXPECT_EQ(limit_.limit(), before);
  Deliver(0.05, 10, 0);  // not what limits
  EXPECT_EQ(limit_.limit(), before);
  Deliver(before / parameters_.line_rate, 5, 0);
  EXPECT_GT(limit_.limit(), before);
}

TEST_F(CoreLimitTest, NeverBelowItsFloorAndFreeAgainAtLineRate) {
  Deliver(0.01, 2000, 1.0);
  EXPECT_GE(limit_.limit(), parameters_.floor * parameters_.line_rate);
  for (int i = 0; i < 200 && limit_.limited(); ++i) Deliver(limit_.limit() / parameters_.line_rate, 1, 0);
  EXPECT_FALSE(limit_.limited());
}

// So slow that four windows do not bring the packets that make up one.
TEST_F(CoreLimitTest, RisesFromItsFloorWhereAPacketComesInEveryOtherRoundTrip) {
  Deliver(0.0277, 2000, 1.0);
  ASSERT_NEAR(limit_.limit(), parameters_.floor * parameters_.line_rate, 1e6);
  Deliver(0.0277, 200, 0);
  EXPECT_GT(limit_.limit(), parameters_.floor * parameters_.line_rate * 1.1);
}

TEST_F(CoreLimitTest, SlotsAreSpacedAtTheLimit) {
  CoreLimit limit(1e9);  // one byte a nanosecond
  const Time start = Time::FromNanos(5000);
  EXPECT_LE(limit.next_slot(), start);
  limit.TakeSlot(start, 1000);
  limit.TakeSlot(start, 1000);
  EXPECT_EQ(limit.next_slot(), start + Duration::Nanos(1000));
  limit.TakeSlot(start + Duration::Nanos(1000), 1000);
  EXPECT_EQ(limit.next_slot(), start + Duration::Nanos(2000));
  limit.TakeSlot(start + Duration::Micros(10), 1000);  // nothing is saved up
  EXPECT_EQ(limit.next_slot(), start + Duration::Micros(10));
  CoreLimit unlimited;
  unlimited.TakeSlot(start, 1000);
  EXPECT_LE(unlimited.next_slot(), start);
}

}  // namespace
}  // namespace paceline
