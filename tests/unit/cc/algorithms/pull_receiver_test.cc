// The rules of the pull pacer, each with the numbers of its scheme. 100 Gb/s, 14 us: a BDP is 172,307 bytes, a segment
// takes 332.8 ns on the wire.
#include "cc/algorithms/pull_receiver.h"

#include <array>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

constexpr uint64_t kSegment = 4096, kBdp = 172'307;
constexpr uint64_t kMuch = 1 << 30;

// So many segments in BDP; half a byte more, so that cutting it to bytes gives them back.
constexpr double Segments(int count) { return (count * 4096 + 0.5) / kBdp; }

class PullReceiverTest : public ::testing::Test {
 protected:
  void Make(const PullRules& rules, uint32_t flows = 1, const PortInfo& port = TestPort()) {
    receiver_ = std::make_unique<PullReceiver>(rules, port, 1);
    for (uint32_t flow = 0; flow < flows; ++flow) receiver_->AddFlow(flow, {}, now_);
  }
  void Demand(uint32_t flow, uint64_t end, double gbps = 100) {
    receiver_->OnDemand(flow, end, Rate::Gbps(gbps), now_);
  }
  // A full segment that ends at tx_total.
  void Arrive(uint32_t flow, uint64_t tx_total, uint64_t lost_total = 0) {
    receiver_->OnArrival(
        flow, {.now = now_, .bytes = kSegment, .packets = 1, .tx_total = tx_total, .lost_total = lost_total});
  }
  void ArriveTrimmed(uint32_t flow, uint64_t tx_total) {
    receiver_->OnArrival(flow, {.now = now_, .packets = 1, .trimmed_packets = 1, .tx_total = tx_total});
  }
  void Pass(double micros) { now_ = now_ + Duration::Nanos(static_cast<int64_t>(micros * 1000)); }
  // What is granted in the next `micros`, in order.
  std::vector<Grant> Grants(double micros) {
    const Time end = now_ + Duration::Nanos(static_cast<int64_t>(micros * 1000));
    std::vector<Grant> grants;
    while (receiver_->PollTimeout() <= end) {
      now_ = std::max(now_, receiver_->PollTimeout());
      std::array<Grant, 1> out;
      if (receiver_->PollGrants(now_, out) > 0) grants.push_back(out[0]);
    }
    now_ = end;
    return grants;
  }

  std::unique_ptr<PullReceiver> receiver_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_F(PullReceiverTest, DemandWithoutDataIsPulledAfterTwoRoundTripsAtThePortsRate) {
  Make({.window = 1000}, 2);
  Demand(0, kMuch);
  Demand(1, kMuch);
  EXPECT_TRUE(Grants(27.9).empty());
  const std::vector<Grant> grants = Grants(0.101 + 999 * 0.3328);
  ASSERT_EQ(grants.size(), 1000u);
  for (uint32_t i = 0; i < 1000; ++i) {  // round robin
    EXPECT_EQ(grants[i].flow, i % 2);
    EXPECT_EQ(grants[i].credit_end, (i / 2 + 1) * kSegment);
  }
  EXPECT_DOUBLE_EQ(grants[10].rate.gbps(), 50);
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), 1000 * kSegment);
}

TEST_F(PullReceiverTest, TheRateIsAPartOfTheLine) {
  Make({.rate = 0.5, .window = 1000, .pull_segments = 4});
  Demand(0, kMuch);
  Grants(28);
  const std::vector<Grant> grants = Grants(0.001 + 10 * 4 * 0.3328 / 0.5);
  ASSERT_EQ(grants.size(), 10u);
  EXPECT_EQ(grants[9].credit_end - grants[8].credit_end, 4 * kSegment);
}

TEST_F(PullReceiverTest, TheFirstWindowCountsAsGrantedWithTheFirstPacket) {
  Make({});
  Demand(0, kMuch);
  Arrive(0, kSegment);
  // Asked for: a BDP beyond what was sent. A pull is due for the packet that came, and no more.
  const std::vector<Grant> grants = Grants(5);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].credit_end, kBdp + kSegment);
  Arrive(0, 2 * kSegment);
  EXPECT_EQ(Grants(5).at(0).credit_end, kBdp + 2 * kSegment);
}

TEST_F(PullReceiverTest, ADroppedFirstWindowIsWhatFitsIntoARoundTripAtTheSendersRate) {
  Make({.first_window = 1.5, .window = 1.5, .drop_first_window = true});
  Demand(0, kMuch, 10);
  Arrive(0, kSegment);
  Demand(0, kMuch, 10);
  // 17,230 bytes are five segments of credit; the next pull ends a segment beyond.
  const std::vector<Grant> grants = Grants(0.1);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].credit_end, 5 * kSegment + kSegment);
}

TEST_F(PullReceiverTest, AfterARoundTripOnlyWhatCameCounts) {
  Make({.drop_first_window = true});
  Demand(0, 8 * kSegment);
  Arrive(0, kSegment);
  EXPECT_TRUE(Grants(13.9).empty());  // all of it is in the first window
  // Seven segments are wanted; the sender dropped them.
  const std::vector<Grant> grants = Grants(0.101 + 7 * 0.3328);
  ASSERT_EQ(grants.size(), 7u);
  EXPECT_EQ(grants[0].credit_end, 2 * kSegment);
  EXPECT_EQ(grants[6].credit_end, 8 * kSegment);
}

TEST_F(PullReceiverTest, WithoutDroppingItIsNotPulledAgain) {
  Make({.per_arrival = true});
  Demand(0, 8 * kSegment);
  Arrive(0, kSegment);
  EXPECT_TRUE(Grants(30).empty());
}

TEST_F(PullReceiverTest, ByArrivalEachPacketAndEachHeaderEarnsOnePull) {
  Make({.per_arrival = true});
  Demand(0, kMuch);
  Arrive(0, kSegment);
  const uint64_t first = Grants(5).at(0).credit_end;
  EXPECT_EQ(first, kBdp + kSegment);
  ArriveTrimmed(0, 2 * kSegment);
  EXPECT_EQ(Grants(5).at(0).credit_end, first + kSegment);
  // The sender's count names the same packet again: one pull for the packet that says so.
  Arrive(0, 3 * kSegment, kSegment);
  const std::vector<Grant> grants = Grants(5);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].credit_end, first + 2 * kSegment);
  // A loss that nobody saw earns one too.
  Arrive(0, 5 * kSegment, 2 * kSegment);
  EXPECT_EQ(Grants(5).size(), 2u);
}

TEST_F(PullReceiverTest, TrimmedPacketsArePulledOnceTheSenderWantsThem) {
  Make({.drop_first_window = true});
  Demand(0, 2 * kSegment);
  Arrive(0, kSegment);
  ArriveTrimmed(0, 2 * kSegment);
  EXPECT_TRUE(Grants(5).empty());
  receiver_->OnArrival(0, {.now = now_, .tx_total = 2 * kSegment, .lost_total = kSegment});
  Demand(0, 3 * kSegment);
  const std::vector<Grant> grants = Grants(5);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].credit_end, 3 * kSegment);
  Arrive(0, 3 * kSegment, kSegment);
  EXPECT_TRUE(Grants(30).empty());
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), 0u);
}

TEST_F(PullReceiverTest, SendersWithTrimmedPacketsComeFirst) {
  Make({.drop_first_window = true, .retransmit_first = true}, 3);
  for (uint32_t flow = 0; flow < 3; ++flow) {
    Demand(flow, kMuch);
    for (uint64_t k = 1; k <= 4; ++k)
      flow == 2 && k > 2 ? ArriveTrimmed(flow, k * kSegment) : Arrive(flow, k * kSegment);
  }
  const std::vector<Grant> grants = Grants(0.001 + 5 * 0.3328);
  ASSERT_GE(grants.size(), 5u);
  EXPECT_EQ(grants[0].flow, 2u);
  EXPECT_EQ(grants[1].flow, 2u);  // two were trimmed
  EXPECT_EQ(grants[2].flow, 0u);
  EXPECT_EQ(grants[3].flow, 1u);
  EXPECT_EQ(grants[4].flow, 2u);
}

TEST_F(PullReceiverTest, AnExactPullEndsAtTheQuantumAboveWhatIsAskedFor) {
  // Windows of 4 segments: 4 * 4096 / 172,307 BDP. A quarter of the port: of the 4 segments beyond the first packet
  // the sender asks for one and a byte.
  PullRules rules{.first_window = 0.02, .window = Segments(4), .pull_segments = 4, .quantum = 256};
  rules.drop_first_window = rules.divide_demand = rules.exact_pulls = true;
  Make(rules);
  Demand(0, kMuch, 25);
  Arrive(0, kSegment);
  const std::vector<Grant> grants = Grants(10);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].credit_end, kSegment + kSegment + 256 - (kSegment % 256));
}

TEST_F(PullReceiverTest, AnUndividedDemandIsTheWholeWindow) {
  PullRules rules{.first_window = 0.02, .window = Segments(8), .pull_segments = 4, .quantum = 256};
  rules.drop_first_window = rules.exact_pulls = true;
  Make(rules);
  Demand(0, kMuch, 25);
  Arrive(0, kSegment);
  const std::vector<Grant> grants = Grants(10);
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_EQ(grants[0].credit_end, 5 * kSegment);
  EXPECT_EQ(grants[1].credit_end, 9 * kSegment);
}

TEST_F(PullReceiverTest, AShareIsAskedForBeyondTheCreditThatThePacketWentWith) {
  PullRules rules{.first_window = 0.02, .window = Segments(8)};
  rules.drop_first_window = rules.divide_demand = true;
  Make(rules);
  Demand(0, kMuch, 25);
  Arrive(0, kSegment);
  // A quarter of eight segments, and a byte: three pulls, up to four segments.
  EXPECT_EQ(Grants(10).size(), 3u);
  // It went without the newest pull: three segments count. It asks for a quarter of the seven others up to its window.
  Arrive(0, 2 * kSegment);
  const std::vector<Grant> grants = Grants(10);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].credit_end, 5 * kSegment);  // asked for: 4.75 and a byte
}

TEST_F(PullReceiverTest, IdleSendersGetTheTimeThatNobodyElseWants) {
  PullRules rules{.first_window = 0.02, .window = Segments(2), .idle_credit = Segments(4)};
  rules.drop_first_window = true;
  Make(rules);
  Demand(0, kMuch);
  Arrive(0, kSegment);
  const std::vector<Grant> grants = Grants(10);
  ASSERT_FALSE(grants.empty());
  EXPECT_EQ(grants.back().credit_end, (1 + 2 + 4) * kSegment);
}

TEST_F(PullReceiverTest, NoGrantGoesBeyondTheDemandButItsTimeIsSpent) {
  PullRules rules{.first_window = 0.02, .window = 100, .idle_credit = Segments(4)};
  rules.drop_first_window = true;
  Make(rules, 2);
  Demand(0, 2 * kSegment);
  Arrive(0, kSegment);
  EXPECT_EQ(Grants(0).size(), 1u);  // the second and last segment
  Arrive(0, 2 * kSegment);
  Pass(0.4);
  std::array<Grant, 4> out;
  EXPECT_EQ(receiver_->PollGrants(now_, out), 0u);  // the time of a pull goes to flow 0
  Demand(1, kMuch);
  Arrive(1, kSegment);
  EXPECT_EQ(receiver_->PollGrants(now_, out), 0u);
  Pass(0.3328);
  EXPECT_EQ(receiver_->PollGrants(now_, out), 1u);
  EXPECT_EQ(out[0].flow, 1u);
}

TEST_F(PullReceiverTest, AGrantIsSentAgainAfterSilence) {
  Make({.window = Segments(2)});
  Demand(0, kMuch);
  EXPECT_EQ(Grants(28 + 0.333).size(), 2u);
  EXPECT_TRUE(Grants(55).empty());
  std::vector<Grant> grants = Grants(2);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].credit_end, 2 * kSegment);
  EXPECT_TRUE(Grants(50).empty());  // the next one comes later
  EXPECT_EQ(Grants(1'000'000).size(), 7u);
  EXPECT_TRUE(receiver_->PollTimeout().is_never());
}

TEST_F(PullReceiverTest, ARequestShowsThatTheSenderHasNoCredit) {
  PullRules rules{.first_window = 0.02, .window = Segments(4), .pull_segments = 4, .quantum = 256};
  rules.drop_first_window = rules.divide_demand = rules.exact_pulls = true;
  Make(rules);
  Demand(0, kMuch, 1);
  Arrive(0, kSegment);
  EXPECT_EQ(Grants(10).size(), 1u);  // 256 bytes
  receiver_->OnArrival(0, {.now = now_, .tx_total = kSegment});
  EXPECT_EQ(Grants(10).size(), 1u);
}

TEST_F(PullReceiverTest, TheCoreLoopNeedsAnOversubscribedCore) {
  PullRules rules;
  rules.core_loop = true;
  const auto rate_after_marks = [&] {
    Demand(0, kMuch);
    for (int i = 0; i < 100; ++i) {
      Pass(1);
      receiver_->OnArrival(0, {.now = now_, .bytes = kSegment, .packets = 1, .marked_packets = 1});
    }
    return receiver_->pull_rate();
  };
  Make(rules);
  EXPECT_DOUBLE_EQ(rate_after_marks(), 12.5e9);
  rules.oversubscription = 4;
  Make(rules);
  EXPECT_LT(rate_after_marks(), 0.9 * 12.5e9);
  rules.oversubscription = 1;
  PortInfo port = TestPort();
  port.core_rate = Rate::Gbps(25);
  Make(rules, 1, port);
  EXPECT_LT(rate_after_marks(), 0.9 * 12.5e9);
}

TEST_F(PullReceiverTest, AbsurdClaimsStayWithinTheirFlow) {
  Make({}, 2);
  Demand(0, ~uint64_t{0});
  receiver_->OnArrival(0, {.now = now_, .bytes = ~uint64_t{0}, .packets = 1, .tx_total = ~uint64_t{0}});
  Demand(1, kMuch);
  Arrive(1, kSegment);
  EXPECT_LT(receiver_->outstanding_credit_bytes(), 6 * kBdp);
  bool served = false;
  for (const Grant& grant : Grants(5)) served |= grant.flow == 1;
  EXPECT_TRUE(served);
  receiver_->RemoveFlow(0, now_);
  receiver_->RemoveFlow(1, now_);
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), 0u);
  EXPECT_TRUE(receiver_->PollTimeout().is_never());
}

}  // namespace
}  // namespace paceline
