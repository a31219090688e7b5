// Numbers by hand for 100 Gb/s, 14 us, 4096 + 64 bytes: BDP 175,000 wire bytes or 172,307 of payload, largest window
// 258,460.5, target 10.5 us, size of the network against the reference 175,000 / 150,000, fi 23,893.3, alpha 16,725.3
// (4 segments * 7/6 * 10.5/12), eta 716.8.
#include "cc/algorithms/nscc.h"

#include "cc/algorithms/parameters.h"
#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

constexpr uint64_t kSegment = 4096;

class NsccTest : public ::testing::Test {
 protected:
  NsccTest() { Create({}); }

  void Create(const ParameterMap& given) {
    const AlgorithmInfo algorithm = NsccAlgorithm();
    control_ = algorithm.create(*ResolveParameters(algorithm, given), 1);
    sender_ = control_->NewSender({}, TestPort(), Time());
  }
  // Segments acknowledged so long after the last event; a round trip of zero stands for no sample.
  void Ack(int64_t after_micros, double rtt_micros, bool marked, uint64_t segments = 1) {
    now_ = now_ + Duration::Micros(after_micros);
    const auto packets = static_cast<uint32_t>(segments);
    sender_->OnAck({.now = now_,
                    .acked_bytes = segments * kSegment,
                    .marked_bytes = marked ? kSegment : 0,
                    .acked_packets = packets,
                    .marked_packets = marked ? 1u : 0u,
                    .rtt = Duration::Nanos(static_cast<int64_t>(rtt_micros * 1000))});
  }
  void Lose(int64_t after_micros, uint64_t segments, LossCause cause = LossCause::kTrimmed, uint64_t in_flight = 0) {
    now_ = now_ + Duration::Micros(after_micros);
    sender_->OnLoss({.now = now_,
                     .lost_bytes = segments * kSegment,
                     .lost_packets = static_cast<uint32_t>(segments),
                     .cause = cause,
                     .in_flight_bytes = in_flight});
  }
  // A window of 94,620.5 with room to grow; then a report that brings this round trip's eta: 95,337.3.
  void Shrink() {
    Lose(0, 40);
    Ack(1, 14, true);
  }
  double window() const { return static_cast<double>(sender_->allowance().window_bytes); }

  std::unique_ptr<CongestionControl> control_;
  std::unique_ptr<SenderController> sender_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_F(NsccTest, StartsAtOneAndAHalfBdp) { EXPECT_EQ(window(), 258'460); }

TEST_F(NsccTest, ATrimTakesItsBytes) {
  Lose(0, 10);
  EXPECT_EQ(window(), 258'460 - 40'960);
}

TEST_F(NsccTest, EtaComesOncePerRoundTrip) {
  Lose(0, 40);
  EXPECT_NEAR(window(), 94'620.5, 1);
  Ack(1, 14, true);
  EXPECT_NEAR(window(), 95'337.3, 1);
  Ack(1, 14, true);
  EXPECT_NEAR(window(), 95'337.3, 1);
}

TEST_F(NsccTest, AMarkBelowTheTargetChangesNothing) {
  Shrink();
  Ack(1, 24.4, true, 9);
  EXPECT_NEAR(window(), 95'337.3, 1);
}

TEST_F(NsccTest, AnUnmarkedDelayAtTheTargetGrowsByTheFairShare) {
  Shrink();
  Ack(1, 24.5, false, 8);  // 32,768 bytes: not yet more than eight segments
  EXPECT_NEAR(window(), 95'337.3, 1);
  Ack(1, 24.5, false, 1);
  EXPECT_NEAR(window(), 95'337.3 + 23'893.33 * 36'864 / 95'337.3, 2);
}

TEST_F(NsccTest, AnUnmarkedDelayBelowTheTargetGrowsInProportion) {
  Shrink();
  Ack(1, 14 + 5.25, false, 9);
  EXPECT_NEAR(window(), 95'337.3 + 16'725.33 / 2 * 36'864 / 95'337.3, 2);
}

TEST_F(NsccTest, AnIdlePathIsFilledFast) {
  Shrink();
  Ack(1, 14.5, false, 24);  // 98,304 bytes, more than a window, below 1 us of delay
  EXPECT_NEAR(window(), 95'337.3 + 98'304 * 0.25 * 175 / 150, 2);
}

TEST_F(NsccTest, AMarkAboveTheTargetDecreasesByTheAverageOncePerRoundTrip) {
  Create({{"delay_gain", 1.0}, {"eta", 0.0}});
  Ack(0, 14 + 21, true);  // twice the target: 1 - 0.8 / 2
  EXPECT_NEAR(window(), 258'460.5 * 0.6, 1);
  Ack(14, 14 + 21, true);
  EXPECT_NEAR(window(), 258'460.5 * 0.6, 1);
  Ack(1, 14 + 42, true);  // four times: 1 - 0.8 * 3 / 4, but at most half
  EXPECT_NEAR(window(), 258'460.5 * 0.6 * 0.5, 1);
}

TEST_F(NsccTest, TheAverageIsSlow) {
  Ack(0, 14 + 21, true);  // 0.26 us of average
  EXPECT_EQ(window(), 258'460);
}

TEST_F(NsccTest, WithoutASampleTheAverageStands) {
  Create({{"delay_gain", 1.0}, {"eta", 0.0}});
  Ack(0, 14 + 21, true);
  Ack(20, 0, true);
  EXPECT_NEAR(window(), 258'460.5 * 0.36, 1);
}

TEST_F(NsccTest, AnUnmarkedHighDelayCountsAsAQuarterRoundTrip) {
  Create({{"delay_gain", 1.0}, {"eta", 0.0}});
  Ack(0, 14 + 30, false);
  Ack(20, 0, true);  // 3.5 us: below the target
  EXPECT_EQ(window(), 258'460);
}

TEST_F(NsccTest, QuickAdaptTakesWhatArrivedAndHearsNoOlderNews) {
  Ack(0, 14, false);      // starts a period of 24.5 us
  Ack(10, 20, false, 4);  // what arrives in it
  Lose(14, 1, LossCause::kTrimmed, 100'000);
  EXPECT_NEAR(window(), 258'460.5 - 4096, 1);
  Lose(1, 1, LossCause::kTrimmed, 100'000);  // the period is over, 16,384 is less than an eighth of the largest window
  EXPECT_EQ(window(), 16'384);
  Lose(1, 2, LossCause::kTrimmed, 90'000);  // in flight when it adapted
  Ack(1, 100, true, 1);
  EXPECT_EQ(window(), 16'384);
  Lose(1, 22, LossCause::kTrimmed, 10'000);  // 25 segments heard of, 102,400 of 104,096 bytes
  EXPECT_EQ(window(), 16'384);
  Lose(1, 1, LossCause::kTrimmed, 10'000);  // this one was sent after it
  EXPECT_EQ(window(), 12'288);
}

TEST_F(NsccTest, QuickAdaptLeavesAFlowThatArrives) {
  Ack(0, 14, false);
  Ack(10, 20, false, 8);  // 32,768 bytes, an eighth is 32,307
  Lose(15, 1);
  EXPECT_NEAR(window(), 258'460.5 - 4096, 1);
}

TEST_F(NsccTest, QuickAdaptNeedsNoLossWhenTheDelayIsFourTargets) {
  Ack(0, 14, false);
  Ack(10, 20, false, 4);
  Ack(15, 14 + 43, true);
  EXPECT_EQ(window(), 5 * kSegment);
}

TEST_F(NsccTest, ATimeoutTakesItsBytesDownToOneSegment) {
  Lose(0, 2, LossCause::kTimeout);
  EXPECT_NEAR(window(), 258'460.5 - 8192, 1);
  Lose(1, 100, LossCause::kTimeout);
  EXPECT_EQ(window(), kSegment);
}

TEST_F(NsccTest, AShorterRoundTripLowersTheLargestWindow) {
  Ack(0, 7, false);
  EXPECT_EQ(window(), 129'229);  // 1.5 * 86,153
}

}  // namespace
}  // namespace paceline
