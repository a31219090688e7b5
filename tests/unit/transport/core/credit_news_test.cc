// When a sender is told of credit and of receives that stand ready, and what it is answered when it asks.
#include <gtest/gtest.h>

#include "tests/unit/transport/core/credited_hosts.h"

namespace paceline::support {
namespace {

using CreditNewsTest = CreditedHosts;

TEST_F(CreditNewsTest, MoreThanAThirdAsMuchAgainIsToldAtOnce) {
  Begin();
  Expect(16 * kBurst);
  Give(6 * kBurst);
  Rest();
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back().credit_end, 6 * kBurst);
  Give(8 * kBurst + 1);
  const Time start = now();
  Rest();
  EXPECT_EQ(told_.back().credit_end, 8 * kBurst + 1);
  EXPECT_LT(told_.back().at - start, Duration::Micros(1));
}

// But not longer than until it has a use for it.
TEST_F(CreditNewsTest, ASenderThatHasNothingToSendKnowsOfThreeQuarters) {
  Begin();
  const uint64_t receive = Expect(8 * kBurst);
  Give(6 * kBurst);
  Rest();
  Give(8 * kBurst);
  Rest();
  EXPECT_EQ(told_.back().credit_end, 6 * kBurst);
  Send(8 * kBurst);
  AwaitOk(1, receive);
  EXPECT_EQ(told_.back().credit_end, 8 * kBurst);
  EXPECT_LT(told_.back().arrived, 5 * kBurst) << "before it has to stop";
  EXPECT_EQ(demands_, 0u);
}

TEST_F(CreditNewsTest, OrOfOneBurstOfTwo) {
  Begin();
  Expect(8 * kBurst);
  Give(kBurst);
  Rest();
  Give(2 * kBurst);
  Rest();
  EXPECT_EQ(told_.back().credit_end, kBurst);
  Give(3 * kBurst);
  Rest();
  EXPECT_EQ(told_.back().credit_end, 3 * kBurst);
}

TEST_F(CreditNewsTest, AFarSenderIsToldOfAllAtOnce) {
  WorldOptions options;
  options.packet_capabilities.base_rtt = Duration::Millis(1);
  Begin(options, kBurstSegments, 1);
  Expect(8 * kBurst);
  Give(6 * kBurst);
  Rest();
  Give(6 * kBurst + 1);
  Rest();
  EXPECT_EQ(told_.back().credit_end, 6 * kBurst + 1);
}

TEST_F(CreditNewsTest, WhoHasCreditForAllThatItSendsHearsOfMoreWithTheAcknowledgement) {
  Begin();
  const uint64_t receive = Expect(4 * kBurst);
  Give(4 * kBurst);
  Rest();
  const size_t before = told_.size();
  Send(4 * kBurst);
  world().RunUntil([this] { return arrived() > 0; });
  ASSERT_LT(arrived(), kBurst);
  Give(5 * kBurst);
  AwaitOk(1, receive);
  Rest();
  ASSERT_EQ(told_.size(), before + 1);
  EXPECT_EQ(told_.back().credit_end, 5 * kBurst);
  EXPECT_EQ(told_.back().arrived, 4 * kBurst);
}

// What came has just been acknowledged, and the rest is late.
TEST_F(CreditNewsTest, WhoHasMoreToSendDoesNotWaitForAnAcknowledgementThatIsNotPending) {
  Begin();
  Expect(16 * kBurst);
  Give(12 * kBurst);
  Rest();
  size_t packets = 0;
  also_ = [&](NetworkPacket& packet, Fate& fate) {
    if (packet.payload_bytes > 0 && ++packets > 4 * kBurstSegments) fate.extra_delay = Duration::Millis(2);
  };
  Send(16 * kBurst);
  world().RunUntil([this] { return arrived() == 4 * kBurst && endpoint(1).counters().acks_sent > 0; });
  Give(14 * kBurst);
  const Time start = now();
  Rest(Duration::Micros(50));
  ASSERT_EQ(demands_, 0u);
  EXPECT_EQ(told_.back().credit_end, 14 * kBurst);
  EXPECT_LE(told_.back().at - start, Duration::Micros(1));
}

TEST_F(CreditNewsTest, LanesThatSendOneByOneAreToldAllAtOnce) {
  Begin(1);
  Expect(8 * kBurst);
  Give(4 * kBurst);
  Rest();
  Give(4 * kBurst + 1);
  Rest();
  EXPECT_EQ(told_.back().credit_end, 4 * kBurst + 1);
  for (uint32_t limit = 2; limit < 10; ++limit) {
    Expect(8 * kBurst);
    Rest(Duration::Micros(10));
    EXPECT_EQ(told_.back().clear_limit, limit);
  }
}

TEST_F(CreditNewsTest, AndAreAnsweredThoughThereIsNothingToSay) {
  Begin(1);
  const uint64_t send = AskInVain();
  EXPECT_EQ(told_.size(), 1u);
  Give(4 * kBurst);
  AwaitOk(0, send);
}

TEST_F(CreditNewsTest, OfTwoPortsTheOneWithUrgentNewsIsToldOf) {
  Begin(kBurstSegments, 2);
  Expect(64 * kBurst);
  Give(4 * kBurst, 0);
  Give(4 * kBurst, 1);
  Rest();
  told_.clear();
  Give(5 * kBurst, 0);
  Rest();
  EXPECT_TRUE(told_.empty());
  Give(12 * kBurst, 1);
  Rest();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].port, 1u);
  EXPECT_EQ(told_[0].credit_end, 12 * kBurst);
}

TEST_F(CreditNewsTest, WhoAsksIsToldAgainWhatWasLost) {
  Begin();
  const uint64_t receive = Expect(4 * kBurst);
  Rest();
  lose_ = 1;
  Give(4 * kBurst);
  Rest();
  ASSERT_EQ(lose_, 0u);
  const Time start = now();
  Send(4 * kBurst);
  AwaitOk(1, receive);
  EXPECT_EQ(demands_, 1u);
  EXPECT_LT(now() - start, Duration::Millis(1));
}

TEST_F(CreditNewsTest, WhoAsksIsToldWhatHasRested) {
  Begin();
  const uint64_t receive = Expect(4 * kBurst);
  Expect(4 * kBurst);
  Give(4 * kBurst);
  Rest();
  Give(5 * kBurst);
  Rest();
  ASSERT_EQ(told_.back().credit_end, 4 * kBurst);
  also_ = [](NetworkPacket& packet, Fate& fate) { fate.drop = packet.payload_bytes > 0; };
  Send(4 * kBurst);
  const uint64_t send = Send(4 * kBurst);
  world().RunUntil([this] { return demands_ > 0; });
  Rest(Duration::Micros(20));
  EXPECT_EQ(told_.back().credit_end, 5 * kBurst);
  also_ = nullptr;
  Give(32 * kBurst);  // what is lost takes credit again
  AwaitOk(1, receive);
  AwaitOk(0, send);
}

TEST_F(CreditNewsTest, WhoAsksForCreditThatIsNotThereIsAnsweredTheSecondTime) {
  Begin();
  const uint64_t send = AskInVain();
  EXPECT_TRUE(told_.empty());
  world().RunUntil([this] { return demands_ == 2; });
  Rest(Duration::Micros(20));
  EXPECT_EQ(told_.size(), 2u) << "the answer to the first may be lost: it goes twice";
  Give(4 * kBurst);
  AwaitOk(0, send);
}

// A path may be dead: from the second demand on each goes twice, and they go on while nothing answers.
TEST_F(CreditNewsTest, DemandsThatAreNotAnsweredAreRepeatedInPairs) {
  Begin();
  const uint64_t send = AskInVain();
  lose_ = 1000;
  Rest(Duration::Millis(2));
  EXPECT_GE(demands_, 11u) << "six, of which five twice";
  EXPECT_LT(demands_, 21u);
  lose_ = 0;
  Give(4 * kBurst);
  AwaitOk(0, send);
}

TEST_F(CreditNewsTest, WhatTheAllocatorSaysAgainToASenderWithABacklogIsToldAgain) {
  Begin();
  const uint64_t send = AskInVain();  // and so states its backlog
  lose_ = 1;
  Give(4 * kBurst);
  Rest(Duration::Micros(10));
  ASSERT_EQ(lose_, 0u);
  told_.clear();
  Give(4 * kBurst);
  Rest(Duration::Micros(10));
  EXPECT_EQ(told_.size(), 1u);
  AwaitOk(0, send);
}

TEST_F(CreditNewsTest, WhatWasNeverToldIsTakenBackWhenAllIsIdle) {
  Begin();
  const uint64_t receive = Expect(4 * kBurst);
  Give(4 * kBurst);
  Send(4 * kBurst);
  AwaitOk(1, receive);
  Rest();
  Give(5 * kBurst);
  Rest();
  ASSERT_EQ(told_.back().credit_end, 5 * kBurst);
  Give(6 * kBurst);  // rests
  Rest(Duration::Seconds(2));
  told_.clear();
  for (int i = 0; i < 9; ++i) Expect(4 * kBurst);
  Rest();
  ASSERT_FALSE(told_.empty()) << "of the receives";
  EXPECT_EQ(told_.back().credit_end, 5 * kBurst);
}

TEST_F(CreditNewsTest, OfReceivesTheSenderKnowsThreeQuarters) {
  BeginWithoutCredit();
  const size_t long_send = 1 << 20;
  for (int i = 0; i < 9; ++i) Expect(long_send);
  Rest();
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back().clear_limit, 9u);
  for (int i = 0; i < 3; ++i) Expect(long_send);
  Rest();
  EXPECT_EQ(told_.back().clear_limit, 9u);
  Send(long_send);
  Rest();
  EXPECT_EQ(told_.back().clear_limit, 12u) << "with the acknowledgement";
  for (int i = 0; i < 3; ++i) Expect(long_send);
  Rest();
  EXPECT_EQ(told_.back().clear_limit, 12u);
  Expect(long_send);
  Rest();
  EXPECT_EQ(told_.back().clear_limit, 16u);
}

TEST_F(CreditNewsTest, OfReceivesWithoutCreditItHearsWithTheCredit) {
  Begin();
  uint64_t receive = Expect(4 * kBurst);
  Give(4 * kBurst);
  Send(4 * kBurst);
  AwaitOk(1, receive);
  Rest();
  told_.clear();
  receive = Expect(4 * kBurst);
  Rest();
  EXPECT_TRUE(told_.empty());
  Give(8 * kBurst);
  Rest();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].credit_end, 8 * kBurst);
  EXPECT_EQ(told_[0].clear_limit, 2u);
  Send(4 * kBurst);
  AwaitOk(1, receive);
}

}  // namespace
}  // namespace paceline::support
