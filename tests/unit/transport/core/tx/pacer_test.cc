#include "transport/core/tx/pacer.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

constexpr int64_t kBytes = 1000;
constexpr Duration kGap = Duration::Micros(1);  // of such a packet at kRate
const Rate kRate = Rate::BytesPerSecond(1e9);
const Time kStart = Time() + Duration::Seconds(1);

TEST(PacerTest, WithoutARateEverythingGoes) {
  Pacer pacer;
  EXPECT_EQ(pacer.Send(40, kBytes, Rate::Unlimited(), Duration(), kStart), 40u);
  EXPECT_TRUE(pacer.CanSend(kStart));
}

TEST(PacerTest, OnePacketIsAGap) {
  Pacer pacer;
  EXPECT_EQ(pacer.Send(40, kBytes, kRate, Duration(), kStart), 1u) << "the others wait";
  EXPECT_FALSE(pacer.CanSend(kStart));
  EXPECT_FALSE(pacer.CanSend(kStart + kGap - Duration::Nanos(1)));
  EXPECT_TRUE(pacer.CanSend(kStart + kGap));
}

// Whether packets are asked for one by one or together: the same go at the same times.
TEST(PacerTest, SeveralAtOnceAreAsManyAsOneAfterTheOther) {
  for (const int64_t slack_gaps : {0, 1, 3, 15}) {
    Pacer together, alone;
    const Duration slack = kGap * slack_gaps;
    Time now = kStart;
    for (int pass = 0; pass < 100; ++pass, now = now + kGap * (pass % 7)) {
      uint32_t one_by_one = 0;
      while (one_by_one < 5 && alone.CanSend(now)) one_by_one += alone.Send(1, kBytes, kRate, slack, now);
      const uint32_t at_once = together.CanSend(now) ? together.Send(5, kBytes, kRate, slack, now) : 0;
      ASSERT_EQ(at_once, one_by_one) << "pass " << pass << ", slack " << slack_gaps;
      ASSERT_EQ(together.next_send(), alone.next_send());
    }
  }
}

TEST(PacerTest, SlackIsWhatItCatchesUpAtOnce) {
  Pacer pacer;
  EXPECT_EQ(pacer.Send(40, kBytes, kRate, kGap * 3, kStart), 4u);
  EXPECT_EQ(pacer.Send(1, kBytes, kRate, kGap * 3, kStart + kGap), 1u);
  EXPECT_FALSE(pacer.CanSend(kStart + kGap));
}

}  // namespace
}  // namespace paceline
