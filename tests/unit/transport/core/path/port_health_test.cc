// When a port rests, for how long, and what ends it.
#include "transport/core/path/port_health.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

constexpr Duration kRoundTrip = Duration::Micros(100);

class PortHealthTest : public testing::Test {
 protected:
  void Lose(uint32_t port, int packets) {
    for (int i = 0; i < packets; ++i) health_.OnLoss(port, kRoundTrip, now_);
  }
  bool MayUse(uint32_t port, uint32_t down = 99) const {
    return health_.MayUse(port, 2, now_, [down](uint32_t other) { return other != down; });
  }

  PortHealth health_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_F(PortHealthTest, SixteenLossesInARowRestAPort) {
  Lose(0, 15);
  EXPECT_TRUE(MayUse(0));
  Lose(0, 1);
  EXPECT_FALSE(MayUse(0));
  EXPECT_TRUE(MayUse(1));
}

TEST_F(PortHealthTest, AnAcknowledgementEndsTheCount) {
  Lose(0, 15);
  health_.OnAck(0);
  Lose(0, 15);
  EXPECT_TRUE(MayUse(0));
}

TEST_F(PortHealthTest, AnAcknowledgementEndsTheRestAndWhatLedToIt) {
  Lose(0, 16);
  ASSERT_FALSE(MayUse(0));
  health_.OnAck(0);
  EXPECT_TRUE(MayUse(0));
  Lose(0, 1);  // one of many again, not the last straw
  EXPECT_TRUE(MayUse(0));
}

TEST_F(PortHealthTest, EachRestIsLongerUpToABound) {
  Duration before;
  for (int rest = 0; rest < 12; ++rest) {
    Lose(0, 16);
    const Time start = now_;
    while (!MayUse(0)) now_ = now_ + Duration::Micros(50);
    const Duration lasted = now_ - start;
    EXPECT_GE(lasted, before) << rest;
    EXPECT_LE(lasted, Duration::Millis(201)) << rest;
    before = lasted;
  }
  EXPECT_GE(before, Duration::Millis(199));
}

TEST_F(PortHealthTest, TheOnlyOneLeftNeverRests) {
  Lose(0, 16);
  EXPECT_FALSE(MayUse(0));
  EXPECT_TRUE(MayUse(0, /*down=*/1));
  Lose(1, 16);
  EXPECT_TRUE(MayUse(0));
  EXPECT_TRUE(MayUse(1));
}

}  // namespace
}  // namespace paceline
