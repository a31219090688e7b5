#include "cc/algorithms/tita_sender.h"

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

constexpr uint64_t kSegment = 4096;

class TitaSenderTest : public ::testing::Test {
 protected:
  TitaSenderTest() { Make({.unscheduled = 1.0 / 32}); }
  void Make(const TitaParameters& parameters) {
    sender_.reset();
    parameters_ = parameters;
    sender_ = std::make_unique<TitaSender>(parameters_, FlowInfo{}, TestPort(), shared_);
  }
  void Grant(uint64_t credit_end, double gbps) { sender_->OnGrant({now_, credit_end, Rate::Gbps(gbps)}); }
  uint64_t credit() const { return sender_->allowance().credit_end; }
  double pace() const { return sender_->allowance().pacing_rate.gbps(); }

  TitaParameters parameters_;
  TitaPort shared_{12.5e9};
  std::unique_ptr<TitaSender> sender_;
  Time now_ = Time::FromNanos(10'000'000);
};

TEST_F(TitaSenderTest, ASmallBacklogGoesAtOnceALargeOneWaits) {
  EXPECT_EQ(credit(), 0u);
  sender_->OnBacklog(now_, 1000, 0);
  EXPECT_EQ(credit(), 1000u);
  Make({.unscheduled = 1.0 / 32});
  sender_->OnBacklog(now_, 1 << 20, 0);
  EXPECT_EQ(credit(), 0u);
  Make({.unscheduled = 1.0 / 32, .unscheduled_large = 2});
  sender_->OnBacklog(now_, 1 << 20, 0);
  EXPECT_EQ(credit(), 2 * kSegment);
}

TEST_F(TitaSenderTest, UnscheduledBytesAreBoundedPerRoundTrip) {
  uint64_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    sender_->OnBacklog(now_, 1000, sent);
    if (credit() > sent) {
      sent += 1000;
      sender_->OnSent(now_, sent, sent);
      sender_->OnBacklog(now_, 0, sent);
    }
  }
  EXPECT_LE(sent, 6000u);  // a 32nd of 172 KB
  now_ = now_ + Duration::Micros(14);
  sender_->OnBacklog(now_, 0, sent);
  sender_->OnBacklog(now_, 1000, sent);
  EXPECT_EQ(credit(), sent + 1000);
}

TEST_F(TitaSenderTest, SinglesGoBesideABacklogThatWaitsSoManyBytesARoundTrip) {
  const auto single_end = [this] { return sender_->allowance().single_end; };
  sender_->OnBacklog(now_, 1 << 20, 0);
  EXPECT_EQ(credit(), 0u);
  uint64_t sent = 0;
  for (int i = 0; i < 100 && single_end() > sent; ++i) {
    sent += 1000;
    sender_->OnSent(now_, sent, sent);
  }
  EXPECT_LE(sent, 6000u);  // a 32nd of 172 KB
  EXPECT_GE(sent, 5000u);
  Grant(sent + kSegment, 50);  // credit counts from what was sent; it gives the singles nothing of their own
  EXPECT_EQ(credit(), sent + kSegment);
  EXPECT_LE(single_end(), sent);
  now_ = now_ + Duration::Micros(14);
  sender_->OnAck({.now = now_, .acked_bytes = 1000, .acked_packets = 1, .in_flight_bytes = sent - 1000});
  EXPECT_GE(single_end(), sent + 5000);
}

TEST_F(TitaSenderTest, AnEmptyNetworkRenewsThem) {
  uint64_t sent = 0;
  for (int i = 0; i < 100; ++i) {  // ping-pong within one nominal round trip
    sender_->OnBacklog(now_, 1000, sent);
    ASSERT_GT(credit(), sent);
    sent += 1000;
    sender_->OnSent(now_, sent, 1000);
    sender_->OnBacklog(now_, 0, sent);
    sender_->OnAck({.now = now_, .acked_bytes = 1000, .acked_packets = 1, .in_flight_bytes = 0});
  }
}

TEST_F(TitaSenderTest, CreditIsCumulativeAndOldGrantsChangeNothing) {
  sender_->OnBacklog(now_, 1 << 20, 0);
  Grant(10 * kSegment, 50);
  EXPECT_EQ(credit(), 10 * kSegment);
  Grant(5 * kSegment, 50);
  EXPECT_EQ(credit(), 10 * kSegment);
}

TEST_F(TitaSenderTest, PacesNearTheGrantedRateAndFasterWhenCreditPilesUp) {
  sender_->OnBacklog(now_, 1 << 20, 0);
  Grant(kSegment, 40);
  EXPECT_NEAR(pace(), 40 * 1.25, 0.01);
  Grant(40 * kSegment, 10);
  EXPECT_NEAR(pace(), 40 * 4160 * 8 / 14e3, 0.5);  // all within a round trip
  Grant(4000 * kSegment, 10);
  EXPECT_DOUBLE_EQ(pace(), 100);
}

TEST_F(TitaSenderTest, PostedCreditKeepsItsPhase) {
  Grant(kSegment, 100.0 / 16);  // period: 16 packets, 5325 ns
  now_ = now_ + Duration::Nanos(7000);
  sender_->OnBacklog(now_, 1 << 20, 0);
  EXPECT_EQ(credit(), 0u);
  EXPECT_EQ(sender_->allowance().held_end, kSegment);
  EXPECT_NEAR(static_cast<double>((sender_->PollTimeout() - now_).nanos()), 2 * 5325 - 7000, 5);
  now_ = sender_->PollTimeout();
  sender_->HandleTimeout(now_);
  EXPECT_EQ(credit(), kSegment);
  EXPECT_EQ(sender_->allowance().held_end, 0u);
}

TEST_F(TitaSenderTest, SmallOrFastPostedFlowsDoNotWait) {
  Grant(kSegment, 100.0 / 16);
  now_ = now_ + Duration::Nanos(7000);
  sender_->OnBacklog(now_, 100, 0);
  EXPECT_EQ(credit(), kSegment);
  Make({});
  Grant(kSegment, 100);
  now_ = now_ + Duration::Nanos(7000);
  sender_->OnBacklog(now_, 1 << 20, 0);
  EXPECT_EQ(credit(), kSegment);
}

TEST_F(TitaSenderTest, WithoutCreditForLongItProbes) {
  sender_->OnBacklog(now_, 1 << 20, 0);
  Time last = now_;
  for (int i = 0; i < 10; ++i) {
    const Time probe = sender_->PollTimeout();
    ASSERT_FALSE(probe.is_never());
    EXPECT_GT(probe, last);
    last = now_ = probe;
    sender_->HandleTimeout(now_);
    ASSERT_EQ(credit(), static_cast<uint64_t>(i + 1) * kSegment);
    sender_->OnSent(now_, credit(), kSegment);
  }
  Grant(20 * kSegment, 10);
  EXPECT_TRUE(sender_->PollTimeout().is_never());
}

TEST_F(TitaSenderTest, TheCapIsTheShareOfTheUplink) {
  TitaSender other(parameters_, FlowInfo{}, TestPort(), shared_);
  EXPECT_DOUBLE_EQ(sender_->cap().gbps(), 100);
  sender_->OnBacklog(now_, 1 << 20, 0);
  other.OnBacklog(now_, 1 << 20, 0);
  EXPECT_DOUBLE_EQ(sender_->cap().gbps(), 50);
  other.OnGrant({now_, kSegment, Rate::Gbps(10)});
  EXPECT_DOUBLE_EQ(sender_->cap().gbps(), 90);
}

TEST_F(TitaSenderTest, WhoGetsNothingGrantedLeavesTheUplinkToTheOthers) {
  TitaSender other(parameters_, FlowInfo{}, TestPort(), shared_);
  sender_->OnBacklog(now_, 1 << 20, 0);
  other.OnBacklog(now_, 1 << 20, 0);
  EXPECT_DOUBLE_EQ(other.cap().gbps(), 50);
  now_ = sender_->PollTimeout();
  sender_->HandleTimeout(now_);
  EXPECT_DOUBLE_EQ(other.cap().gbps(), 100);
  sender_->OnGrant({now_, kSegment, Rate::Gbps(50)});
  EXPECT_DOUBLE_EQ(other.cap().gbps(), 50);
}

TEST_F(TitaSenderTest, AcknowledgementsAreCountedForTheDownlink) {
  sender_->OnAck({.now = now_, .acked_bytes = kSegment, .acked_packets = 1});
  EXPECT_EQ(shared_.control_bytes_in, 64u);
}

}  // namespace
}  // namespace paceline
