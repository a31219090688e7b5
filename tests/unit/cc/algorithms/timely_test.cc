// Numbers by hand for a base round trip of 14 us: thresholds 17.5 and 24.5 us. Rates are told as parts of the line.
#include "cc/algorithms/timely.h"

#include "cc/algorithms/parameters.h"
#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

class TimelyTest : public ::testing::Test {
 protected:
  TimelyTest() { Create({{"initial_rate", 0.5}}); }

  void Create(const ParameterMap& given) {
    const AlgorithmInfo algorithm = TimelyAlgorithm();
    control_ = algorithm.create(*ResolveParameters(algorithm, given), 1);
    sender_ = control_->NewSender({}, TestPort(), Time());
  }
  void Sample(double rtt_micros, int64_t after_micros = 14, uint64_t bytes = 16384) {
    now_ = now_ + Duration::Micros(after_micros);
    sender_->OnAck({.now = now_,
                    .acked_bytes = bytes,
                    .acked_packets = 4,
                    .rtt = Duration::Nanos(static_cast<int64_t>(rtt_micros * 1000))});
  }
  double rate() const { return sender_->allowance().pacing_rate.gbps() / 100; }

  std::unique_ptr<CongestionControl> control_;
  std::unique_ptr<SenderController> sender_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_F(TimelyTest, StartsAtLineRate) {
  Create({});
  EXPECT_DOUBLE_EQ(rate(), 1);
  Sample(14);
  EXPECT_DOUBLE_EQ(rate(), 1);
}

TEST_F(TimelyTest, BelowTheLowThresholdItAddsByTheTimeThatPassed) {
  Sample(17);
  EXPECT_NEAR(rate(), 0.501, 1e-9);
  Sample(17.4, 7);  // half a base round trip later
  EXPECT_NEAR(rate(), 0.5015, 1e-9);
}

TEST_F(TimelyTest, AboveTheHighThresholdItDecreasesByTheExcess) {
  Sample(49);
  EXPECT_NEAR(rate(), 0.5 * (1 - 0.8 * 0.5), 1e-9);
}

TEST_F(TimelyTest, OneStepTakesHalfAtMost) {
  Sample(1000);
  EXPECT_NEAR(rate(), 0.25, 1e-9);
}

TEST_F(TimelyTest, ARisingDelayDecreasesByTheGradient) {
  Create({{"initial_rate", 0.5}, {"gain", 1.0}});
  Sample(18);
  EXPECT_NEAR(rate(), 0.501, 1e-9);
  Sample(21);
  EXPECT_NEAR(rate(), 0.501 * (1 - 0.8 * 3 / 14), 1e-9);
}

TEST_F(TimelyTest, TheGradientIsAveraged) {
  Sample(18);
  Sample(21);
  EXPECT_NEAR(rate(), 0.501 * (1 - 0.8 * 0.02 * 3 / 14), 1e-9);
}

TEST_F(TimelyTest, TheFifthFallInARowAddsFiveSteps) {
  for (const double rtt : {24, 23, 22, 21, 20}) Sample(rtt);
  EXPECT_NEAR(rate(), 0.505, 1e-9);
  Sample(19);
  EXPECT_NEAR(rate(), 0.510, 1e-9);
  Sample(19);  // does not fall: counted anew
  EXPECT_NEAR(rate(), 0.511, 1e-9);
}

TEST_F(TimelyTest, PatchedWeighsGradientAndDelay) {
  Create({{"initial_rate", 0.5}, {"gain", 1.0}, {"variant", std::string("patched")}});
  Sample(21);  // no gradient: w = 1/2, e = 3.5 / 17.5
  EXPECT_NEAR(rate(), 0.5 * (1 - 0.008 * 0.5 * 0.2) + 0.0005, 1e-9);
  const double before = rate();
  Sample(24.5);  // gradient 1/4: w = 1, e = 7 / 17.5
  EXPECT_NEAR(rate(), before * (1 - 0.008 * 0.4), 1e-9);
}

TEST_F(TimelyTest, ASegmentMakesASample) {
  for (int i = 0; i < 3; ++i) Sample(49, 1, 4096);
  EXPECT_NEAR(rate(), 0.5, 1e-9);
  Sample(49, 1, 4096);
  EXPECT_LT(rate(), 0.31);
}

TEST_F(TimelyTest, OnlyATimeoutIsALoss) {
  sender_->OnLoss({.now = now_, .lost_bytes = 4096, .lost_packets = 1, .cause = LossCause::kTrimmed});
  EXPECT_NEAR(rate(), 0.5, 1e-9);
  sender_->OnLoss({.now = now_, .lost_bytes = 4096, .lost_packets = 1, .cause = LossCause::kTimeout});
  EXPECT_NEAR(rate(), 0.001, 1e-9);
}

}  // namespace
}  // namespace paceline
