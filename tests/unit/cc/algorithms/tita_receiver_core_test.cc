// What limits a group of senders behind the core of the network: stated rates, marks, delays.
#include "tests/unit/cc/algorithms/tita_receiver_fixture.h"

namespace paceline {
namespace {

TEST_F(TitaReceiverTest, AKnownCoreRateSpacesTheGrantsOfOtherGroups) {
  PortInfo port = TestPort();
  port.local_group = 1;
  port.core_rate = Rate::Gbps(25);
  queueing_nanos_ = 3000;  // others have their share too
  Make({}, port);
  Add(0, 2);
  Add(1, 3);
  Add(2, 1);  // its own group: no core to cross
  Demand(0, 1 << 30);
  Demand(1, 1 << 30);
  for (int i = 0; i < 1000; ++i) {
    Run(Duration::Micros(1));
    ArriveAll();
  }
  EXPECT_NEAR(static_cast<double>(credit_[0] + credit_[1]) * 4160 / 4096, 0.25 * 12.5e6, 0.05e6);
  Demand(2, 1 << 30);
  const uint64_t before = credit_[0] + credit_[1];
  for (int i = 0; i < 1000; ++i) {
    Run(Duration::Micros(1));
    ArriveAll();
  }
  EXPECT_NEAR(static_cast<double>(credit_[2]) * 4160 / 4096, 0.75 * 12.5e6, 0.3e6);
  EXPECT_NEAR(static_cast<double>(credit_[0] + credit_[1] - before) * 4160 / 4096, 0.25 * 12.5e6, 0.05e6);
}

TEST_F(TitaReceiverTest, TheStatedRateIsThatOfTheCoreWhereItIsLess) {
  PortInfo port = TestPort();
  port.local_group = 1;
  port.core_rate = Rate::Gbps(25);
  Make({}, port);
  for (uint32_t flow = 0; flow < 4; ++flow) Add(flow, 2 + flow);
  Add(4, 1);
  for (uint32_t flow = 0; flow < 5; ++flow) Demand(flow, 1 << 30);
  Run(Duration::Micros(20));
  for (uint32_t flow = 0; flow < 4; ++flow) EXPECT_LE(rate_[flow], 2 * 12.5e9 / 16 * 1.01) << flow;
  EXPECT_GE(rate_[4], 12.5e9 / 2);
}

TEST_F(TitaReceiverTest, AsManyShareTheCoreAsAGroupHasThatSend) {
  PortInfo port = TestPort();
  port.local_group = 1;
  port.core_rate = Rate::Gbps(10);
  port.group_ports = 8;
  Make({}, port);
  for (uint32_t flow = 0; flow < 4; ++flow) Add(flow, 2 + flow / 2);
  Add(4, 1);
  Add(5, 1);
  Demand(0, 1 << 20);
  Demand(2, 1 << 20);
  Demand(4, 1 << 20);
  Demand(5, 1 << 20);
  EXPECT_DOUBLE_EQ(receiver_->port_core_limit(), 10e9 / 8);  // as in a permutation; its own group says nothing
  Demand(1, 1 << 20);
  EXPECT_DOUBLE_EQ(receiver_->port_core_limit(), 10e9 / 8);  // one group alone may be chance
  Demand(3, 1 << 20);
  EXPECT_DOUBLE_EQ(receiver_->port_core_limit(), 40e9 / 8);  // two of each group: so two here
}

// A limit that is found while flows wait for the port holds for them as well.
TEST_F(TitaReceiverTest, ALimitHoldsForThoseThatWaitAlready) {
  constexpr uint32_t kFlows = 200;
  for (uint32_t flow = 0; flow < kFlows; ++flow) Add(flow);
  for (uint32_t flow = 0; flow < kFlows; ++flow) Demand(flow, 1 << 20);
  // A quarter of the line rate gets through, with marks.
  uint32_t sender = 0;
  const auto arrive = [&](Duration span) {
    for (const Time end = now_ + span; now_ < end;) {
      Run(Duration::Nanos(1331));
      while (tx_[sender] >= credit_[sender]) sender = (sender + 1) % kFlows;
      tx_[sender] += kSegment;
      receiver_->OnArrival(
          sender, {.now = now_, .bytes = kSegment, .packets = 1, .marked_packets = 1, .tx_total = tx_[sender]});
    }
  };
  arrive(Duration::Micros(60));
  ASSERT_LT(receiver_->port_core_limit(), 0.3 * 12.5e9);
  const size_t before = order_.size();
  arrive(Duration::Micros(100));
  EXPECT_LT(static_cast<double>(order_.size() - before), 0.35 * 100e3 / 332.8);
}

TEST_F(TitaReceiverTest, WhatTheHostsThemselvesAddDoesNotKeepAStatedCoreRateDown) {
  PortInfo port = TestPort();
  port.local_group = 1;
  port.core_rate = Rate::Gbps(25);
  port.delay_error = Duration::Micros(1000);
  queueing_nanos_ = 900'000;  // processes that waited for a processor, not packets in a queue
  Make({}, port);
  Add(0, 2);
  Demand(0, 1 << 30);
  for (int i = 0; i < 1000; ++i) {
    Run(Duration::Micros(1));
    ArriveAll();
  }
  EXPECT_GT(static_cast<double>(credit_[0]) * 4160 / 4096, 0.3 * 12.5e6);
}

TEST_F(TitaReceiverTest, MarksSlowTheGroupAndAreRemembered) {
  Add(0, 7);
  Demand(0, 1 << 30);
  // The core lets a quarter through and marks.
  for (int i = 0; i < 300; ++i) {
    Run(Duration::Nanos(1331));
    tx_[0] += kSegment;
    receiver_->OnArrival(0, {.now = now_, .bytes = kSegment, .packets = 1, .marked_packets = 1, .tx_total = tx_[0]});
  }
  EXPECT_LT(rate_[0], 0.3 * 12.5e9);
  receiver_->RemoveFlow(0, now_);
  Add(1, 7);
  credit_.clear();
  Demand(1, 1 << 30);
  Run(Duration::Micros(1));
  EXPECT_LT(rate_[1], 0.3 * 12.5e9);
}

TEST_F(TitaReceiverTest, DelayStandsInForMarksWhereThereAreNone) {
  Add(0, 7);
  ArriveLate();
  EXPECT_LT(rate_[0], 0.3 * 12.5e9);
}

// Clocks that drift apart during a pause.
TEST_F(TitaReceiverTest, TheLeastDelayOfLongAgoSaysNothing) {
  Add(0, 7);
  Demand(0, 1 << 30);
  const auto arrive = [&](int64_t delay) {
    Run(Duration::Nanos(1331));
    tx_[0] += kSegment;
    receiver_->OnArrival(
        0, {.now = now_, .bytes = kSegment, .packets = 1, .tx_total = tx_[0], .relative_delay_nanos = delay});
  };
  for (int i = 0; i < 300; ++i) arrive(0);
  now_ = now_ + Duration::Seconds(15);
  for (int i = 0; i < 300; ++i) arrive(15'000);
  EXPECT_GT(rate_[0], 0.9 * 12.5e9);
}

// Kernel sockets: what a scheduler adds to a delay is no queue in the network.
TEST_F(TitaReceiverTest, DelayWithinTheLanesErrorSaysNothing) {
  PortInfo port = TestPort();
  port.delay_error = Duration::Micros(10);
  Make({}, port);
  Add(0, 7);
  ArriveLate();
  EXPECT_GT(rate_[0], 0.9 * 12.5e9);
}

}  // namespace
}  // namespace paceline
