// Payloads that the lane has put where they were thought to belong: that they are taken as they lie where that is
// right, and that it costs nothing but a copy where it is wrong. The lane of these tests spoils all of the room that it
// was shown (ScriptedLane::GuessPlacement).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

#include "tests/support/core_fixture.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr size_t kSegment = 4096;
constexpr size_t kSegments = 64;

class GuessedPlacementTest : public CoreFixture {
 protected:
  void Begin(const std::function<void(WorldOptions&)>& change = [](WorldOptions&) {}) {
    WorldOptions options;
    options.control_bytes = 16 * kSegment;
    options.network.poll_interval = Duration::Micros(4);  // so that several arrive together
    options.packet_capabilities.burst_segments = 8;
    options.packet_capabilities.max_packet_bytes = kSegment + limits::kMaxDataHeaderBytes;
    options.packet_capabilities.least_guessed_bytes = 1;
    change(options);
    Start(options);
  }
  // Two packets of the message are damaged once, well behind its begin: that byte of each.
  void Damage(const std::function<uint8_t&(NetworkPacket&)>& byte) {
    HookData([byte, hit = std::set<uint64_t>()](const wire::DataHeader& header, NetworkPacket& packet, Fate&) mutable {
      if (header.offset / kSegment % 32 == 25 && hit.insert(header.offset).second) byte(packet) ^= 1;
    });
  }
  uint64_t in_place() { return endpoint(1).counters().rx_in_place; }
  uint64_t set_aside() { return endpoint(1).counters().rx_set_aside; }
};

TEST_F(GuessedPlacementTest, WhatComesInOrderIsTakenAsItLies) {
  Begin();
  Exchange(0, kSegment * kSegments + 100, 1);
  EXPECT_GE(in_place(), kSegments * 3 / 4) << "all but the first two runs";
  EXPECT_EQ(set_aside(), 0u);
}

// Each run is then followed by one of the other, and a guess would be wrong.
TEST_F(GuessedPlacementTest, WhereConnectionsTakeTurnsNothingIsGuessed) {
  Begin([](WorldOptions& options) { options.control_bytes = 8 * kSegment; });
  const auto [c, d] = world().Connect(0, 1);
  std::vector<uint8_t> out(kSegment * kSegments, 9), in(out.size());
  endpoint(1).PostReceive(d, {.buffer = {in.data(), in.size()}}, now());
  endpoint(0).PostSend(c, {.buffer = {out.data(), out.size()}}, now());
  Exchange(0, kSegment * kSegments, 1);
  ASSERT_TRUE(world().RunUntil([&] { return in == out; }));
  EXPECT_LE(set_aside(), kSegments / 4);
}

TEST_F(GuessedPlacementTest, AnotherMessageInBetweenIsSetAside) {
  Begin();
  GuardedBuffer& long_one = NewBuffer(kSegment * kSegments);
  GuardedBuffer& short_one = NewBuffer(kSegment * 2);
  const uint64_t first = Receive(1, long_one, 1);
  const uint64_t second = Receive(1, short_one, 2);
  Send(0, NewFilled(kSegment * kSegments, 11), 1);
  HookData([&, sent = false](const wire::DataHeader& header, NetworkPacket&, Fate&) mutable {
    if (header.offset != kSegment * 20 || std::exchange(sent, true)) return;
    Send(0, NewFilled(kSegment * 2, 12), 2);
  });
  AwaitOk(1, first);
  AwaitOk(1, second);
  EXPECT_TRUE(long_one.Holds(11));
  EXPECT_TRUE(short_one.Holds(12));
  EXPECT_GT(in_place(), 0u);
}

TEST_F(GuessedPlacementTest, OneThatIsDamagedWhereItBelongsIsNotTaken) {
  Begin();
  Damage([](NetworkPacket& packet) -> uint8_t& { return packet.bytes.back(); });
  Exchange(0, kSegment * kSegments, 1);
  EXPECT_EQ(endpoint(1).counters().rx_bad_checksum, kSegments / 32);
  EXPECT_GT(in_place(), 0u);
}

TEST_F(GuessedPlacementTest, OneWhoseHeaderIsDamagedIsSetAsideWithThoseBehindIt) {
  Begin();
  Damage([](NetworkPacket& packet) -> uint8_t& { return packet.bytes[20]; });
  Exchange(0, kSegment * kSegments, 1);
  EXPECT_GT(in_place(), 0u);
  EXPECT_GT(set_aside(), kSegments / 32);
  EXPECT_EQ(endpoint(0).counters().retransmits, kSegments / 32);
}

// With a checksum that is right.
TEST_F(GuessedPlacementTest, AnOffsetThatCannotBeIsNoPlace) {
  Begin();
  HookData([hit = false](const wire::DataHeader& header, NetworkPacket& packet, Fate&) mutable {
    if (header.offset != kSegment * 24 || std::exchange(hit, true)) return;
    wire::DataStamp stamp = wire::StampOf(header);
    stamp.offset = ~uint64_t{0} - kSegment + 1;
    std::array<uint8_t, limits::kMaxDataHeaderBytes> forged;
    wire::StampData(packet.bytes.data(), packet.header_bytes, stamp, forged.data());
    std::copy_n(forged.begin(), packet.header_bytes, packet.bytes.begin());
  });
  Exchange(0, kSegment * kSegments, 1);
  EXPECT_GT(endpoint(1).counters().rx_malformed, 0u);
  EXPECT_GT(in_place(), 0u);
}

TEST_F(GuessedPlacementTest, CopiesOfWhatHasComeAreSetAside) {
  Begin();
  HookData([](const wire::DataHeader&, NetworkPacket&, Fate& fate) {
    fate.copies = 2;
    fate.copy_spacing = Duration::Micros(9);
  });
  Exchange(0, kSegment * kSegments, 1);
  EXPECT_GT(endpoint(1).counters().rx_duplicates, 0u);
  EXPECT_GT(set_aside(), 0u);
}

// What lies behind the gap has arrived: nothing may be put there any more.
TEST_F(GuessedPlacementTest, AMessageWithAGapIsNotGuessedAbout) {
  Begin();
  HookData([lost = false](const wire::DataHeader& header, NetworkPacket&, Fate& fate) mutable {
    fate.drop = header.offset == kSegment * 3 && !std::exchange(lost, true);
  });
  Exchange(0, kSegment * kSegments, 1);
  EXPECT_EQ(in_place(), 0u);
  EXPECT_EQ(endpoint(0).counters().retransmits, 1u);
}

// Each lies where the one before it belongs: taken one after the other, they would be written over.
TEST_F(GuessedPlacementTest, ThoseBehindOneThatIsMissingAreSetAside) {
  Begin();
  HookData([lost = false](const wire::DataHeader& header, NetworkPacket&, Fate& fate) mutable {
    fate.drop = header.offset == kSegment * 26 && !std::exchange(lost, true);
  });
  Exchange(0, kSegment * kSegments, 1);
  EXPECT_GT(in_place(), 0u);
  EXPECT_GT(set_aside(), 0u);
  EXPECT_EQ(endpoint(1).counters().rx_bad_checksum, 0u);
  EXPECT_EQ(endpoint(0).counters().retransmits, 1u);
}

TEST_F(GuessedPlacementTest, NothingIsPutBehindAReceiveThatIsTooShort) {
  Begin();
  GuardedBuffer& in = NewBuffer(kSegment * 30 + 7);
  const uint64_t receive = Receive(1, in, 1);
  Send(0, NewFilled(kSegment * kSegments, 3), 1);
  const Completion done = Await(1, receive);
  EXPECT_EQ(done.status, OperationStatus::kTruncated);
  EXPECT_GT(in_place(), 0u);
}

// Their owner may look at any time.
TEST_F(GuessedPlacementTest, MemoryThatPeersWriteToIsNotGuessedAbout) {
  Begin();
  GuardedBuffer& target = NewBuffer(kSegment * kSegments);
  const RemoteMemory remote = Export(1, target, kRemoteWrite);
  GuardedBuffer& out = NewFilled(kSegment * kSegments, 5);
  AwaitOk(0, Write(0, out, remote));
  EXPECT_TRUE(target.Holds(5));
  EXPECT_EQ(in_place() + set_aside(), 0u);
}

TEST_F(GuessedPlacementTest, AnAnswerToAReadIsTakenAsItLies) {
  Begin();
  GuardedBuffer& source = NewFilled(kSegment * kSegments, 6);
  const RemoteMemory remote = Export(1, source, kRemoteRead);
  GuardedBuffer& in = NewBuffer(kSegment * kSegments);
  AwaitOk(0, Read(0, in, remote));
  EXPECT_TRUE(in.Holds(6));
  EXPECT_GT(endpoint(0).counters().rx_in_place, 0u);
}

TEST_F(GuessedPlacementTest, WhereDataAreProvenOrPlacedInOrderNothingIsGuessed) {
  for (const bool keyed : {false, true}) {
    Begin([keyed](WorldOptions& options) {
      options.endpoint.ordered_placement = !keyed;
      if (!keyed) return;
      options.endpoint.cluster_key.emplace().fill(7);
      options.customize = [](uint32_t host, EndpointOptions& endpoint) {
        endpoint.key_seed.fill(static_cast<uint8_t>(host + 1));
      };
    });
    Exchange(0, kSegment * kSegments, 1);
    EXPECT_EQ(in_place() + set_aside(), 0u) << keyed;
  }
}

// The room that is shown belongs to the caller again once a receive has ended.
TEST_F(GuessedPlacementTest, NothingIsShownOfAReceiveThatHasEnded) {
  Begin();
  GuardedBuffer& in = NewBuffer(kSegment * kSegments);
  Receive(1, in, 1);
  Send(0, NewFilled(kSegment * kSegments, 3), 1);
  ASSERT_TRUE(world().RunUntil([&] { return in_place() > 0; }));
  EXPECT_GT(endpoint(1).GuessPlacement(0).packets, 0u);
  endpoint(1).Abort(connection(1), now());
  EXPECT_EQ(endpoint(1).GuessPlacement(0).packets, 0u);
}

}  // namespace
}  // namespace paceline::support
