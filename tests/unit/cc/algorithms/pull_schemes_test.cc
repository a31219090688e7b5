// `rccc`, `eqds` and `ndp` as the registry makes them: the defaults that tell them apart.
#include <array>
#include <memory>
#include <string>

#include "cc/registry.h"
#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

constexpr uint64_t kSegment = 4096, kBdp = 172'307;

class PullSchemes : public ::testing::Test {
 protected:
  void Make(const std::string& name, const ParameterMap& parameters = {}) {
    control_ = *CreateCongestionControl(name, parameters, 1);
    sender_ = control_->NewSender({}, TestPort(), now_);
    receiver_ = control_->NewReceiver(TestPort());
  }
  uint64_t FirstWindow() {
    sender_->OnBacklog(now_, 1 << 20, 0);
    return sender_->allowance().credit_end;
  }
  uint64_t AfterNews() {
    sender_->OnSent(now_, kSegment, kSegment);
    sender_->OnAck({.now = now_, .acked_bytes = kSegment, .acked_packets = 1});
    return sender_->allowance().credit_end;
  }
  // Nanoseconds from the first to the second pull of eleven flows, and the size of a pull.
  std::pair<int64_t, uint64_t> Pulls() {
    for (uint32_t flow = 0; flow < 11; ++flow) {
      receiver_->AddFlow(flow, {}, now_);
      receiver_->OnDemand(flow, 1 << 30, Rate::Gbps(100), now_);
    }
    Time times[2];
    uint64_t bytes = 0;
    for (Time& time : times) {
      std::array<Grant, 1> out;
      do {
        now_ = std::max(now_, receiver_->PollTimeout());
      } while (receiver_->PollGrants(now_, out) == 0);
      time = now_;
      bytes = out[0].credit_end;
    }
    return {(times[1] - times[0]).nanos(), bytes};
  }

  std::unique_ptr<CongestionControl> control_;
  std::unique_ptr<SenderController> sender_;
  std::unique_ptr<ReceiverController> receiver_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_F(PullSchemes, Rccc) {
  Make("rccc");
  EXPECT_EQ(FirstWindow(), 258'460u);  // 1.5 BDP
  EXPECT_EQ(AfterNews(), kSegment);
  const auto [gap, bytes] = Pulls();
  EXPECT_EQ(bytes, 4 * kSegment);  // 64 quanta
  EXPECT_EQ(gap, 1345);            // 4 * 332.8 / 0.99, rounded up
}

TEST_F(PullSchemes, Eqds) {
  Make("eqds");
  EXPECT_EQ(FirstWindow(), kBdp);
  EXPECT_EQ(AfterNews(), kSegment);
  const auto [gap, bytes] = Pulls();
  EXPECT_EQ(bytes, kSegment);
  EXPECT_EQ(gap, 337);  // 332.8 / 0.99
}

TEST_F(PullSchemes, Ndp) {
  Make("ndp");
  EXPECT_EQ(FirstWindow(), kBdp);
  EXPECT_EQ(AfterNews(), kBdp);
  const auto [gap, bytes] = Pulls();
  EXPECT_EQ(bytes, kSegment);
  EXPECT_EQ(gap, 333);
}

TEST_F(PullSchemes, AQuantumRoundsPullsDown) {
  Make("rccc", {{"quantum", 1000.0}});
  EXPECT_EQ(Pulls().second, 16'000u);  // of 16,384
}

}  // namespace
}  // namespace paceline
