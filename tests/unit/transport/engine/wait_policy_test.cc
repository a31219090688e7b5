#include "transport/engine/wait_policy.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

Time At(int64_t micros) { return Time::FromNanos(micros * 1000); }

WaitPolicyOptions Options(unsigned ranks, unsigned cores) {
  WaitPolicyOptions options;
  options.local_ranks = ranks;
  options.allowed_cores = cores;
  options.spin = Duration::Micros(20);
  options.yields = 2;
  options.min_sleep = Duration::Micros(60);
  return options;
}

TEST(WaitPolicy, SpinsForItsTimeThenSleepsWhereCoresSuffice) {
  WaitPolicy policy(Options(2, 2));
  EXPECT_FALSE(policy.crowded());
  EXPECT_EQ(policy.OnIdle(At(100), Time::Never(), true), WaitStep::kSpin);
  EXPECT_EQ(policy.OnIdle(At(119), Time::Never(), true), WaitStep::kSpin);
  EXPECT_EQ(policy.OnIdle(At(120), Time::Never(), true), WaitStep::kSleep);
}

TEST(WaitPolicy, WorkStartsTheSpinAfresh) {
  WaitPolicy policy(Options(1, 2));
  EXPECT_EQ(policy.OnIdle(At(0), Time::Never(), true), WaitStep::kSpin);
  EXPECT_EQ(policy.OnIdle(At(30), Time::Never(), true), WaitStep::kSleep);
  policy.OnBusy();
  EXPECT_EQ(policy.OnIdle(At(31), Time::Never(), true), WaitStep::kSpin);
}

TEST(WaitPolicy, YieldsAtOnceThenSleepsWithMoreRanksThanCores) {
  WaitPolicy policy(Options(8, 2));
  EXPECT_TRUE(policy.crowded());
  EXPECT_EQ(policy.OnIdle(At(0), Time::Never(), true), WaitStep::kYield);
  EXPECT_EQ(policy.OnIdle(At(0), Time::Never(), true), WaitStep::kYield);
  EXPECT_EQ(policy.OnIdle(At(0), Time::Never(), true), WaitStep::kSleep);
  policy.OnBusy();
  EXPECT_EQ(policy.OnIdle(At(1), Time::Never(), true), WaitStep::kYield);
}

TEST(WaitPolicy, StaysAwakeForATimerThatIsDueSoon) {
  WaitPolicy alone(Options(1, 2));
  EXPECT_EQ(alone.OnIdle(At(0), At(200), true), WaitStep::kSpin);
  EXPECT_EQ(alone.OnIdle(At(100), At(200), true), WaitStep::kSleep);
  EXPECT_EQ(alone.OnIdle(At(141), At(200), true), WaitStep::kSpin);
  WaitPolicy crowd(Options(8, 2));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(crowd.OnIdle(At(150), At(200), true), WaitStep::kYield);
}

TEST(WaitPolicy, WhoCannotBeWokenYieldsForAWhileFirst) {
  WaitPolicy policy(Options(1, 2));
  EXPECT_EQ(policy.OnIdle(At(0), Time::Never(), false), WaitStep::kSpin);
  EXPECT_EQ(policy.OnIdle(At(19), Time::Never(), false), WaitStep::kSpin);
  EXPECT_EQ(policy.OnIdle(At(20), Time::Never(), false), WaitStep::kYield);
  EXPECT_EQ(policy.OnIdle(At(199), Time::Never(), false), WaitStep::kYield);
  EXPECT_EQ(policy.OnIdle(At(200), Time::Never(), false), WaitStep::kSleep);
  EXPECT_EQ(policy.OnIdle(At(201), Time::Never(), true), WaitStep::kSleep);
}

TEST(WaitPolicy, WhoCannotBeWokenSleepsAsLongAsThereHasBeenNothing) {
  WaitPolicy policy(Options(1, 2));
  EXPECT_EQ(policy.BlindSleep(At(0)), Duration::Micros(10)) << "at least";
  policy.OnIdle(At(0), Time::Never(), true);
  EXPECT_EQ(policy.BlindSleep(At(30)), Duration::Micros(30));
  EXPECT_EQ(policy.BlindSleep(At(1000)), Duration::Micros(200)) << "at most";
  policy.OnBusy();
  EXPECT_EQ(policy.BlindSleep(At(1000)), Duration::Micros(10));
}

}  // namespace
}  // namespace paceline
