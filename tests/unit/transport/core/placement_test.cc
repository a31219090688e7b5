// Lanes that place data by themselves: large transfers are written by the card, a write that may still be on its way is
// never sent again elsewhere, and memory that was given back is never written.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/base/random.h"

namespace paceline::support {
namespace {

class PlacementTest : public CoreFixture, public testing::WithParamInterface<uint32_t> {
 protected:
  void SetUp() override { Start(Options()); }
  static WorldOptions Options() {
    WorldOptions options;
    options.lanes = LaneKind::kHca;
    options.ports = GetParam();
    return options;
  }
  uint64_t WritesPlaced(uint32_t at) {
    uint64_t sum = 0;
    for (uint32_t port = 0; port < GetParam(); ++port) sum += world().hca(at, port).writes_placed();
    return sum;
  }
};
INSTANTIATE_TEST_SUITE_P(Ports, PlacementTest, testing::Values(1u, 2u));

TEST_P(PlacementTest, LargeWritesArePlacedByTheCard) {
  GuardedBuffer& memory = NewBuffer(1'000'000);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  AwaitOk(0, Write(0, NewFilled(1'000'000, 1), remote));
  EXPECT_TRUE(memory.Holds(1));
  EXPECT_GE(WritesPlaced(1), 100u);  // what goes before a port has told its key goes in packets
}

TEST_P(PlacementTest, ReceivesIntoRegisteredMemoryArePlacedByTheCard) {
  GuardedBuffer& in = NewBuffer(1'000'000);
  const RegionId region = endpoint(1).RegisterMemory(in.data(), in.size(), kRemoteWrite);
  host(1).on_completion = [&](const Completion& completion) { host(1).completions.push_back(completion); };
  ASSERT_EQ(endpoint(1).PostReceive(connection(1), {.buffer = in.local(region), .user_data = 1000}, now()),
            PostResult::kOk);
  AwaitOk(0, Send(0, NewFilled(1'000'000, 1)));
  ASSERT_TRUE(world().RunUntil([&] { return Done(1, 1000) != nullptr; }));
  EXPECT_EQ(Done(1, 1000)->status, OperationStatus::kOk);
  EXPECT_TRUE(in.Holds(1));
  EXPECT_GE(WritesPlaced(1), 100u);  // what goes before a port has told its key goes in packets
}

TEST_P(PlacementTest, LostWritesAreFoundAndSentAgain) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    TearDown();
    Start(Options());
    auto random = std::make_shared<Random>(seed);
    network().SetHook([=](NetworkPacket& packet, Fate& fate) {
      fate.drop = packet.kind == SegmentKind::kWrite && random->Chance(0.1);
    });
    GuardedBuffer& memory = NewBuffer(600'000);
    const RemoteMemory remote = Export(1, memory, kRemoteWrite);
    AwaitOk(0, Write(0, NewFilled(600'000, seed), remote));
    EXPECT_TRUE(memory.Holds(seed));
    Exchange(0, 300'000);
    if (HasFailure()) return;
  }
}

// The acknowledgement says how long it was held back since the write came, not since somebody looked.
TEST_P(PlacementTest, ARoundTripDoesNotHoldTheTimeForWhichAWriteWaitedToBeSeen) {
  constexpr Duration kWaited = Duration::Micros(5);
  std::vector<Duration> longest;
  for (const Duration waited : {Duration(), kWaited}) {
    TearDown();
    WorldOptions options = Options();
    options.hca_capabilities.rx_timestamps = true;
    Start(options);
    GuardedBuffer& memory = NewBuffer(1'000'000);
    const RemoteMemory remote = Export(1, memory, kRemoteWrite);
    for (uint32_t port = 0; port < GetParam(); ++port) world().lane(1, port).set_waited(waited);
    AwaitOk(0, Write(0, NewFilled(1'000'000, 1), remote));
    longest.push_back(host(0).control().longest_rtt);
  }
  EXPECT_LE(longest[1], longest[0] - kWaited);
}

TEST_P(PlacementTest, TheLastWriteOfAPathIsFoundLostToo) {
  uint64_t writes = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (packet.kind == SegmentKind::kWrite && packet.payload_bytes > 0) fate.drop = writes++ == 99;
  });
  GuardedBuffer& memory = NewBuffer(100 * 4096);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  const Time start = now();
  AwaitOk(0, Write(0, NewFilled(100 * 4096, 2), remote));
  EXPECT_TRUE(memory.Holds(2));
  EXPECT_LT(now() - start, Duration::Seconds(2));
}

// A card may keep its queues for packets and for writes apart: a packet that was sent behind a write and arrived before
// it proves nothing.
TEST_P(PlacementTest, PacketsSayNothingOfTheWritesBeforeThem) {
  network().SetHook([](NetworkPacket& packet, Fate& fate) {
    fate.overtake = packet.kind == SegmentKind::kPacket;
    if (packet.kind == SegmentKind::kWrite) fate.extra_delay = Duration::Micros(100);
  });
  GuardedBuffer& memory = NewBuffer(20'000);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  GuardedBuffer& out = NewFilled(20'000, 1);
  for (int i = 0; i < 50; ++i) {
    Write(0, out, remote);
    world().RunFor(Duration::Micros(20));
  }
  AwaitAll();
  EXPECT_TRUE(memory.Holds(1));
  EXPECT_GE(WritesPlaced(1), 50u);
  EXPECT_EQ(endpoint(0).counters().lost_path_gap, 0u);
}

// An acknowledgement tells the newest packets one by one, but not all since the first gap when that is far back. Writes
// that it leaves out are not lost: a second copy would land in memory that the peer's user has got back.
TEST_P(PlacementTest, WhatAnAcknowledgementLeavesOutIsNotLost) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    TearDown();
    WorldOptions options = Options();
    options.network.latency = Duration::Micros(500);
    options.control_bytes = 16 << 20;
    Start(options);
    auto random = std::make_shared<Random>(seed);
    const Time deaf_until = now() + Duration::Micros(1100);  // the peer has then more than one of them tells
    network().SetHook([=](NetworkPacket& packet, Fate& fate) {
      const bool acknowledgement = packet.kind == SegmentKind::kPacket && packet.from >= GetParam();
      fate.drop = acknowledgement ? packet.sent_at < deaf_until : random->Chance(0.02);
    });
    GuardedBuffer& memory = NewBuffer(8'000'000);
    const RemoteMemory remote = Export(1, memory, kRemoteWrite);
    AwaitOk(0, Write(0, NewFilled(8'000'000, seed), remote));
    EXPECT_TRUE(memory.Holds(seed));
    EXPECT_GE(endpoint(0).counters().lost_path_gap, 5u);
    EXPECT_EQ(endpoint(0).counters().spurious_retransmits, 0u);
    if (HasFailure()) return;
  }
}

// The violation that the lane watches for: what was parked lands in memory that has been given back.
TEST_P(PlacementTest, AParkedPathDoesNoHarm) {
  for (const int64_t millis : {1, 30, 100, 500}) {
    for (uint16_t parked = 0; parked < 4; ++parked) {
      SCOPED_TRACE(std::to_string(millis) + " ms, path " + std::to_string(parked));
      TearDown();
      Start(Options());
      bool armed = true;
      network().SetHook([&](NetworkPacket& packet, Fate& fate) {
        if (armed && packet.kind == SegmentKind::kWrite && packet.entropy % 4 == parked) {
          fate.extra_delay = Duration::Millis(millis);
        }
      });
      // The same buffer again and again: a late copy of an earlier round would show as wrong contents too.
      GuardedBuffer& in = NewBuffer(200'000);
      const RegionId region = endpoint(1).RegisterMemory(in.data(), in.size(), kRemoteWrite);
      for (uint64_t round = 0; round < 4; ++round) {
        const uint64_t receive = Receive(1, in, 1, 0, nullptr, region);
        const uint64_t send = Send(0, NewFilled(200'000, round), 1);
        AwaitOk(1, receive);
        EXPECT_TRUE(in.Holds(round));
        AwaitOk(0, send);
        in.Poison();
        if (round == 1) armed = false;
      }
      world().RunFor(Duration::Seconds(2));
      EXPECT_TRUE(in.Untouched());
      if (HasFailure()) return;
    }
  }
}

// The lane finds another way for a path that stays silent, and what was parked on the old one does no harm.
TEST_P(PlacementTest, ASilentPathIsResetAndWhatWasOnItIsSentAgain) {
  for (const bool parked : {false, true}) {
    SCOPED_TRACE(parked);
    TearDown();
    Start(Options());
    network().SetHook([parked](NetworkPacket& packet, Fate& fate) {
      if (packet.kind != SegmentKind::kWrite || packet.entropy % 4 != 3 || packet.way != 0) return;
      fate.drop = !parked;
      fate.extra_delay = Duration::Seconds(3);
    });
    GuardedBuffer& in = NewBuffer(400'000);
    const RegionId region = endpoint(1).RegisterMemory(in.data(), in.size(), kRemoteWrite);
    const uint64_t receive = Receive(1, in, 1, 0, nullptr, region);
    const uint64_t send = Send(0, NewFilled(400'000, 1), 1);
    EXPECT_EQ(Await(1, receive, Duration::Seconds(9)).status, OperationStatus::kOk);
    EXPECT_TRUE(in.Holds(1));
    EXPECT_EQ(Await(0, send).status, OperationStatus::kOk);
    EXPECT_GE(endpoint(0).counters().path_resets, 1u);
    in.Poison();
    world().RunFor(Duration::Seconds(5));
    EXPECT_TRUE(in.Untouched());
    if (HasFailure()) return;
  }
}

// A path that swallows everything for good is fenced by the peer, and what was written on it goes another way.
TEST_P(PlacementTest, APathThatDiesForGoodCostsNoOperation) {
  network().SetHook(
      [](NetworkPacket& packet, Fate& fate) { fate.drop = packet.kind == SegmentKind::kWrite && packet.entropy == 3; });
  GuardedBuffer& memory = NewBuffer(400'000);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  const uint64_t write = Write(0, NewFilled(400'000, 1), remote);
  EXPECT_EQ(Await(0, write, Duration::Seconds(5)).status, OperationStatus::kOk);
  EXPECT_TRUE(memory.Holds(1));
  EXPECT_GE(endpoint(0).counters().fences_asked, 1u);
}

// An acknowledgement tells of the newest 512 packets at most. Of what was sent before these, and behind a gap, it does
// not say that it is missing: writing it again would be writing into memory that its owner may have got back.
TEST_P(PlacementTest, WhatAnAcknowledgementDoesNotTellOfIsNotLost) {
  TearDown();
  WorldOptions options = Options();
  options.control_bytes = 64 << 20;
  Start(options);
  Exchange(0, 100);
  bool first = true;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (packet.kind == SegmentKind::kWrite && packet.payload_bytes > 0) fate.drop = std::exchange(first, false);
    if (packet.from >= GetParam()) fate.drop = true;  // whatever the peer says
  });
  GuardedBuffer& memory = NewBuffer(100'000);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  const uint64_t gap = Write(0, NewFilled(100'000, 1), remote);
  GuardedBuffer& told = NewBuffer(8'000'000);
  const uint64_t write = WriteImmediate(0, NewFilled(8'000'000, 2), Export(1, told, kRemoteWrite), 0, 5);
  const size_t before = host(1).completions.size();
  ASSERT_TRUE(world().RunUntil([&] { return host(1).completions.size() > before; }, Duration::Millis(15)));
  EXPECT_TRUE(told.Holds(2));
  told.Poison();  // its owner knows that it is complete
  for (uint32_t port = 0; port < GetParam(); ++port) world().hca(1, port).Protect(told.data(), told.size());
  network().SetHook(nullptr);
  AwaitOk(0, write);
  AwaitOk(0, gap);
  EXPECT_TRUE(memory.Holds(1));
  EXPECT_TRUE(told.Untouched());
}

// The peer time-out has passed by the clock, but hardly a question was asked meanwhile.
TEST_P(PlacementTest, AClockThatLeapsMakesNoDeadPath) {
  GuardedBuffer& memory = NewBuffer(400'000);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  const uint64_t write = Write(0, NewFilled(400'000, 1), remote);
  world().RunFor(Duration::Micros(20));
  network().SetHook([](NetworkPacket&, Fate& fate) { fate.drop = true; });
  host(0).LeapClock(Duration::Seconds(30));
  world().RunFor(Duration::Seconds(5));
  EXPECT_GT(endpoint(0).counters().timeouts, 1u);
  network().SetHook(nullptr);
  AwaitOk(0, write);
  EXPECT_TRUE(memory.Holds(1));
}

// Buffers are the user's again with the completions that an abort brings: no card may go on reading them.
TEST_P(PlacementTest, AnAbortEndsTheWritesOfTheConnection) {
  GuardedBuffer& memory = NewBuffer(2'000'000);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  const uint64_t write = Write(0, NewFilled(2'000'000, 1), remote);
  world().RunFor(Duration::Micros(80));
  endpoint(0).Abort(connection(0), now());
  for (uint32_t port = 0; port < GetParam(); ++port) EXPECT_EQ(world().hca(0, port).writes_ended(), 1u);
  EXPECT_EQ(Await(0, write).status, OperationStatus::kConnectionClosed);
}

TEST_P(PlacementTest, ARevokedRegionIsNotWritten) {
  GuardedBuffer& memory = NewBuffer(2'000'000);
  RegionId region = 0;
  const RemoteMemory remote = Export(1, memory, kRemoteWrite, &region);
  const uint64_t write = Write(0, NewFilled(2'000'000, 1), remote);
  world().RunFor(Duration::Micros(80));
  endpoint(1).DeregisterMemory(region, now());
  for (uint32_t port = 0; port < GetParam(); ++port) EXPECT_EQ(world().hca(1, port).regions(), 0u);
  const std::vector<uint8_t> then(memory.data(), memory.data() + memory.size());
  EXPECT_EQ(Await(0, write).status, OperationStatus::kRemoteAccess);
  EXPECT_EQ(std::memcmp(then.data(), memory.data(), memory.size()), 0);
}

TEST_P(PlacementTest, UnregisteredReceiveBuffersWorkToo) {
  for (const size_t bytes : {size_t{100}, size_t{5'000}, size_t{1'000'000}}) Exchange(0, bytes);
}

TEST_P(PlacementTest, RegistrationsAreGivenBack) {
  for (int i = 0; i < 10; ++i) Exchange(0, 200'000);
  world().RunFor(Duration::Seconds(1));
  for (uint32_t port = 0; port < GetParam(); ++port) EXPECT_EQ(world().hca(1, port).regions(), 0u);
}

// More messages than the 12 bits of the slot in the immediate tell apart.
TEST_P(PlacementTest, SlotsAreUsedAgain) {
  GuardedBuffer& memory = NewBuffer(5'000);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  GuardedBuffer& out = NewFilled(5'000, 1);
  for (int i = 0; i < 5000; ++i) {
    Write(0, out, remote);
    if (i % 64 == 63) AwaitAll();
  }
  AwaitAll();
  EXPECT_TRUE(memory.Holds(1));
}

}  // namespace
}  // namespace paceline::support
