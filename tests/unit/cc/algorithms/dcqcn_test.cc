#include "cc/algorithms/dcqcn.h"

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

class DcqcnTest : public ::testing::TestWithParam<const char*> {
 protected:
  DcqcnTest() {
    const AlgorithmInfo algorithm = DcqcnAlgorithm();
    control_ = algorithm.create(*ResolveParameters(algorithm, {{"variant", std::string(GetParam())}}), 1);
    sender_ = control_->NewSender({}, TestPort(), Time());
  }

  bool paper() const { return std::string(GetParam()) == "paper"; }
  double rate() const { return sender_->allowance().pacing_rate.gbps(); }
  void Mark(Duration after) {
    now_ = now_ + after;
    sender_->OnAck({.now = now_, .acked_bytes = 4096, .marked_bytes = 4096, .acked_packets = 1, .marked_packets = 1});
  }
  void RunTimersFor(Duration span) {
    const Time end = now_ + span;
    while (sender_->PollTimeout() <= end) {
      now_ = std::max(now_, sender_->PollTimeout());
      sender_->HandleTimeout(now_);
    }
    now_ = end;
  }

  std::unique_ptr<CongestionControl> control_;
  std::unique_ptr<SenderController> sender_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_P(DcqcnTest, FirstNotificationHalves) {
  EXPECT_DOUBLE_EQ(rate(), 100);
  EXPECT_TRUE(sender_->PollTimeout().is_never());
  Mark(Duration());
  EXPECT_DOUBLE_EQ(rate(), 50);  // alpha starts at 1
}

TEST_P(DcqcnTest, NotificationsWithinTheIntervalAreMerged) {
  Mark(Duration());
  Mark(Duration::Micros(paper() ? 49 : 3));
  EXPECT_DOUBLE_EQ(rate(), 50);
  Mark(Duration::Micros(1));
  EXPECT_LT(rate(), 26);
}

TEST_P(DcqcnTest, FastRecoveryHalvesTheDistanceThenRises) {
  Mark(Duration());
  const Duration timer = Duration::Micros(paper() ? 55 : 300);
  RunTimersFor(timer);
  EXPECT_DOUBLE_EQ(rate(), 75);
  RunTimersFor(timer * 3000);
  EXPECT_DOUBLE_EQ(rate(), 100);
}

TEST_P(DcqcnTest, NeverBelowTheLeastRate) {
  for (int i = 0; i < 1000; ++i) Mark(Duration::Micros(50));
  EXPECT_DOUBLE_EQ(rate(), 1);
}

TEST_P(DcqcnTest, TimersEndOnceAtLineRateAndCalm) {
  Mark(Duration());
  RunTimersFor(Duration::Seconds(5));
  EXPECT_TRUE(sender_->PollTimeout().is_never());
  EXPECT_DOUBLE_EQ(rate(), 100);
}

TEST_P(DcqcnTest, ALateCallTakesTheMissedSteps) {
  Mark(Duration());
  now_ = now_ + Duration::Seconds(1);
  sender_->HandleTimeout(now_);
  EXPECT_DOUBLE_EQ(rate(), 100);
  EXPECT_GT(sender_->PollTimeout(), now_);
}

TEST_P(DcqcnTest, TheByteCounterAdvancesThePaperVariantOnly) {
  Mark(Duration());
  sender_->OnSent(now_, 10'000'000, 0);
  EXPECT_DOUBLE_EQ(rate(), paper() ? 75 : 50);
}

// Section 3.1: K, longer than the 50 us between two notifications.
TEST_P(DcqcnTest, AlphaOfThePaperVariantFallsAfter55Microseconds) {
  if (!paper()) GTEST_SKIP() << "of the paper variant";
  Mark(Duration());
  RunTimersFor(Duration::Micros(54));
  Mark(Duration());
  EXPECT_DOUBLE_EQ(rate(), 25);
  RunTimersFor(Duration::Micros(55));
  EXPECT_DOUBLE_EQ(rate(), 37.5);
  Mark(Duration());
  EXPECT_DOUBLE_EQ(rate(), 37.5 * (1 - 255.0 / 256 / 2));
}

// A thousandth of the link rate; hyper increase, five times that, once the byte counter is as far as the timer.
TEST_P(DcqcnTest, TheStepsOfThePaperVariantAfterACut) {
  if (!paper()) GTEST_SKIP() << "of the paper variant";
  Mark(Duration());
  Mark(Duration::Micros(50));  // the target is 50
  double expected = 25, target = 50;
  const auto step = [&] {
    expected = (expected + target) / 2;
    EXPECT_NEAR(rate(), expected, 1e-9);
  };
  for (int stage = 1; stage <= 8; ++stage) {
    RunTimersFor(Duration::Micros(55));
    if (stage >= 5) target += 0.1;
    step();
  }
  uint64_t sent = 0;
  for (int stage = 1; stage <= 8; ++stage) {
    sent += 10'000'000;
    sender_->OnSent(now_, sent, 0);
    target += stage > 5 ? 0.5 : 0.1;
    step();
  }
}

TEST_P(DcqcnTest, StepsThatAreGivenStandForTheVariantsOwn) {
  const AlgorithmInfo algorithm = DcqcnAlgorithm();
  control_ = algorithm.create(
      *ResolveParameters(algorithm, {{"variant", std::string(GetParam())}, {"rai", 0.01}, {"rhai", 0.01}}), 1);
  sender_ = control_->NewSender({}, TestPort(), Time());
  Mark(Duration());
  RunTimersFor(Duration::Micros(paper() ? 55 : 300));
  Mark(Duration());
  const double cut = rate();
  double expected = cut, target = 75;
  for (int stage = 1; stage <= 6; ++stage) {
    RunTimersFor(Duration::Micros(paper() ? 55 : 300));
    if (stage >= (paper() ? 5 : 2)) target += 1;
    expected = (expected + target) / 2;
  }
  EXPECT_NEAR(rate(), expected, 1e-9);
}

// As the authors of HPCC run it: one step of fast recovery, an additive one, then hyper increase.
TEST_P(DcqcnTest, TheStepsOfTheVendorVariantAfterACut) {
  if (paper()) GTEST_SKIP() << "of the vendor variant";
  Mark(Duration());
  RunTimersFor(Duration::Micros(300));
  Mark(Duration());  // the target is now what the step before has reached: 75
  double expected = rate();
  const double targets[] = {75, 75.02, 75.22, 75.42};
  for (const double target : targets) {
    RunTimersFor(Duration::Micros(300));
    expected = (expected + target) / 2;
    EXPECT_NEAR(rate(), expected, 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, DcqcnTest, ::testing::Values("paper", "vendor"),
                         [](const auto& variant) { return std::string(variant.param); });

}  // namespace
}  // namespace paceline
