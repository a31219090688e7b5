#include "cc/algorithms/swift.h"

#include <cmath>

#include "cc/algorithms/parameters.h"
#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

class SwiftTest : public ::testing::Test {
 protected:
  SwiftTest() {
    const AlgorithmInfo algorithm = SwiftAlgorithm();
    control_ = algorithm.create(*ResolveParameters(algorithm, {}), 1);
    sender_ = control_->NewSender({}, TestPort(), Time());
  }

  // A segment acknowledged with this round-trip time, a round trip after the last.
  void Ack(double rtt_micros) {
    now_ = now_ + Duration::Micros(14).Scaled(rtt_micros / 14);
    sender_->OnAck({.now = now_,
                    .acked_bytes = 4096,
                    .acked_packets = 1,
                    .rtt = Duration::Nanos(static_cast<int64_t>(rtt_micros * 1000)),
                    .in_flight_bytes = window(),
                    .backlogged = true});
  }
  void Lose(LossCause cause) {
    now_ = now_ + Duration::Micros(100);
    sender_->OnLoss({.now = now_, .lost_bytes = 4096, .lost_packets = 1, .cause = cause});
  }
  uint64_t window() const { return sender_->allowance().window_bytes; }

  std::unique_ptr<CongestionControl> control_;
  std::unique_ptr<SenderController> sender_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_F(SwiftTest, StartsAtOneBdp) { EXPECT_EQ(window(), 172'307u); }

TEST_F(SwiftTest, GrowsByOneSegmentPerRoundTripBelowTheTarget) {
  const uint64_t before = window();
  for (uint64_t i = 0; i < before / 4096; ++i) Ack(14);
  EXPECT_NEAR(static_cast<double>(window()), static_cast<double>(before) + 4096, 200);
}

TEST_F(SwiftTest, ShrinksAboveTheTargetOncePerRoundTripByAtMostHalf) {
  const uint64_t before = window();
  Ack(1000);
  EXPECT_EQ(window(), before / 2);
  sender_->OnAck({.now = now_, .acked_bytes = 4096, .acked_packets = 1, .rtt = Duration::Micros(1000)});
  EXPECT_EQ(window(), before / 2);
}

TEST_F(SwiftTest, DecreaseIsInProportionToTheExcess) {
  const double before = static_cast<double>(window());
  // Target: 1.25 * 14 us and a little for flow scaling at 42 segments.
  const double alpha = 14.0 / (1 / std::sqrt(0.1) - 0.1);
  const double target = 1.25 * 14 + alpha / std::sqrt(before / 4096) - alpha * 0.1;
  Ack(25);
  EXPECT_NEAR(static_cast<double>(window()), before * (1 - 0.8 * (25 - target) / 25), 8);
}

TEST_F(SwiftTest, TimeoutsInARowLeadToTheLeastWindowAndPacing) {
  for (int i = 0; i < 5; ++i) Lose(LossCause::kTimeout);
  EXPECT_EQ(window(), 4096u);
  EXPECT_NEAR(sender_->allowance().pacing_rate.bytes_per_second(), 0.01 * 4160 / 14e-6, 1e3);
  for (int i = 0; i < 200; ++i) Ack(14);
  EXPECT_GT(window(), 3 * 4096u);  // and back
  EXPECT_EQ(sender_->allowance().pacing_rate, Rate::Gbps(100));
}

TEST_F(SwiftTest, LossHalves) {
  const uint64_t before = window();
  Lose(LossCause::kPathGap);
  EXPECT_EQ(window(), before / 2);
}

TEST_F(SwiftTest, DoesNotGrowWhenItIsNotTheLimit) {
  const uint64_t before = window();
  for (int i = 0; i < 100; ++i) {
    sender_->OnAck({.now = now_, .acked_bytes = 4096, .acked_packets = 1, .rtt = Duration::Micros(14)});
  }
  EXPECT_EQ(window(), before);
}

}  // namespace
}  // namespace paceline
