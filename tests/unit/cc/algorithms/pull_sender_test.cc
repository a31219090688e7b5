#include "cc/algorithms/pull_sender.h"

#include <memory>

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

constexpr uint64_t kBdp = 172'307;  // 12.5e9 * 14e-6 * 4096 / 4160
constexpr uint64_t kSegment = 4096;

class PullSenderTest : public ::testing::Test {
 protected:
  std::unique_ptr<PullSender> Make(const PullRules& rules) {
    return std::make_unique<PullSender>(rules, FlowInfo{}, TestPort(), shared_);
  }
  void Send(PullSender& sender, uint64_t tx_total) { sender.OnSent(now_, tx_total, tx_total); }
  void Ack(PullSender& sender, uint64_t in_flight) {
    sender.OnAck({.now = now_, .acked_bytes = kSegment, .acked_packets = 1, .in_flight_bytes = in_flight});
  }

  PullPort shared_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_F(PullSenderTest, ABacklogOnAnIdleFlowMaySendTheFirstWindow) {
  const auto sender = Make({.first_window = 1.5});
  EXPECT_EQ(sender->allowance().credit_end, 0u);
  sender->OnBacklog(now_, 1 << 20, 0);
  EXPECT_EQ(sender->allowance().credit_end, 258'460u);  // 1.5 BDP
  EXPECT_TRUE(sender->PollTimeout().is_never());
}

TEST_F(PullSenderTest, TheFirstNewsVoidsTheRestOfIt) {
  const auto sender = Make({.drop_first_window = true});
  sender->OnBacklog(now_, 1 << 20, 0);
  Send(*sender, 10 * kSegment);
  sender->OnAck({.now = now_, .in_flight_bytes = 10 * kSegment});  // of a request: no data, no news
  EXPECT_EQ(sender->allowance().credit_end, kBdp);
  Ack(*sender, 9 * kSegment);
  EXPECT_EQ(sender->allowance().credit_end, 10 * kSegment);
  sender->OnGrant({now_, 14 * kSegment, Rate()});
  EXPECT_EQ(sender->allowance().credit_end, 14 * kSegment);

  for (const bool trim : {true, false}) {
    const auto other = Make({.drop_first_window = true});
    other->OnBacklog(now_, 1 << 20, 0);
    Send(*other, kSegment);
    if (trim) {
      other->OnLoss({.now = now_, .lost_bytes = kSegment, .lost_packets = 1, .cause = LossCause::kTrimmed});
    } else {
      other->OnGrant({now_, 100, Rate()});
    }
    EXPECT_EQ(other->allowance().credit_end, kSegment);
  }
}

TEST_F(PullSenderTest, WithoutThatRuleTheFirstWindowStays) {
  const auto sender = Make({});
  sender->OnBacklog(now_, 1 << 20, 0);
  Send(*sender, kSegment);
  Ack(*sender, 0);
  EXPECT_EQ(sender->allowance().credit_end, kBdp);
}

TEST_F(PullSenderTest, NoNewFirstWindowWhileSomethingIsOnTheWayOrCreditIsLeft) {
  const auto sender = Make({});
  sender->OnBacklog(now_, kSegment, 0);
  Send(*sender, kSegment);
  sender->OnBacklog(now_, 0, kSegment);
  sender->OnBacklog(now_, 1 << 20, kSegment);  // the first packet is still on the way
  EXPECT_EQ(sender->allowance().credit_end, kBdp);
  sender->OnBacklog(now_, 0, kSegment);
  Ack(*sender, 0);
  sender->OnBacklog(now_, 1 << 20, kSegment);
  EXPECT_EQ(sender->allowance().credit_end, kSegment + kBdp);

  const auto granted = Make({});
  granted->OnGrant({now_, 8 * kSegment, Rate()});
  granted->OnBacklog(now_, 1 << 20, 0);
  EXPECT_EQ(granted->allowance().credit_end, 8 * kSegment);
}

TEST_F(PullSenderTest, OldGrantsChangeNothing) {
  const auto sender = Make({.drop_first_window = true});
  sender->OnBacklog(now_, 1 << 20, 0);
  sender->OnGrant({now_, 8 * kSegment, Rate()});
  sender->OnGrant({now_, 4 * kSegment, Rate()});
  EXPECT_EQ(sender->allowance().credit_end, 8 * kSegment);
}

TEST_F(PullSenderTest, TheCapIsThePortsRateOverItsActiveFlows) {
  const auto a = Make({}), b = Make({});
  auto c = Make({});
  EXPECT_DOUBLE_EQ(a->cap().gbps(), 100);
  a->OnBacklog(now_, 1, 0);
  b->OnBacklog(now_, 1, 0);
  c->OnBacklog(now_, 1, 0);
  c->OnBacklog(now_, 2, 0);  // once each
  b->OnBacklog(now_, 0, 0);
  EXPECT_DOUBLE_EQ(a->cap().gbps(), 50);
  c.reset();
  EXPECT_DOUBLE_EQ(a->cap().gbps(), 100);
}

TEST_F(PullSenderTest, WithoutCreditASegmentGoesAtDoublingIntervals) {
  const auto sender = Make({.drop_first_window = true});
  sender->OnBacklog(now_, 1 << 20, 0);
  Send(*sender, kSegment);
  Ack(*sender, 0);
  ASSERT_EQ((sender->PollTimeout() - now_).nanos(), 16 * 14'000);
  now_ = sender->PollTimeout();
  sender->HandleTimeout(now_);
  EXPECT_EQ(sender->allowance().credit_end, 2 * kSegment);
  EXPECT_TRUE(sender->PollTimeout().is_never());
  Send(*sender, 2 * kSegment);
  EXPECT_EQ((sender->PollTimeout() - now_).nanos(), 32 * 14'000);
  sender->OnGrant({now_, 3 * kSegment, Rate()});
  EXPECT_TRUE(sender->PollTimeout().is_never());
}

}  // namespace
}  // namespace paceline
