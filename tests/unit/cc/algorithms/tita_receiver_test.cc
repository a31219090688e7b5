// Who is granted how much, and when: demand, budget, trust in senders.
#include "tests/unit/cc/algorithms/tita_receiver_fixture.h"

namespace paceline {
namespace {

TEST_F(TitaReceiverTest, QuietWithoutDemand) {
  EXPECT_TRUE(receiver_->PollTimeout().is_never());
  Add(0);
  EXPECT_TRUE(receiver_->PollTimeout().is_never());
}

TEST_F(TitaReceiverTest, NeverGrantsBeyondDemand) {
  Add(0);
  Demand(0, 10'000);
  Run(Duration::Micros(10));
  EXPECT_EQ(credit_[0], 10'000u);
  EXPECT_EQ(order_.size(), 3u);
}

TEST_F(TitaReceiverTest, FirstGrantsAreAPacketTimeApartAndNeighboursFarApart) {
  for (uint32_t flow = 0; flow < 8; ++flow) {
    Add(flow);
    Demand(flow, 1 << 20);
  }
  Run(Duration::Nanos(16 * 333));
  ASSERT_GE(order_.size(), 16u);
  const uint32_t turn[] = {0, 4, 2, 6, 1, 5, 3, 7};
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(order_[i], turn[i % 8]);
  for (size_t i = 1; i < 16; ++i) {
    EXPECT_NEAR(static_cast<double>((times_[i] - times_[i - 1]).nanos()), 332.8, 1.01) << i;
  }
}

TEST_F(TitaReceiverTest, BudgetAndBucketBound) {
  Add(0);
  Demand(0, 1 << 30);
  Run(Duration::Micros(50));
  EXPECT_LE(receiver_->outstanding_credit_bytes(), receiver_->sizes().bucket);
  EXPECT_GT(receiver_->outstanding_credit_bytes() + kSegment, receiver_->sizes().bucket);
  Add(1);
  Demand(1, 1 << 30);
  Run(Duration::Micros(50));
  EXPECT_LE(receiver_->charged_bytes(), receiver_->sizes().budget_most);
}

TEST_F(TitaReceiverTest, AnArrivalAllowsTheNextGrant) {
  Add(0);
  Demand(0, 1 << 30);
  Run(Duration::Micros(50));
  const uint64_t before = credit_[0];
  Arrive(0, kSegment);
  Run(Duration::Nanos(400));
  EXPECT_EQ(credit_[0], before + kSegment);
}

TEST_F(TitaReceiverTest, ALossReturnsCredit) {
  Add(0);
  Demand(0, 1 << 30);
  Run(Duration::Micros(50));
  const uint64_t before = credit_[0];
  Arrive(0, kSegment, 3 * kSegment);
  Run(Duration::Micros(3));
  EXPECT_EQ(credit_[0], before + 4 * kSegment);
}

TEST_F(TitaReceiverTest, UnscheduledBytesAreCharged) {
  Add(0);
  Add(1);
  // Flow 0 has sent 20 segments without any credit; one has arrived.
  tx_[0] = 19 * kSegment;
  Arrive(0, kSegment);
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), 19 * kSegment);
  Demand(0, tx_[0] + 10 * kSegment);
  Run(Duration::Nanos(333));
  EXPECT_GE(credit_[0], 21 * kSegment);  // credit continues from what was sent
  EXPECT_LE(credit_[0], 23 * kSegment);
}

TEST_F(TitaReceiverTest, TrimmedBytesAreNotReturnedTwice) {
  Add(0);
  Demand(0, 1 << 30);
  Run(Duration::Micros(50));
  const uint64_t before = receiver_->outstanding_credit_bytes();
  receiver_->OnArrival(0,
                       {.now = now_, .bytes = kSegment, .packets = 1, .trimmed_packets = 1, .tx_total = 10 * kSegment});
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), before - kSegment);
  receiver_->OnArrival(0, {.now = now_, .bytes = 0, .tx_total = 10 * kSegment, .lost_total = kSegment});
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), before - kSegment);
}

TEST_F(TitaReceiverTest, RatesAreMaxMin) {
  const double line = 12.5e9;
  for (uint32_t flow = 0; flow < 4; ++flow) Add(flow);
  Demand(0, 1 << 30, Rate::BytesPerSecond(line / 10));
  for (uint32_t flow = 1; flow < 4; ++flow) Demand(flow, 1 << 30);
  Run(Duration::Micros(30));
  EXPECT_NEAR(rate_[0], line * 0.1, line * 0.001);
  for (uint32_t flow = 1; flow < 4; ++flow) EXPECT_NEAR(rate_[flow], line * 0.3, line * 0.001);
}

TEST_F(TitaReceiverTest, ACappedSenderIsGrantedAtItsCap) {
  const double line = 12.5e9;
  Make({.cap_slack = 1});
  Add(0);
  Add(1);
  Demand(0, 1 << 30, Rate::BytesPerSecond(line / 20));
  Demand(1, 1 << 30);
  for (int i = 0; i < 1000; ++i) {
    Run(Duration::Micros(1));
    ArriveAll();
  }
  const double share = static_cast<double>(credit_[0]) / static_cast<double>(credit_[0] + credit_[1]);
  EXPECT_NEAR(share, 0.05, 0.005);
  // And the port is full: 1 ms at 100 Gb/s.
  EXPECT_NEAR(static_cast<double>(credit_[0] + credit_[1]) * 4160 / 4096, 12.5e6, 0.2e6);
}

TEST_F(TitaReceiverTest, ControlPacketsTakeTheirShareOfTheDownlink) {
  Add(0);
  Demand(0, 1 << 30);
  for (int i = 0; i < 1000; ++i) {
    shared_->control_bytes_in += 1250;  // a tenth of the line
    Run(Duration::Micros(1));
    ArriveAll();
  }
  EXPECT_NEAR(static_cast<double>(credit_[0]) * 4160 / 4096, 0.9 * 12.5e6, 0.1e6);
}

// A host that only sends for ten seconds: the acknowledgements that it gets have had their share of the downlink.
TEST_F(TitaReceiverTest, ControlPacketsFromBeforeTheDemandHoldNothingUp) {
  Add(0);
  now_ = now_ + Duration::Seconds(10);
  shared_->control_bytes_in += 1'300'000'000;
  Demand(0, 1 << 20);
  Run(Duration::Micros(10));
  EXPECT_GT(credit_[0], 20 * kSegment);
}

TEST_F(TitaReceiverTest, ALateCallCatchesUpWithinTheBudgetAndMergesGrants) {
  Add(0);
  Demand(0, 1 << 30);
  Poll();
  now_ = now_ + Duration::Micros(5);
  const size_t before = grants_;
  Poll();
  EXPECT_EQ(grants_, before + 1);  // one grant for the flow, of 15 segments
  EXPECT_NEAR(static_cast<double>(credit_[0]), 16 * kSegment, kSegment);
}

TEST_F(TitaReceiverTest, TheClockSavesNothingUpWhileIdle) {
  Add(0);
  Demand(0, 1 << 30);
  Run(Duration::Micros(10));
  ArriveAll();
  Demand(0, tx_[0]);
  now_ = now_ + Duration::Millis(1);
  Demand(0, 1 << 30);
  const uint64_t before = credit_[0];
  Poll();
  EXPECT_EQ(credit_[0], before + kSegment);
}

TEST_F(TitaReceiverTest, ASilentFlowIsParkedAndItsGrantSentAgain) {
  Add(0);
  Add(1);
  Demand(0, 1 << 30);
  Run(Duration::Micros(50));
  EXPECT_GT(receiver_->charged_bytes(), 200'000u);
  const size_t before = grants_;
  Run(Duration::Micros(10));  // the check comes 4 * 14 us after the first grant
  EXPECT_EQ(receiver_->charged_bytes(), 0u);
  EXPECT_GT(receiver_->outstanding_credit_bytes(), 200'000u);
  EXPECT_EQ(grants_, before + 1);
  Demand(1, 1 << 30);
  Run(Duration::Micros(50));
  EXPECT_GT(credit_[1], 200'000u);
  // It speaks again: its credit counts again.
  Arrive(0, kSegment);
  EXPECT_GT(receiver_->charged_bytes(), receiver_->sizes().budget_most);
  // For ever silent: a bounded number of grants.
  const size_t parked = grants_;
  Make();
  Add(0);
  Demand(0, 1 << 20);
  credit_.clear();
  Run(Duration::Seconds(1));
  EXPECT_LT(grants_, parked + 80);
  EXPECT_TRUE(receiver_->PollTimeout().is_never());
}

TEST_F(TitaReceiverTest, AProbeDoesNotMakeAParkedFlowsCreditCount) {
  Add(0);
  Demand(0, 1 << 30);
  Run(receiver_->sizes().rtt * 5);
  ASSERT_EQ(receiver_->charged_bytes(), 0u);
  receiver_->OnArrival(0, {.now = now_, .packets = 1});
  EXPECT_EQ(receiver_->charged_bytes(), 0u);
  Arrive(0, kSegment);
  EXPECT_GT(receiver_->charged_bytes(), 0u);
}

TEST_F(TitaReceiverTest, WhatIsUnderWayIsWaitedForTwiceAsLong) {
  Add(0);
  Demand(0, 1 << 30);
  Run(Duration::Micros(20));
  tx_[0] += kSegment;  // it has sent a segment, which is late
  Arrive(0, 0);
  Run(Duration::Micros(100));
  EXPECT_GT(receiver_->charged_bytes(), 0u);
  Run(Duration::Micros(60));  // 4 and then 8 times 14 us after the first grant
  EXPECT_EQ(receiver_->charged_bytes(), 0u);
}

TEST_F(TitaReceiverTest, CreditThatWasInVainBeforeHoldsTheBudgetForLess) {
  const Duration rtt = receiver_->sizes().rtt;
  Add(0);
  size_t retold = 0;
  // Round trips until the credit, of which no use is made for a second, no longer counts.
  const auto held_for = [&] {
    Demand(0, tx_[0] + kSegment);
    Run(rtt / 8);
    EXPECT_EQ(receiver_->charged_bytes(), kSegment);
    const size_t before = grants_;
    int quarters = 0;
    for (; receiver_->charged_bytes() > 0; ++quarters) Run(rtt / 4);
    Run(Duration::Seconds(1));
    retold = grants_ - before;
    ArriveAll();
    return quarters / 4;
  };
  EXPECT_EQ(held_for(), 4);
  EXPECT_GE(retold, 8u);  // the grant may be lost
  EXPECT_EQ(held_for(), 2);
  EXPECT_EQ(retold, 0u);
  EXPECT_EQ(held_for(), 1);
  EXPECT_EQ(held_for(), 1);
  // A sender that does have data asks, and is answered.
  Demand(0, tx_[0] + kSegment);
  Run(rtt * 3);
  const size_t before = grants_;
  receiver_->OnArrival(0, {.now = now_, .tx_total = tx_[0]});
  Poll();
  EXPECT_EQ(grants_, before + 1);
  ArriveAll();
  // Used in time, it is trusted again.
  Demand(0, tx_[0] + kSegment);
  Run(rtt / 8);
  ArriveAll();
  EXPECT_EQ(held_for(), 4);
}

TEST_F(TitaReceiverTest, WhoIsParkedOftenIsStillGrantedWhatItWants) {
  const Duration rtt = receiver_->sizes().rtt;
  Add(0);
  for (int i = 0; i < 3; ++i) {
    Demand(0, tx_[0] + kSegment);
    Run(rtt * 5);
    ArriveAll();
  }
  Demand(0, tx_[0] + 100 * kSegment);
  Run(Duration::Seconds(1));
  EXPECT_GE(credit_[0], tx_[0] + 8 * kSegment);
  const size_t before = grants_;
  Run(Duration::Seconds(1));
  EXPECT_EQ(grants_, before);
}

TEST_F(TitaReceiverTest, ATailIsNotGrantedByItself) {
  PortInfo port = TestPort();
  port.burst_segments = 16;
  Make({}, port);
  Add(0);
  Demand(0, 20 * kSegment);
  Poll();
  EXPECT_EQ(credit_[0], 20 * kSegment);
  ArriveAll();
  Demand(0, 41 * kSegment);
  Run(Duration::Micros(8));
  EXPECT_EQ(credit_[0], 36 * kSegment);
}

TEST_F(TitaReceiverTest, WhereALaneHandsOverBurstsWhatArrivesTogetherIsGrantedAgainTogether) {
  for (const uint32_t burst : {1u, 2u}) {
    PortInfo port = TestPort();
    port.burst_segments = burst;
    Make({}, port);
    credit_.clear();
    tx_.clear();
    Add(0);
    Demand(0, 1 << 30);
    Run(Duration::Micros(50));
    const uint64_t before = credit_[0];
    for (int i = 0; i < 32; ++i) Arrive(0, kSegment);
    Poll();
    EXPECT_EQ((credit_[0] - before) / kSegment, burst == 1 ? 2u : 32u);
  }
}

TEST_F(TitaReceiverTest, ASenderThatAsksAgainGetsItsGrantAgain) {
  Add(0);
  Demand(0, 10 * kSegment);
  Run(Duration::Micros(40));
  const size_t before = grants_;
  Arrive(0, 0);
  Run(Duration::Micros(1));
  EXPECT_EQ(grants_, before + 1);
  Arrive(0, 0);  // not more often than every two round trips
  Run(Duration::Micros(1));
  EXPECT_EQ(grants_, before + 1);
}

// A receive that is posted here, or one less, is no word of the sender's.
TEST_F(TitaReceiverTest, WhatBecomesKnownHereSaysNothingAgain) {
  Add(0);
  Demand(0, 10 * kSegment);
  Run(Duration::Micros(40));
  const size_t before = grants_;
  Demand(0, 9 * kSegment);
  Run(Duration::Micros(1));
  EXPECT_EQ(grants_, before);
}

TEST_F(TitaReceiverTest, ASlowSenderDoesNotHoldTheBudget) {
  Add(0);
  Add(1);
  Demand(0, 1 << 30);
  Run(Duration::Micros(60));  // flow 0 holds a whole bucket
  Demand(1, 1 << 30);
  uint64_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    Run(Duration::Micros(1));
    if (i % 100 == 0) Arrive(0, kSegment);  // 0.3 % of the line
    while (tx_[1] < credit_[1]) Arrive(1, std::min(kSegment, credit_[1] - tx_[1]));
    if (i == 500) before = credit_[1];
  }
  EXPECT_GT(credit_[1] - before, 0.9 * 12.5e9 * 500e-6);
}

TEST_F(TitaReceiverTest, ASenderThatWasSlowIsSoonTrustedAgain) {
  Add(0);
  Demand(0, 1 << 30);
  for (int i = 0; i < 100; ++i) {
    Run(Duration::Micros(20));
    Arrive(0, kSegment);
  }
  ASSERT_LE(credit_[0] - tx_[0], 10 * kSegment);
  // From now on everything arrives a round trip after its grant.
  const Time start = now_;
  while (credit_[0] - tx_[0] < receiver_->sizes().bucket / 2) {
    ASSERT_LT(now_, start + receiver_->sizes().rtt * 40);
    const uint64_t granted = credit_[0];
    Run(receiver_->sizes().rtt);
    while (tx_[0] < granted) Arrive(0, std::min(kSegment, granted - tx_[0]));
    Run(Duration::Micros(1));
  }
}

TEST_F(TitaReceiverTest, ALiarHurtsOnlyItself) {
  for (uint32_t flow = 0; flow < 3; ++flow) Add(flow);
  Demand(1, 1 << 30);
  uint64_t lie = 1;
  for (int i = 0; i < 2000; ++i) {
    lie = lie * 3 + 1;
    receiver_->OnArrival(0, {.now = now_, .bytes = 64, .packets = 1, .tx_total = lie, .lost_total = ~lie});
    receiver_->OnDemand(0, i % 2 == 0 ? ~uint64_t{0} : 0, Rate::BytesPerSecond(i % 3 == 0 ? -1 : 1e300), now_);
    receiver_->OnArrival(2, {.now = now_, .tx_total = ~uint64_t{0}, .lost_total = 0});
    Run(Duration::Micros(1));
    while (tx_[1] < credit_[1]) Arrive(1, std::min(kSegment, credit_[1] - tx_[1]));
    ASSERT_LE(receiver_->charged_bytes(), receiver_->sizes().budget_most + 3 * receiver_->sizes().bucket);
  }
  // Flow 1 still gets the better part of its half of the port.
  EXPECT_GT(static_cast<double>(tx_[1]), 0.3 * 12.5e9 * 2000e-6);
  for (uint32_t flow = 0; flow < 3; ++flow) receiver_->RemoveFlow(flow, now_);
  EXPECT_EQ(receiver_->charged_bytes(), 0u);
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), 0u);
  EXPECT_EQ(receiver_->wanting_flows(), 0u);
}

TEST_F(TitaReceiverTest, ClaimsOfMoreSentDoNotHoldTheBudget) {
  for (const bool lost_too : {false, true}) {
    Make();
    credit_.clear(), tx_.clear(), lost_.clear();
    Add(0);
    Add(1);
    Demand(0, 1 << 30);
    const Time start = now_;
    uint64_t claim = 0;
    for (int i = 0; i < 10000; ++i) {
      if (i % 112 == 0) {
        claim += (lost_too ? 1 : 4) * receiver_->sizes().bucket;
        receiver_->OnArrival(1, {.now = now_, .tx_total = claim, .lost_total = lost_too ? claim : 0});
      }
      Run(Duration::Micros(1));
      while (tx_[0] < credit_[0]) Arrive(0, std::min(kSegment, credit_[0] - tx_[0]));
    }
    EXPECT_GT(static_cast<double>(tx_[0]), 0.8 * 12.5e9 * (now_ - start).seconds()) << lost_too;
  }
}

TEST_F(TitaReceiverTest, ReceiversThatNobodySendsToAreNotGrantedMoreAndMore) {
  constexpr uint32_t kFlows = 64;
  for (uint32_t flow = 0; flow < kFlows; ++flow) {
    Add(flow);
    Demand(flow, 1 << 20);
  }
  Run(Duration::Millis(60));
  for (uint32_t flow = 0; flow < kFlows; ++flow) {
    EXPECT_LE(credit_[flow], 4 * kSegment) << flow;
    // What they are told last is what they get if all of them begin now.
    EXPECT_LE(rate_[flow], 12.5e9 / kFlows * 1.5) << flow;
  }
}

// Receives are posted from all, and one sends after the other, each to the end of its message.
TEST_F(TitaReceiverTest, ThoseThatBeginOneAfterTheOtherFindTheirCredit) {
  constexpr uint32_t kFlows = 64;
  for (uint32_t flow = 0; flow < kFlows; ++flow) {
    Add(flow);
    Demand(flow, 16 * kSegment);
  }
  for (uint32_t flow = 0; flow < kFlows; ++flow) {
    if (flow >= 8) {
      EXPECT_EQ(credit_[flow], 16 * kSegment) << flow;
    }
    SendMessage(flow, 16 * kSegment);
  }
  EXPECT_EQ(receiver_->charged_bytes(), 0u);
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), 0u);
}

TEST_F(TitaReceiverTest, CreditAheadIsBoundedByWhatWasSeenToBegin) {
  constexpr uint32_t kFlows = 200;
  for (uint32_t flow = 0; flow < kFlows; ++flow) {
    Add(flow);
    Demand(flow, 1 << 20);
  }
  Run(Duration::Micros(100));
  Demand(0, 4 * kSegment);
  Arrive(0, 0);
  Run(Duration::Millis(1));
  EXPECT_GT(receiver_->outstanding_credit_bytes(), 3 * receiver_->sizes().budget_most);
  EXPECT_LE(receiver_->outstanding_credit_bytes(), 4 * receiver_->sizes().budget_most + 4 * kSegment);
}

TEST_F(TitaReceiverTest, ReceivesPostedLaterWaitWithinTheBudget) {
  for (uint32_t flow = 0; flow < 96; ++flow) Add(flow);
  for (uint32_t flow = 0; flow < 64; ++flow) Demand(flow, 16 * kSegment);
  for (uint32_t flow = 0; flow < 16; ++flow) SendMessage(flow, 16 * kSegment);
  ASSERT_EQ(credit_[63], 16 * kSegment);
  for (uint32_t flow = 64; flow < 96; ++flow) Demand(flow, 1 << 20);
  Run(Duration::Micros(40));
  uint64_t given = 0;
  for (uint32_t flow = 64; flow < 96; ++flow) given += credit_[flow];
  EXPECT_GT(given, 0u);
  EXPECT_LE(given, receiver_->budget_bytes() + kSegment);
}

TEST_F(TitaReceiverTest, NoCreditBeyondTheBudgetThroughACoreThatIsTheLimit) {
  PortInfo port = TestPort();
  port.local_group = 1;
  port.core_rate = Rate::Gbps(25);
  Make({}, port);
  for (uint32_t flow = 0; flow < 64; ++flow) {
    Add(flow, 2 + flow / 8);
    Demand(flow, 16 * kSegment);
  }
  for (uint32_t flow = 0; flow < 8; ++flow) {
    SendMessage(flow, 16 * kSegment);
    EXPECT_LE(receiver_->charged_bytes(), receiver_->budget_bytes() + kSegment);
  }
  uint64_t silent = 0;
  for (uint32_t flow = 8; flow < 64; ++flow) silent += credit_[flow];
  EXPECT_LE(silent, 56 * 4 * kSegment);
}

TEST_F(TitaReceiverTest, ManyCreditHoldersCannotStopThePort) {
  // A hundred flows each hold a grain for ever, sending a byte now and then; one honest flow still moves.
  for (uint32_t flow = 0; flow <= 100; ++flow) Add(flow);
  for (uint32_t flow = 1; flow <= 100; ++flow) Demand(flow, 1 << 30);
  Run(Duration::Micros(100));
  Demand(0, 1 << 30);
  for (int i = 0; i < 20000; ++i) {
    Run(Duration::Micros(1));
    if (i % 50 == 0) {
      for (uint32_t flow = 1; flow <= 100; ++flow) Arrive(flow, 1);
    }
    while (tx_[0] < credit_[0]) Arrive(0, std::min(kSegment, credit_[0] - tx_[0]));
  }
  EXPECT_GT(tx_[0], 0u);
}

TEST_F(TitaReceiverTest, SrptGivesTheShortFlowHalfAtLeast) {
  Make({.srpt = true});
  for (uint32_t flow = 0; flow < 10; ++flow) {
    Add(flow);
    Demand(flow, flow == 5 ? 40 * kSegment : 1 << 30);
  }
  for (int i = 0; i < 40; ++i) {
    Run(Duration::Micros(1));
    ArriveAll();
  }
  EXPECT_EQ(credit_[5], 40 * kSegment);
  EXPECT_GT(credit_[0], 3 * kSegment);  // and none starves
}

TEST_F(TitaReceiverTest, UnknownFlowsAreIgnored) {
  receiver_->OnDemand(5, 100, Rate::Unlimited(), now_);
  receiver_->OnArrival(5, {.now = now_, .bytes = 100, .packets = 1});
  receiver_->RemoveFlow(5, now_);
  receiver_->AddFlow(UINT32_MAX, {}, now_);
  EXPECT_TRUE(receiver_->PollTimeout().is_never());
}

}  // namespace
}  // namespace paceline
