#include "transport/lane/shm/shm_copy_choice.h"

#include <gtest/gtest.h>

#include <functional>

namespace paceline {
namespace {

using Way = ShmCopyChoice::Way;

constexpr uint64_t kRing = 1 << 20;
constexpr uint32_t kBytes = 32768;
constexpr uint64_t kLap = kRing / kBytes;  // copies

// Two processes that share a cache or do not; what a copy takes, as measured (docs/lanes/shm.md), in nanoseconds.
class ShmCopyChoiceTest : public ::testing::Test {
 protected:
  static constexpr int64_t kStreaming = 1000;

  int64_t Nanos(Way way) const {
    if (way == Way::kStreaming) return kStreaming;
    if (!near_) return far_;
    return cached_in_row_ <= kLap ? 3500 : 1400;  // a line that is in memory has to be fetched
  }

  void Copy(uint64_t copies) {
    for (uint64_t i = 0; i < copies; ++i) {
      const ShmCopyChoice::Turn turn = choice_.Next(kBytes);
      ++copies_;
      ++(turn.way == Way::kCached ? cached_ : streamed_);
      cached_in_row_ = turn.way == Way::kCached ? cached_in_row_ + 1 : 0;
      if (!turn.is_timed) continue;
      ++timed_;
      choice_.Note(turn.way, kBytes, Duration::Nanos(Nanos(turn.way) + disturbance_()));
    }
  }

  ShmCopyChoice choice_{kRing};
  bool near_ = true;
  int64_t far_ = 12'500;
  std::function<int64_t()> disturbance_ = [] { return 0; };  // nanoseconds more
  uint64_t copies_ = 0, cached_ = 0, streamed_ = 0, timed_ = 0, cached_in_row_ = 0;
};

TEST_F(ShmCopyChoiceTest, ByTheCachesWhereTheyAreShared) {
  Copy(200'000);
  EXPECT_EQ(choice_.way(), Way::kCached);
  EXPECT_GT(streamed_, 0u);
  EXPECT_LT(streamed_, copies_ / 1000);  // those that are tried
  EXPECT_LE(timed_, copies_ / ShmCopyChoice::kTimedEvery);
}

TEST_F(ShmCopyChoiceTest, PastThemWhereTheyAreNot) {
  near_ = false;
  Copy(20 * kLap);
  EXPECT_EQ(choice_.way(), Way::kStreaming);
  cached_ = copies_ = 0;
  Copy(10 * ShmCopyChoice::kTrialEvery * kLap);
  EXPECT_EQ(choice_.way(), Way::kStreaming);
  EXPECT_GT(cached_, 9 * kLap);  // trials
  EXPECT_LT(cached_, copies_ / 300);
}

TEST_F(ShmCopyChoiceTest, PagesThatNobodyHasTouchedDoNotCount) {
  Copy(kLap + ShmCopyChoice::kTimedEvery - 1);
  EXPECT_EQ(timed_, 0u);
  EXPECT_EQ(streamed_, 0u);
  Copy(1);
  EXPECT_EQ(timed_, 1u);
}

TEST_F(ShmCopyChoiceTest, FollowsAProcessThatIsMoved) {
  for (int i = 0; i < 5; ++i) {
    near_ = true;
    Copy((ShmCopyChoice::kTrialEvery + 3) * kLap);
    EXPECT_EQ(choice_.way(), Way::kCached) << i;
    near_ = false;
    Copy(20 * kLap);
    EXPECT_EQ(choice_.way(), Way::kStreaming) << i;
  }
}

// After a lap that went to memory a copy through the caches takes 3.5 times as long as one past them, near too.
TEST_F(ShmCopyChoiceTest, ATrialBeginsWithALapThatIsNotTimed) {
  near_ = false;
  Copy(20 * kLap);
  ASSERT_EQ(choice_.way(), Way::kStreaming);
  ShmCopyChoice::Turn turn = choice_.Next(kBytes);
  for (uint64_t i = 0; i < 2 * ShmCopyChoice::kTrialEvery * kLap && turn.way != Way::kCached; ++i) {
    turn = choice_.Next(kBytes);
  }
  uint64_t lap = 0;
  for (; lap < 2 * kLap && !turn.is_timed; ++lap) {
    EXPECT_EQ(turn.way, Way::kCached);
    turn = choice_.Next(kBytes);
  }
  EXPECT_EQ(turn.way, Way::kCached);
  EXPECT_EQ(lap, kLap);
}

TEST_F(ShmCopyChoiceTest, BetweenTheTwoBoundsItStaysAsItIs) {
  near_ = false;
  far_ = 3500;
  Copy(100'000);
  EXPECT_EQ(choice_.way(), Way::kCached);
  far_ = 12'500;
  Copy(20 * kLap);
  ASSERT_EQ(choice_.way(), Way::kStreaming);
  far_ = 3500;
  Copy(3 * ShmCopyChoice::kTrialEvery * kLap);
  EXPECT_EQ(choice_.way(), Way::kStreaming);
}

TEST_F(ShmCopyChoiceTest, CopiesThatWereInterruptedDecideNothing) {
  uint32_t turn = 0;
  disturbance_ = [&turn] { return ++turn % 3 == 0 ? 1'000'000 : 0; };
  Copy(100'000);
  EXPECT_EQ(choice_.way(), Way::kCached);
  near_ = false;
  Copy(100 * kLap);
  EXPECT_EQ(choice_.way(), Way::kStreaming);
  Copy(2 * ShmCopyChoice::kTrialEvery * kLap);
  EXPECT_EQ(choice_.way(), Way::kStreaming);
}

TEST_F(ShmCopyChoiceTest, PayloadsOfAllSizesCountByTheByte) {
  constexpr uint64_t kCopies = 100'000;
  uint64_t streamed = 0;
  Copy(kLap);
  for (uint64_t i = 0; i < kCopies; ++i) {
    // Those that are tried are the short ones.
    const bool is_short = i / ShmCopyChoice::kTimedEvery % 2 == 1;
    const uint32_t bytes = is_short ? ShmCopyChoice::kLeastBytes : kBytes;
    const ShmCopyChoice::Turn turn = choice_.Next(bytes);
    const bool streams = turn.way == Way::kStreaming;
    streamed += streams ? 1 : 0;
    if (turn.is_timed) choice_.Note(turn.way, bytes, Duration::Nanos(bytes * (streams ? 30 : 40) / 1000));
  }
  EXPECT_EQ(choice_.way(), Way::kCached);
  EXPECT_LT(streamed, kCopies / 1000);
}

}  // namespace
}  // namespace paceline
