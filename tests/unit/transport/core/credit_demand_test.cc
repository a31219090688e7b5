// When a sender asks for credit, and what it does with what it has.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/transport/core/credited_hosts.h"

namespace paceline::support {
namespace {

using CreditDemandTest = CreditedHosts;

TEST_F(CreditDemandTest, LanesThatSendOneByOneAskForAllThatTheyHaveToSend) {
  Begin(1);
  const uint64_t receive = Expect(4 * kBurst);
  Give(4 * kBurst);
  Rest();
  told_.clear();
  script_.holds = true;
  Send(4 * kBurst);
  Rest(Duration::Micros(100));
  EXPECT_EQ(demands_, 1u);
  script_.holds = false;
  Give(5 * kBurst);
  AwaitOk(1, receive);
}

// It was found lost, waited for credit, and arrived after all where there was no room for it.
TEST_F(CreditDemandTest, WhatIsPutOffIsNotSentAgainForCreditAlone) {
  WorldOptions options;
  options.endpoint.unexpected_bytes = 1000;
  Begin(options, kBurstSegments, 1);
  const uint64_t first = Expect(kBurst);
  Give(kBurst + 1);
  Send(kBurst);
  AwaitOk(1, first);
  also_ = [](NetworkPacket& packet, Fate& fate) {
    if (packet.payload_bytes > 0) fate.extra_delay = Duration::Millis(200);
  };
  const uint64_t put_off = Send(3000);
  Rest(Duration::Millis(100));
  const auto& sent = endpoint(0).counters();
  ASSERT_GT(sent.lost_timeout + sent.lost_reorder + sent.lost_path_gap, 0u);
  ASSERT_EQ(endpoint(1).counters().not_ready_sent, 0u);
  Rest(Duration::Millis(150));
  ASSERT_EQ(endpoint(1).counters().not_ready_sent, 1u);
  also_ = nullptr;
  Give(2 * kBurst);
  Rest(Duration::Millis(100));
  EXPECT_EQ(sent.retransmits, 0u);
  Expect(3000);
  AwaitOk(0, put_off);
}

TEST_F(CreditDemandTest, WhoWaitsToBeClearedIsAnsweredWithoutCredit) {
  Begin();
  lose_ = 1;
  Expect(4 * kBurst);
  Rest();
  ASSERT_EQ(lose_, 0u) << "that there is a receive";
  const uint64_t send = Send(4 * kBurst);
  Rest();
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back().clear_limit, 1u);
  Give(4 * kBurst);
  AwaitOk(0, send);
}

TEST_F(CreditDemandTest, OrWithTheCreditThatItHas) {
  Begin();
  const uint64_t first = Expect(kBurst);
  Give(8 * kBurst);
  Send(kBurst);
  AwaitOk(1, first);
  Rest();
  lose_ = 2;  // that there is a receive, and that the send is matched
  Expect(4 * kBurst);
  Rest();
  ASSERT_EQ(lose_, 1u);
  const uint64_t send = Send(4 * kBurst);
  AwaitOk(0, send);
  EXPECT_EQ(lose_, 0u);
}

TEST_F(CreditDemandTest, AControllerThatHoldsCreditForAllAsksForNone) {
  for (const uint64_t credit : {4 * kBurst, 3 * kBurst}) {
    Begin();
    demands_ = 0;
    Expect(4 * kBurst);
    Give(credit);
    Rest();
    script_.holds = true;
    Send(4 * kBurst);
    Rest(Duration::Micros(10));
    EXPECT_EQ(demands_, credit == 4 * kBurst ? 0u : 1u);
    Rest(Duration::Seconds(1));  // it is to send first what it may, and wonders about nothing
    EXPECT_EQ(demands_, credit == 4 * kBurst ? 0u : 1u);
    EXPECT_EQ(endpoint(0).counters().asks_sent, 0u);
    script_.holds = false;
    Give(8 * kBurst);
    AwaitAll();
  }
}

// The receiver knows of more than it has given credit for, so it gives when it can.
TEST_F(CreditDemandTest, WhoHasSaidThatABurstIsToComeDoesNotAskForMore) {
  struct Case {
    uint32_t burst_segments;
    uint64_t said, more;  // beyond the credit
    size_t demands;
  };
  for (const Case& c : {Case{kBurstSegments, kBurst, kBurst / 2, 0}, Case{kBurstSegments, kBurst - kSegment, kBurst, 1},
                        Case{kBurstSegments, 2 * kBurst, 3 * kBurst, 1}, Case{1, kBurst, kBurst / 2, 1}}) {
    Begin(c.burst_segments);
    demands_ = 0;
    for (const uint64_t bytes : {kBurst + c.said, c.more}) Expect(bytes);
    Give(kBurst);
    Rest();
    for (const uint64_t bytes : {kBurst + c.said, c.more}) {
      EXPECT_EQ(demands_, 0u);
      Send(bytes);
      Rest(Duration::Micros(20));
    }
    ASSERT_EQ(arrived(), kBurst);
    EXPECT_EQ(demands_, c.demands) << c.burst_segments << ' ' << c.said << ' ' << c.more;
    Give(8 * kBurst);
    AwaitAll();
  }
}

// Without it, what is lost would count as being on its way.
TEST_F(CreditDemandTest, ButForWhatItHasFoundLost) {
  Begin();
  Expect(8 * kBurst);
  Give(kBurst);
  Rest();
  size_t packets = 0;
  also_ = [&packets](NetworkPacket& packet, Fate& fate) { fate.drop = packet.payload_bytes > 0 && ++packets == 3; };
  Send(8 * kBurst);
  const auto& counters = endpoint(0).counters();
  const auto lost = [&counters] { return counters.lost_path_gap + counters.lost_reorder + counters.lost_timeout; };
  world().RunUntil([&] { return lost() > 0 || demands_ > 0; });
  ASSERT_GT(lost(), 0u);
  Rest(Duration::Micros(1));
  EXPECT_EQ(demands_, 1u);
  also_ = nullptr;
  Give(10 * kBurst);
  AwaitAll();
}

// As it would have gone with the one before, if there had been credit for it.
TEST_F(CreditDemandTest, TheEndOfAMessageGoesWithTheBurstBehindIt) {
  for (const uint32_t segments : {1u, 4u, 5u}) {
    Begin();
    const std::vector<wire::DataHeader> left = SendAnEndAndMore(segments * kSegment - 100);
    size_t of_one_path = 0;
    while (of_one_path < left.size() && left[of_one_path].entropy == left[0].entropy) ++of_one_path;
    EXPECT_EQ(of_one_path, segments < 5 ? segments + kBurstSegments : kBurstSegments) << segments;
  }
}

// Its few bytes say nothing of how far behind its schedule the sender may catch up.
TEST_F(CreditDemandTest, TheEndOfAMessageTakesNoTimeFromWhatFollows) {
  Begin();
  script_.pace = Rate::Gbps(1);
  const std::vector<wire::DataHeader> left = SendAnEndAndMore(100);
  ASSERT_GT(left.size(), kBurstSegments);
  for (size_t i = 0; i <= kBurstSegments; ++i) EXPECT_EQ(left[i].timestamp, left[0].timestamp) << i;
}

}  // namespace
}  // namespace paceline::support
