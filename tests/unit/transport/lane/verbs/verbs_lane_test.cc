// The verbs lane: packets, writes, room, and what the card says of its port.
#include <poll.h>

#include "tests/unit/transport/lane/verbs/verbs_fixture.h"

namespace paceline::support {
namespace {

using VerbsLaneTest = VerbsFixture;

TEST_F(VerbsLaneTest, PacketsArriveWithTheirSource) {
  SendPacket(*a_, to_b_, "there");
  SendPacket(*b_, to_a_, "back");
  const auto at_b = Receive(*b_), at_a = Receive(*a_);
  ASSERT_EQ(at_b.size(), 1u);
  EXPECT_EQ(at_b[0].bytes, "there");
  EXPECT_TRUE(at_b[0].source == a_->address());
  ASSERT_EQ(at_a.size(), 1u);
  EXPECT_EQ(at_a[0].bytes, "back");
  EXPECT_TRUE(at_a[0].source == b_->address());
}

TEST_F(VerbsLaneTest, WritesArePlacedAndTold) {
  Send(WriteOf(0x01020304, 1000, 3, 99));
  const auto arrived = Run();
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].kind, SegmentKind::kWrite);
  EXPECT_EQ(arrived[0].immediate, 0x01020304u);
  EXPECT_EQ(arrived[0].connection, 99u);
  EXPECT_EQ(arrived[0].entropy, 3u);
  EXPECT_EQ(arrived[0].placed, 1000u);
  EXPECT_EQ(memory_[999], 4u);
  EXPECT_EQ(memory_[1000], 0u);
}

TEST_F(VerbsLaneTest, WritesOfNothingAndInlineAndFromRegisteredMemory) {
  Send(WriteOf(1, 0));
  Send(WriteOf(2, 10));
  Run();
  std::vector<uint8_t> own(4096, 77);
  const uint64_t key = a_->RegisterMemory({.base = own.data(), .bytes = own.size()});
  TxSegment segment = WriteOf(3, 4096);
  segment.payload = own.data();
  Send(segment);
  EXPECT_EQ(Immediates(Run()), List({3}));
  EXPECT_EQ(memory_[4095], 77u);
  a_->DeregisterMemory(key);
}

// Cards differ in how much a work request may carry, and make no QP that shall carry more.
TEST_F(VerbsLaneTest, CardsThatCarryLittleOrNothingInWorkRequests) {
  for (const uint32_t most : {96u, 0u}) {
    SCOPED_TRACE(most);
    a_.reset(), b_.reset();
    cards_.LimitInline(most);
    ASSERT_NO_FATAL_FAILURE(Start());
    SendPacket(*a_, to_b_, "x");
    Send(WriteOf(5, 100));
    const auto arrived = Run();
    ASSERT_EQ(arrived.size(), 2u);
    EXPECT_EQ(arrived[0].bytes, "x");
    EXPECT_EQ(arrived[1].immediate, 5u);
    EXPECT_EQ(memory_[99], 5u);
  }
}

TEST_F(VerbsLaneTest, ABurstKeepsItsOrderOnEachPath) {
  std::vector<TxSegment> burst;
  for (uint32_t i = 0; i < 64; ++i) burst.push_back(WriteOf(i, 8, static_cast<uint16_t>(i / 8 % 4)));
  EXPECT_EQ(a_->Send(burst), 64u);
  const auto arrived = Run();
  ASSERT_EQ(arrived.size(), 64u);
  std::array<int64_t, 4> last = {-1, -1, -1, -1};
  for (const Arrived& one : arrived) {
    EXPECT_GT(one.immediate, last[one.entropy]);
    last[one.entropy] = one.immediate;
  }
}

TEST_F(VerbsLaneTest, RevokedMemoryIsNotWritten) {
  Send(WriteOf(1, 100));
  Run();
  b_->DeregisterMemory(key_);
  memory_.assign(memory_.size(), 0);
  Send(WriteOf(2, 100));
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(memory_[0], 0u);
}

// The card completes nothing while nobody polls: the lane must not post more than its queues hold.
TEST_F(VerbsLaneTest, AFullPathStopsItsPeerAndIsFreedByLooking) {
  Send(WriteOf(0, 8));
  Run();
  uint32_t sent = 0;
  cards_.hook = [](const FakeVerbs::Packet&) { return FakeVerbs::Fate::kDrop; };
  for (int i = 0; i < 1000; ++i) {
    std::vector<TxSegment> burst(64, WriteOf(1, 2000));
    a_->Send(burst);
    sent += 64;
  }
  EXPECT_GT(a_->counters().tx_drops, 0u);
  EXPECT_EQ(a_->counters().tx_packets + a_->counters().tx_drops, sent + 1);
  EXPECT_GT(a_->RoomTo(to_b_), 0u) << "what was sent is done, the lane has only to look";
}

TEST_F(VerbsLaneTest, ManyPacketsNeverOverrunAQueue) {
  for (int i = 0; i < 2000; ++i) SendPacket(*a_, to_b_, "x");
  EXPECT_GT(a_->counters().tx_drops, 0u);
  EXPECT_GT(a_->RoomTo(to_b_), 0u);
  const auto arrived = Receive(*b_);
  EXPECT_EQ(arrived.size() + a_->counters().tx_drops, 2000u);
}

TEST_F(VerbsLaneTest, WhatDoesNotFitIsDroppedAndCounted) {
  Send(WriteOf(1, 100));
  Run();
  TxSegment phantom = WriteOf(2, 100);
  phantom.payload = nullptr;
  Send(phantom);
  Send(WriteOf(3, a_->capabilities().max_write_bytes + 1));
  EXPECT_EQ(a_->counters().tx_drops, 2u);
  EXPECT_TRUE(Run().empty());
}

TEST_F(VerbsLaneTest, APortThatGoesDownIsToldAndComesBackWithNewPaths) {
  Send(WriteOf(1, 100));
  Run();
  const std::vector<uint32_t> before = cards_.PathQps(0);
  cards_.SetPort(0, false);
  Run(Duration::Millis(20));
  EXPECT_FALSE(a_->status().up);
  const uint32_t changes = a_->status().change_count;
  cards_.SetPort(0, true);
  Run(Duration::Millis(20));
  EXPECT_TRUE(a_->status().up);
  EXPECT_GT(a_->status().change_count, changes);
  Send(WriteOf(2, 100));
  EXPECT_EQ(Immediates(Run()), List({2}));
  EXPECT_NE(cards_.PathQps(0), before);
}

TEST_F(VerbsLaneTest, APortWithoutTheLanesAddressIsDownUntilItHasItAgain) {
  const auto is_up_after = [this](ibv_event_type news) {
    cards_.TellDevice(0, news);
    Run(Duration::Millis(20));
    return a_->status().up;
  };
  EXPECT_TRUE(is_up_after(IBV_EVENT_GID_CHANGE)) << "it was another's";
  cards_.SetGids(0, false);
  EXPECT_FALSE(is_up_after(IBV_EVENT_GID_CHANGE));
  EXPECT_FALSE(is_up_after(IBV_EVENT_PORT_ACTIVE));
  cards_.SetGids(0, true);
  EXPECT_TRUE(is_up_after(IBV_EVENT_GID_CHANGE));
  Send(WriteOf(1, 100));
  EXPECT_EQ(Immediates(Run()), List({1}));
  cards_.UseIpv6();
  EXPECT_FALSE(is_up_after(IBV_EVENT_GID_CHANGE)) << "where its address stood is another";
}

TEST_F(VerbsLaneTest, AnInfiniBandPortWithAnotherLidIsDown) {
  cards_.UseInfiniBand(5);
  a_ = Make("fake0");
  for (const uint16_t lid : {uint16_t{5}, uint16_t{6}}) {
    cards_.UseInfiniBand(lid);
    cards_.TellDevice(0, IBV_EVENT_LID_CHANGE);
    Run(Duration::Millis(20));
    EXPECT_EQ(a_->status().up, lid == 5);
  }
}

TEST_F(VerbsLaneTest, ACardThatHasGivenUpAQueueIsDownForGood) {
  for (const ibv_event_type end : {IBV_EVENT_DEVICE_FATAL, IBV_EVENT_CQ_ERR, IBV_EVENT_SRQ_ERR}) {
    a_ = Make("fake0");
    cards_.TellDevice(0, end);
    Run(Duration::Millis(20));
    EXPECT_FALSE(a_->status().up);
    for (const ibv_event_type news : {IBV_EVENT_PORT_ACTIVE, IBV_EVENT_LID_CHANGE, IBV_EVENT_GID_CHANGE}) {
      cards_.TellDevice(0, news);
      Run(Duration::Millis(300));
      EXPECT_FALSE(a_->status().up) << end << " " << news;
    }
  }
}

// Sent before the lane has heard that the port is down: the card fails the QP.
TEST_F(VerbsLaneTest, ADatagramQpThatFailedIsStartedAgain) {
  cards_.SetPort(0, false);
  SendPacket(*a_, to_b_, "lost");
  for (int i = 0; i < 20; ++i) SendPacket(*a_, to_b_, "lost too");
  Run(Duration::Millis(20));
  EXPECT_FALSE(a_->status().up);
  cards_.SetPort(0, true);
  Run(Duration::Millis(300));
  EXPECT_TRUE(a_->status().up);
  SendPacket(*a_, to_b_, "again");
  SendPacket(*b_, to_a_, "back");
  const auto arrived = Receive(*b_);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].bytes, "again");
  EXPECT_EQ(Receive(*a_).size(), 1u);
}

// The QP fails behind packets that came well, and both are seen in one look: the packets stay until the next one.
TEST_F(VerbsLaneTest, WhatWasHandedOutStaysAlthoughTheDatagramQpFails) {
  for (const char* text : {"one", "two", "six"}) SendPacket(*a_, to_b_, text);
  Receive(*a_);  // the wire moves
  VerbsAddress address;
  ASSERT_TRUE(ToVerbsAddress(b_->address(), address));
  cards_.FailQp(address.qp_number);
  std::array<RxSegment, 64> out;
  ASSERT_EQ(b_->Receive(out, now_), 3u);
  EXPECT_FALSE(b_->status().up);
  EXPECT_FALSE(b_->PrepareToWait()) << "to start the QP again is work to do";
  for (int i = 0; i < 3; ++i) SendPacket(*a_, to_b_, "new");
  Receive(*a_);
  const auto text = [&out](size_t i) { return std::string(reinterpret_cast<char*>(out[i].data), out[i].data_bytes); };
  EXPECT_EQ(text(0) + text(1) + text(2), "onetwosix");
  Receive(*b_);
  EXPECT_TRUE(b_->status().up);
  SendPacket(*a_, to_b_, "again");
  const auto arrived = Receive(*b_);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].bytes, "again");
}

// Nobody else may have anything to do: who waits for the descriptor is woken to try again.
TEST_F(VerbsLaneTest, ADatagramQpThatCouldNotBeStartedIsTriedAgainFromSleep) {
  VerbsAddress address;
  ASSERT_TRUE(ToVerbsAddress(b_->address(), address));
  cards_.FailQp(address.qp_number);
  Receive(*b_);
  cards_.Jam(1, 1);
  Receive(*b_);
  EXPECT_FALSE(b_->status().up);
  ASSERT_TRUE(b_->PrepareToWait()) << "not in vain all the time";
  pollfd waiting{b_->wait_descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 10000), 1);
  now_ = now_ + Duration::Millis(100);
  Receive(*b_);
  EXPECT_TRUE(b_->status().up);
  ASSERT_TRUE(b_->PrepareToWait());
  EXPECT_EQ(poll(&waiting, 1, 0), 0) << "and is left alone then";
}

TEST_F(VerbsLaneTest, TheDescriptorTellsOfWhatIsThere) {
  Run();
  ASSERT_TRUE(b_->PrepareToWait());
  pollfd waiting{b_->wait_descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
  SendPacket(*a_, to_b_, "x");
  Receive(*a_);  // the wire moves when somebody polls
  EXPECT_EQ(poll(&waiting, 1, 0), 1);
  EXPECT_EQ(Receive(*b_).size(), 1u);
  SendPacket(*a_, to_b_, "y");
  Receive(*a_);
  EXPECT_FALSE(b_->PrepareToWait()) << "something has come";
  EXPECT_EQ(Receive(*b_).size(), 1u);
}

}  // namespace
}  // namespace paceline::support
