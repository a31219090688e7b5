#include "transport/lane/udp/poll_rhythm.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

class PollRhythmTest : public testing::Test {
 protected:
  // What the last of the polls hears that follow one another after `gap`, for `time` in all.
  bool Poll(Duration gap, Duration time) {
    bool dense = false;
    for (Duration passed; passed < time; passed = passed + gap) dense = PollAfter(gap);
    return dense;
  }
  bool PollAfter(Duration gap) {
    now_ = now_ + gap;
    return rhythm_.IsDense(now_);
  }

 private:
  PollRhythm rhythm_;
  Time now_ = Time::FromNanos(7'000'000'000);
};

TEST_F(PollRhythmTest, PollsThatWereCloseForLongAreDense) {
  EXPECT_FALSE(PollAfter(Duration::Micros(1)));
  EXPECT_FALSE(Poll(Duration::Micros(1), Duration::Millis(9)));
  EXPECT_TRUE(Poll(Duration::Micros(1), Duration::Millis(2)));
  EXPECT_TRUE(Poll(Duration::Micros(9), Duration::Millis(100)));
}

TEST_F(PollRhythmTest, PollsOfWhoeverTakesBurstsAreNot) {
  Poll(Duration::Micros(1), Duration::Millis(20));
  EXPECT_FALSE(Poll(Duration::Micros(20), Duration::Millis(21)));
  EXPECT_FALSE(Poll(Duration::Micros(20), Duration::Millis(100)));
}

TEST_F(PollRhythmTest, AFewThatAreFarBetweenChangeNothing) {
  Poll(Duration::Micros(1), Duration::Millis(20));
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(PollAfter(Duration::Micros(100))) << i;
    EXPECT_TRUE(Poll(Duration::Micros(1), Duration::Millis(2))) << i;
  }
}

TEST_F(PollRhythmTest, APauseEndsItAtOnce) {
  Poll(Duration::Micros(1), Duration::Millis(20));
  EXPECT_FALSE(PollAfter(Duration::Millis(2)));
  EXPECT_FALSE(Poll(Duration::Micros(1), Duration::Millis(9)));
  EXPECT_TRUE(Poll(Duration::Micros(1), Duration::Millis(2)));
}

}  // namespace
}  // namespace paceline
