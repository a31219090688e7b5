// Every bound gives "try again" or back-pressure, and everything goes on once there is room.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/core_fixture.h"

namespace paceline::support {
namespace {

class BoundsTest : public CoreFixture, public testing::WithParamInterface<LaneKind> {
 protected:
  static WorldOptions Options() {
    WorldOptions options;
    options.lanes = GetParam();
    return options;
  }

  // More sends than the store holds, and behind them, to a buffer of their own, more packets than there are numbers.
  void StartWithMessagesPutOff() {
    WorldOptions options = Options();
    options.endpoint.unexpected_bytes = 64 * 1024;
    Start(options);
    for (uint64_t i = 0; i < kPutOff; ++i) Send(0, NewFilled(4000, i), 1);
    world().RunFor(Duration::Millis(1));
    constexpr size_t kBytes = 8'000'000;
    GuardedBuffer& out = NewFilled(kBytes, 7);
    behind_ = &NewBuffer(kBytes);
    for (int i = 0; i < 12; ++i) {
      Receive(1, *behind_, 2);
      Send(0, out, 2);
    }
  }

  void TakeWhatWasPutOff() {
    for (uint64_t i = 0; i < kPutOff; ++i) Receive(1, NewBuffer(4000), 1);
    AwaitAll();
    EXPECT_TRUE(behind_->Holds(7));
  }

 private:
  static constexpr uint64_t kPutOff = 30;
  GuardedBuffer* behind_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Lanes, BoundsTest, testing::Values(LaneKind::kPackets, LaneKind::kHca),
                         [](const auto& lane) { return lane.param == LaneKind::kHca ? "Hca" : "Packets"; });

TEST_P(BoundsTest, OperationsPerConnection) {
  WorldOptions options = Options();
  options.endpoint.max_operations = 16;
  Start(options);
  PostResult result = PostResult::kOk;
  for (int i = 0; i < 16; ++i) Send(0, NewFilled(50'000, 1), 1);
  Send(0, NewFilled(8, 1), 1, &result);
  EXPECT_EQ(result, PostResult::kTryAgain);
  for (int i = 0; i < 16; ++i) Receive(1, NewBuffer(50'000), 1);
  Receive(1, NewBuffer(8), 1, 0, &result);
  EXPECT_EQ(result, PostResult::kTryAgain);
  AwaitAll();
  Exchange(0, 1000, 2);
}

TEST_P(BoundsTest, CompletionsNotYetPolled) {
  WorldOptions options = Options();
  options.endpoint.max_completions = 8;
  Start(options);
  host(0).poll_completions = false;
  PostResult result = PostResult::kOk;
  for (int i = 0; i < 8; ++i) Send(0, NewFilled(8, 1), 1);
  world().RunFor(Duration::Millis(5));
  Send(0, NewFilled(8, 1), 1, &result);
  EXPECT_EQ(result, PostResult::kTryAgain);
  host(0).poll_completions = true;
  AwaitAll();
  Send(0, NewFilled(8, 1), 1);
  AwaitAll();
}

// A peer whose queue is full gets nothing for the time being; others on the same port do, and nothing is lost.
TEST_P(BoundsTest, APeerWithoutRoomHoldsUpNobodyElse) {
  WorldOptions options = Options();
  options.hosts = 3;
  Start(options);
  const auto [to_third, at_third] = world().Connect(0, 2);
  world().RunFor(Duration::Millis(1));
  world().lane(0).set_full(world().lane(1).port(), true);
  GuardedBuffer &first = NewBuffer(100'000), &third = NewBuffer(100'000), &data = NewFilled(100'000, 7);
  const uint64_t received = Receive(1, first, 1);
  const uint64_t sent_before = endpoint(1).counters().rx_data_bytes;
  Send(0, NewFilled(100'000, 3), 1);
  ASSERT_EQ(endpoint(2).PostReceive(at_third, {.buffer = third.local()}, now()), PostResult::kOk);
  ASSERT_EQ(endpoint(0).PostSend(to_third, {.buffer = data.local()}, now()), PostResult::kOk);
  world().RunFor(Duration::Millis(100));
  EXPECT_TRUE(third.Holds(7));
  EXPECT_EQ(Done(1, received), nullptr);
  EXPECT_EQ(endpoint(1).counters().rx_data_bytes, sent_before);
  world().lane(0).set_full(world().lane(1).port(), false);
  AwaitOk(1, received);
  EXPECT_TRUE(first.Holds(3));
  EXPECT_EQ(endpoint(0).counters().retransmits, 0u);
}

// The peer's writes with immediate need completions here: at the bound it has to wait, nothing is lost.
TEST_P(BoundsTest, ImmediatesWaitForRoomInTheCompletionQueue) {
  WorldOptions options = Options();
  options.customize = [](uint32_t host, EndpointOptions& endpoint) { endpoint.max_completions = host == 1 ? 4 : 1000; };
  options.endpoint.peer_timeout = Duration::Seconds(1);
  Start(options);
  GuardedBuffer& memory = NewBuffer(10'000);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  host(1).poll_completions = false;
  for (uint64_t i = 0; i < 50; ++i) WriteImmediate(0, NewFilled(100, i), remote, i * 100, i);
  world().RunFor(Duration::Seconds(2));  // longer than it waits for a peer that is silent
  host(1).poll_completions = true;
  AwaitAll();
  world().RunFor(Duration::Millis(500));
  EXPECT_EQ(host(1).completions.size(), 50u);
  std::vector<bool> seen(50);
  for (const Completion& completion : host(1).completions) {
    ASSERT_LT(completion.immediate, 50u);
    EXPECT_FALSE(seen[completion.immediate]);
    seen[completion.immediate] = true;
  }
}

// What a peer begins and does not end takes completions, but never all of them.
TEST_P(BoundsTest, ImmediatesThatNeverEndLeaveCompletionsForOthers) {
  WorldOptions options = Options();
  options.hosts = 3;
  options.customize = [](uint32_t host, EndpointOptions& endpoint) {
    endpoint.max_completions = host == 1 ? 32 : 1000;
  };
  Start(options);
  const auto [to_third, at_third] = world().Connect(1, 2);
  network().SetHook([](NetworkPacket& packet, Fate& fate) {  // the last segment of each write does not arrive
    fate.drop = packet.payload_bytes > 500 && packet.payload_bytes < 2000;
  });
  constexpr uint64_t kBytes = 5000;  // two segments
  GuardedBuffer& memory = NewBuffer(60 * kBytes);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  for (uint64_t i = 0; i < 60; ++i) WriteImmediate(0, NewFilled(kBytes, i), remote, i * kBytes, i);
  world().RunFor(Duration::Millis(100));
  GuardedBuffer &out = NewFilled(100, 7), &in = NewBuffer(100);
  ASSERT_EQ(endpoint(1).PostSend(to_third, {.buffer = out.local()}, now()), PostResult::kOk);
  ASSERT_EQ(endpoint(2).PostReceive(at_third, {.buffer = in.local()}, now()), PostResult::kOk);
  world().RunFor(Duration::Millis(10));
  network().SetHook(nullptr);
  AwaitAll();
  world().RunFor(Duration::Millis(500));
  size_t told = 0;
  for (const Completion& completion : host(1).completions) told += completion.operation == Operation::kWriteImmediate;
  EXPECT_EQ(told, 60u);
}

TEST_P(BoundsTest, AnImmediateComesWhereThereIsOnePlaceForCompletions) {
  WorldOptions options = Options();
  options.customize = [](uint32_t host, EndpointOptions& endpoint) { endpoint.max_completions = host == 1 ? 1 : 100; };
  Start(options);
  GuardedBuffer& memory = NewBuffer(100);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  AwaitOk(0, WriteImmediate(0, NewFilled(100, 1), remote, 0, 7));
  AwaitOk(0, WriteImmediate(0, NewFilled(100, 2), remote, 0, 8));
  EXPECT_TRUE(memory.Holds(2));
}

// A send that was put off, found lost, and had arrived after all keeps no place in the window of packets.
TEST_P(BoundsTest, WhatWasPutOffAndArrivedLeavesTheWindow) {
  WorldOptions options = Options();
  options.endpoint.unexpected_bytes = 10'000;
  Start(options);
  constexpr uint32_t kBytes = 3000;
  for (int i = 0; i < 3; ++i) Send(0, NewFilled(2000, 1), 1);  // the store is nearly full
  world().RunFor(Duration::Millis(1));
  bool copied = false;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (packet.payload_bytes != kBytes || std::exchange(copied, true)) return;
    fate.copies = 2;
    fate.copy_spacing = Duration::Millis(200);
  });
  const uint64_t put_off = Send(0, NewFilled(kBytes, 2), 2);
  world().RunFor(Duration::Millis(150));
  ASSERT_TRUE(copied);
  ASSERT_EQ(Done(0, put_off), nullptr);
  ASSERT_GE(endpoint(1).counters().not_ready_sent, 1u);
  for (int i = 0; i < 3; ++i) Receive(1, NewBuffer(2000), 1);
  AwaitOk(0, put_off);
  Receive(1, NewBuffer(kBytes), 2);
  AwaitAll();
  GuardedBuffer &out = NewFilled(8, 3), &in = NewBuffer(8);
  for (int round = 0; round < 17; ++round) {
    for (int i = 0; i < 1000; ++i) Receive(1, in, 3);
    for (int i = 0; i < 1000; ++i) Send(0, out, 3);
    AwaitAll(Duration::Seconds(5));
    ASSERT_EQ(pending(0), 0u) << round;
  }
}

TEST_P(BoundsTest, UnexpectedMessagesAreHeldWithinTheirBoundAndNoneIsLost) {
  WorldOptions options = Options();
  options.endpoint.unexpected_bytes = 64 * 1024;
  options.endpoint.max_operations = 1000;
  Start(options);
  std::vector<GuardedBuffer*> in;
  for (uint64_t i = 0; i < 200; ++i) Send(0, NewFilled(4000, i), 1);
  world().RunFor(Duration::Millis(300));
  EXPECT_GT(endpoint(1).counters().not_ready_sent + endpoint(1).counters().rx_no_memory, 0u);
  EXPECT_GT(pending(0), 150u);
  EXPECT_LE(endpoint(1).MemoryOf(connection(1)), 300'000u);
  for (uint64_t i = 0; i < 200; ++i) {
    in.push_back(&NewBuffer(4000));
    Receive(1, *in.back(), 1);
  }
  AwaitAll();
  for (uint64_t i = 0; i < 200; ++i) EXPECT_TRUE(in[i]->Holds(i)) << i;
}

// A store that is full because of one connection must not stop another that has its receives posted.
TEST_P(BoundsTest, AFullStoreDoesNotStopOthers) {
  WorldOptions options = Options();
  options.endpoint.unexpected_bytes = 64 * 1024;
  Start(options);
  for (uint64_t i = 0; i < 100; ++i) Send(0, NewFilled(4000, i), 1);
  world().RunFor(Duration::Millis(20));
  const auto stuffed = std::pair(a_, b_);
  std::tie(a_, b_) = world().Establish(0, 1);
  for (int i = 0; i < 10; ++i) Exchange(0, 10'000, 3);
  std::tie(a_, b_) = stuffed;
  for (uint64_t i = 0; i < 100; ++i) Receive(1, NewBuffer(4000), 1);
  AwaitAll();
}

TEST_P(BoundsTest, MoreMessagesThanMayBeOpen) {
  WorldOptions options = Options();
  options.endpoint.max_operations = 10'000;
  Start(options);
  GuardedBuffer& out = NewFilled(32, 1);
  GuardedBuffer& in = NewBuffer(32);
  for (uint32_t i = 0; i < limits::kMaxOpenMessages + 500; ++i) Send(0, out, 1);
  world().RunFor(Duration::Millis(20));
  for (uint32_t i = 0; i < limits::kMaxOpenMessages + 500; ++i) Receive(1, in, 1);
  AwaitAll();
}

TEST_P(BoundsTest, MoreLargeMessagesThanMayBeOpen) {
  WorldOptions options = Options();
  options.endpoint.max_operations = 10'000;
  options.endpoint.eager_bytes = 0;
  Start(options);
  GuardedBuffer& out = NewFilled(32, 1);
  GuardedBuffer& in = NewBuffer(32);
  for (uint32_t i = 0; i < limits::kMaxOpenMessages + 500; ++i) Send(0, out, 1);
  world().RunFor(Duration::Millis(20));
  for (uint32_t i = 0; i < limits::kMaxOpenMessages + 500; ++i) Receive(1, in, 1);
  AwaitAll();
}

// Its receive may come long after others, which do not wait for it: neither sends of another tag, nor writes, nor what
// the peer reads here.
TEST_P(BoundsTest, ALongSendWithoutAReceiveHoldsUpNothingElse) {
  constexpr uint32_t kMany = 2 * limits::kMaxOpenMessages;
  WorldOptions options = Options();
  options.endpoint.max_operations = 3 * kMany;
  Start(options);
  if (GetParam() == LaneKind::kHca) GTEST_SKIP() << "cards tell of messages by 12 bits of their numbers";
  GuardedBuffer& memory = NewFilled(32, 1);
  GuardedBuffer& late = NewBuffer(100'000);
  GuardedBuffer& in = NewBuffer(32);
  const RemoteMemory readable = Export(0, memory, kRemoteRead);
  const RemoteMemory writable = Export(1, NewBuffer(64), kRemoteWrite);
  Send(0, NewFilled(100'000, 1), 1);
  std::vector<std::pair<uint32_t, uint64_t>> others;
  for (uint32_t i = 0; i < kMany; ++i) {
    others.emplace_back(1, Receive(1, in, 2));
    Send(0, memory, 2);
    others.emplace_back(0, Write(0, memory, writable));
    others.emplace_back(1, Read(1, in, readable));
  }
  world().RunFor(Duration::Seconds(2));
  for (const auto& [side, id] : others) ASSERT_NE(Done(side, id), nullptr) << side;
  Receive(1, late, 1);
  AwaitAll();
  EXPECT_TRUE(late.Holds(1));
}

// So many may wait, and are found again in any order; then the next ones wait for their turn.
TEST_P(BoundsTest, LongSendsWithoutAReceiveMayBeManyAndAreTakenInAnyOrder) {
  constexpr uint32_t kMany = limits::kMaxParkedMessages + limits::kMaxOpenMessages / 2;
  WorldOptions options = Options();
  options.endpoint.max_operations = 2 * kMany;
  options.endpoint.eager_bytes = 0;
  Start(options);
  if (GetParam() == LaneKind::kHca) GTEST_SKIP() << "cards tell of messages by 12 bits of their numbers";
  GuardedBuffer& out = NewFilled(32, 1);
  GuardedBuffer& in = NewBuffer(32);
  for (uint32_t i = 0; i < kMany + 500; ++i) Send(0, out, i);
  world().RunFor(Duration::Millis(200));
  for (uint32_t i = kMany - 100; i-- > 0;) Receive(1, in, i);
  for (uint32_t i = kMany - 100; i < kMany + 500; ++i) Receive(1, in, i);
  AwaitAll();
  EXPECT_EQ(world().endpoint(0).counters().operations_completed, kMany + 500);
}

// Flushes among them: each ends when what was posted before it has, whatever the order of ends.
TEST_P(BoundsTest, AFlushWaitsForALongSendAndNotForWhatCameLater) {
  Start(Options());
  GuardedBuffer& out = NewFilled(32, 1);
  Receive(1, NewBuffer(32), 2);
  Receive(1, NewBuffer(32), 2);
  const uint64_t first = Flush(0);  // of nothing
  Send(0, NewFilled(100'000, 1), 1);
  const uint64_t second = Flush(0);
  Send(0, out, 2);
  const uint64_t third = Flush(0);
  Send(0, out, 2);
  world().RunFor(Duration::Millis(10));
  EXPECT_NE(Done(0, first), nullptr);
  EXPECT_EQ(Done(0, second), nullptr);
  EXPECT_EQ(Done(0, third), nullptr);
  Receive(1, NewBuffer(100'000), 1);
  AwaitAll();
  EXPECT_NE(Done(0, second), nullptr);
  EXPECT_NE(Done(0, third), nullptr);
}

// Who watches memory while it is written must not find a line of 128 bytes in two segments, which may come in any
// order.
TEST_P(BoundsTest, SegmentsOfOrderedPlacementAreWholeLines) {
  WorldOptions options = Options();
  constexpr uint32_t kSegment = 1000;  // 7 lines and some
  options.packet_capabilities.max_packet_bytes = kSegment + limits::kMaxDataHeaderBytes;
  options.hca_capabilities.max_packet_bytes = options.packet_capabilities.max_packet_bytes;
  options.hca_capabilities.max_write_bytes = kSegment;
  options.endpoint.ordered_placement = true;
  Start(options);
  GuardedBuffer& out = NewFilled(9 * kSegment, 3);
  GuardedBuffer& in = NewBuffer(9 * kSegment);
  Receive(1, in, 1);
  Send(0, out, 1);
  AwaitAll();
  EXPECT_TRUE(in.Holds(3));
  EXPECT_EQ(world().endpoint(0).counters().tx_data_packets, 11u) << "9,000 bytes in segments of 896";
}

// Both sides fill their window of open messages with requests; the answers need numbers of it too.
TEST_P(BoundsTest, RequestsOfBothSidesLeaveRoomForTheAnswers) {
  WorldOptions options = Options();
  options.endpoint.max_operations = 10'000;
  Start(options);
  GuardedBuffer& memory = NewFilled(64, 1);
  const RemoteMemory remote[2] = {Export(0, memory, kRemoteRead), Export(1, memory, kRemoteRead)};
  GuardedBuffer& in = NewBuffer(64);
  for (uint32_t i = 0; i < limits::kMaxOpenMessages + 500; ++i) {
    for (uint32_t from = 0; from < 2; ++from) Read(from, in, remote[1 - from]);
  }
  AwaitAll();
}

// Short sends go before a longer one. Those that the store has no room for leave the window to it: all wait for its
// turn.
TEST_P(BoundsTest, WhatTheStoreHasNoRoomForLeavesTheWindowToTheSendWhoseTurnItIs) {
  WorldOptions options = Options();
  options.endpoint.unexpected_bytes = 10'000;
  options.control_bytes = 4096;  // a segment in flight
  Start(options);
  for (int i = 0; i < 9; ++i) Receive(1, NewBuffer(8000), 1);
  Send(0, NewFilled(8000, 1), 1);
  for (int i = 0; i < 8; ++i) Send(0, NewFilled(4000, 1), 1);
  AwaitAll();
  EXPECT_GT(endpoint(1).counters().not_ready_sent, 0u);
}

// A message that was put off keeps its packet numbers while others go on, and still needs new ones in the end.
TEST_P(BoundsTest, APutOffMessageHoldsNobodyUpForEver) {
  StartWithMessagesPutOff();
  world().RunFor(Duration::Millis(100));
  TakeWhatWasPutOff();
}

// The same, and at the end of the numbers everything else is lost again and again for a while.
TEST_P(BoundsTest, APutOffMessageKeepsANumberWhateverIsLostMeanwhile) {
  StartWithMessagesPutOff();
  const uint64_t sent = endpoint(0).counters().tx_data_packets;
  bool lifted = false;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {  // of payload alone: probes go on and are answered
    fate.drop = !lifted && packet.payload_bytes > 0 && endpoint(0).counters().tx_data_packets - sent > 14'500;
  });
  world().RunFor(Duration::Seconds(3));
  lifted = true;
  TakeWhatWasPutOff();
}

// An empty message has no payload that could be granted, but its receive still clears it.
TEST_P(BoundsTest, AnEmptyMessageThatWasPutOffGoesAsSoonAsItMay) {
  WorldOptions options = Options();
  options.endpoint.unexpected_bytes = 16 * 1024;
  Start(options);
  GuardedBuffer& nothing = NewBuffer(0);
  for (int i = 0; i < 1000; ++i) Send(0, nothing, 1);
  const uint64_t last = Send(0, nothing, 2);
  world().RunFor(Duration::Millis(700));
  Receive(1, nothing, 2);
  Await(0, last, Duration::Millis(20));
  for (int i = 0; i < 1000; ++i) Receive(1, nothing, 1);
  AwaitAll();
}

TEST_P(BoundsTest, TooLongMessagesAreRefused) {
  Start(Options());
  const uint64_t bytes = limits::kMaxMessageBytes + 1;
  const RegionId region = endpoint(0).RegisterMemory(nullptr, bytes, kLocalOnly, MemoryKind::kPhantom);
  ASSERT_NE(region, kUnregistered);
  EXPECT_EQ(endpoint(0).PostSend(connection(0), {.buffer = {nullptr, bytes, region}}, now()),
            PostResult::kInvalidArgument);
}

// One message much longer than the window of segments that may be open, with a hole at its start.
TEST_P(BoundsTest, AMessageLongerThanTheOutOfOrderWindow) {
  WorldOptions options = Options();
  options.packet_capabilities.max_packet_bytes = 128 + 64;
  options.hca_capabilities.max_packet_bytes = 128 + 64;
  options.hca_capabilities.max_write_bytes = 64;
  options.control_bytes = 1 << 30;
  Start(options);
  const size_t bytes = 64 * (limits::kMaxSegmentsAhead + 5000);
  uint64_t dropped = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (packet.payload_bytes > 0 && dropped < 3) ++dropped, fate.drop = true;
  });
  Exchange(0, bytes);
}

}  // namespace
}  // namespace paceline::support
