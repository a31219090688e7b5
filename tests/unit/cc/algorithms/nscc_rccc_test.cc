// Numbers as in nscc_test.cc: BDP 172,307 payload bytes, largest window 258,460.
#include "cc/algorithms/nscc_rccc.h"

#include <array>
#include <memory>

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

constexpr uint64_t kSegment = 4096, kLargestWindow = 258'460;

class NsccRccc : public ::testing::Test {
 protected:
  NsccRccc() { Make({}); }
  void Make(const ParameterMap& given) {
    const AlgorithmInfo algorithm = NsccRcccAlgorithm();
    sender_.reset();  // before what made it
    control_ = algorithm.create(*ResolveParameters(algorithm, given), 1);
    sender_ = control_->NewSender({}, TestPort(), now_);
    sender_->OnBacklog(now_, 1 << 20, 0);
  }
  void Send(uint64_t tx_total) { sender_->OnSent(now_, tx_total, tx_total); }
  void Ack(uint64_t segments) {
    sender_->OnAck({.now = now_,
                    .acked_bytes = segments * kSegment,
                    .acked_packets = static_cast<uint32_t>(segments),
                    .rtt = Duration::Micros(14)});
  }
  void Lose(uint64_t segments) {
    sender_->OnLoss({.now = now_,
                     .lost_bytes = segments * kSegment,
                     .lost_packets = static_cast<uint32_t>(segments),
                     .cause = LossCause::kPathGap});
  }

  std::unique_ptr<CongestionControl> control_;
  std::unique_ptr<SenderController> sender_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_F(NsccRccc, BothHoldAtOnce) {
  EXPECT_EQ(sender_->allowance().window_bytes, kLargestWindow);
  EXPECT_EQ(sender_->allowance().credit_end, kLargestWindow);  // the first window
  EXPECT_EQ(sender_->allowance().pacing_rate.gbps(), 100);
}

TEST_F(NsccRccc, TheWindowFallsWithLossesWhateverTheCredit) {
  sender_->OnGrant({.now = now_, .credit_end = 1'000'000});
  Lose(10);
  EXPECT_EQ(sender_->allowance().window_bytes, kLargestWindow - 10 * kSegment);
  EXPECT_EQ(sender_->allowance().credit_end, 1'000'000u);
}

TEST_F(NsccRccc, TheCreditEndsWhateverTheWindow) {
  Send(kSegment);
  Ack(1);  // the first news ends the first window
  EXPECT_EQ(sender_->allowance().credit_end, kSegment);
  EXPECT_GT(sender_->allowance().window_bytes, 60 * kSegment);
  EXPECT_FALSE(sender_->PollTimeout().is_never());  // asks again, as without the window
  now_ = sender_->PollTimeout();
  sender_->HandleTimeout(now_);
  EXPECT_EQ(sender_->allowance().credit_end, 2 * kSegment);
}

TEST_F(NsccRccc, TheReceiverIsThatOfRccc) {
  const auto receiver = control_->NewReceiver(TestPort());
  ASSERT_NE(receiver, nullptr);
  receiver->AddFlow(0, {}, now_);
  receiver->OnDemand(0, 1 << 30, Rate::Gbps(100), now_);
  std::array<Grant, 1> out;
  do {
    now_ = std::max(now_, receiver->PollTimeout());
  } while (receiver->PollGrants(now_, out) == 0);
  EXPECT_EQ(out[0].credit_end, 4 * kSegment);
}

TEST_F(NsccRccc, TakesTheParametersOfBoth) {
  Make({{"max_cwnd", 1.0}, {"first_window", 0.5}});
  EXPECT_EQ(sender_->allowance().window_bytes, 172'307u);
  EXPECT_EQ(sender_->allowance().credit_end, 86'153u);
}

}  // namespace
}  // namespace paceline
