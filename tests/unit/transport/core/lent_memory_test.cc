// Lanes that read payloads after they have taken them: which payloads they may leave where they lie, and what becomes
// of those whose owner has them back before they are read.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/core_fixture.h"

namespace paceline::support {
namespace {

constexpr size_t kBytes = 200'000;

class LentMemoryTest : public CoreFixture {
 protected:
  static WorldOptions ReadsLater() {
    WorldOptions options;
    options.packet_capabilities.reads_later = true;
    return options;
  }
  RegionId Register(uint32_t at, GuardedBuffer& buffer) {
    return endpoint(at).RegisterMemory(buffer.data(), buffer.size(), kLocalOnly);
  }
  uint64_t FirstCopies(uint32_t at) {
    return endpoint(at).counters().tx_data_packets - endpoint(at).counters().retransmits;
  }
  // A message from a buffer of its own to host 1, which is checked when it has arrived.
  void SendFrom(RegionId region, GuardedBuffer& from) {
    GuardedBuffer& to = NewBuffer(kBytes);
    const uint64_t received = Receive(1, to), sent = Send(0, from, 0, nullptr, region);
    AwaitOk(0, sent);
    AwaitOk(1, received);
    EXPECT_EQ(std::memcmp(from.data(), to.data(), kBytes), 0);
  }
};

TEST_F(LentMemoryTest, MemoryIsLentWhileItIsRegistered) {
  Start(ReadsLater());
  GuardedBuffer& buffer = NewBuffer(kBytes);
  const RegionId first = Register(0, buffer), second = Register(0, buffer);
  EXPECT_EQ(world().lane(0).lent(), 2u);
  EXPECT_EQ(world().lane(1).lent(), 0u);
  endpoint(0).DeregisterMemory(first, now());
  EXPECT_EQ(world().lane(0).lent(), 1u);
  endpoint(0).DeregisterMemory(second, now());
  EXPECT_EQ(world().lane(0).lent(), 0u);
}

TEST_F(LentMemoryTest, NothingIsLentToLanesThatReadAtOnceNorWithoutContents) {
  Start(WorldOptions());
  EXPECT_NE(Register(0, NewBuffer(kBytes)), kUnregistered);
  EXPECT_EQ(world().lane(0).lent(), 0u);
  Start(ReadsLater());
  EXPECT_NE(endpoint(0).RegisterMemory(nullptr, kBytes, kLocalOnly, MemoryKind::kPhantom), kUnregistered);
  EXPECT_EQ(world().lane(0).lent(), 0u);
}

TEST_F(LentMemoryTest, EachPortIsLentTheMemoryIfItReadsLater) {
  WorldOptions options = ReadsLater();
  options.ports = 2;
  options.customize_lane = [](uint32_t port, LaneCapabilities& capabilities) { capabilities.reads_later = port == 1; };
  Start(options);
  const RegionId region = Register(0, NewBuffer(kBytes));
  EXPECT_EQ(world().lane(0, 0).lent(), 0u);
  EXPECT_EQ(world().lane(0, 1).lent(), 1u);
  endpoint(0).DeregisterMemory(region, now());
  EXPECT_EQ(world().lane(0, 1).lent(), 0u);
}

TEST_F(LentMemoryTest, SendsAndWritesFromRegisteredMemoryStayWhereTheyAre) {
  Start(ReadsLater());
  GuardedBuffer& buffer = NewFilled(kBytes, 1);
  const RegionId region = Register(0, buffer);
  SendFrom(region, buffer);
  EXPECT_EQ(world().lane(0).late_packets(), FirstCopies(0));
  GuardedBuffer& target = NewBuffer(kBytes);
  const RemoteMemory remote = Export(1, target, kRemoteWrite);
  AwaitOk(0, Write(0, buffer, remote, 0, nullptr, region));
  EXPECT_TRUE(target.Holds(1));
  EXPECT_EQ(world().lane(0).late_packets(), FirstCopies(0));
  EXPECT_GT(FirstCopies(0), 2 * kBytes / 4096);
}

TEST_F(LentMemoryTest, MemoryThatTheOperationDoesNotNameDoesNotStay) {
  Start(ReadsLater());
  GuardedBuffer& buffer = NewFilled(kBytes, 1);
  Register(0, buffer);
  SendFrom(kUnregistered, buffer);
  EXPECT_EQ(world().lane(0).late_packets(), 0u);
}

// Its owner may change it at any time.
TEST_F(LentMemoryTest, WhatAnswersReadsDoesNotStay) {
  Start(ReadsLater());
  GuardedBuffer& buffer = NewFilled(kBytes, 1);
  const RemoteMemory remote = Export(1, buffer, kRemoteRead);
  GuardedBuffer& to = NewBuffer(kBytes);
  AwaitOk(0, Read(0, to, remote));
  EXPECT_TRUE(to.Holds(1));
  EXPECT_EQ(world().lane(1).lent(), 1u);
  EXPECT_EQ(world().lane(1).late_packets(), 0u);
}

TEST_F(LentMemoryTest, WhatIsSentAgainDoesNotStay) {
  Start(ReadsLater());
  int data = 0;
  HookData([&data](const wire::DataHeader&, NetworkPacket&, Fate& fate) { fate.drop = data++ % 7 == 3; });
  GuardedBuffer& buffer = NewFilled(kBytes, 1);
  SendFrom(Register(0, buffer), buffer);
  EXPECT_GT(endpoint(0).counters().retransmits, 5u);
  EXPECT_EQ(world().lane(0).late_packets(), FirstCopies(0));
}

// A checksum is what tells the receiver that its owner has changed it.
TEST_F(LentMemoryTest, PayloadsWithoutAChecksumDoNotStay) {
  WorldOptions options = ReadsLater();
  options.endpoint.payload_checksum = false;
  Start(options);
  GuardedBuffer& buffer = NewFilled(kBytes, 1);
  SendFrom(Register(0, buffer), buffer);
  EXPECT_EQ(world().lane(0).lent(), 1u);
  EXPECT_EQ(world().lane(0).late_packets(), 0u);
}

TEST_F(LentMemoryTest, EncryptedPayloadsDoNotStay) {
  WorldOptions options = OptionsFor({.encrypted = true});
  options.packet_capabilities.reads_later = true;
  Start(options);
  GuardedBuffer& buffer = NewFilled(kBytes, 1);
  SendFrom(Register(0, buffer), buffer);
  EXPECT_EQ(world().lane(0).late_packets(), 0u);
}

TEST_F(LentMemoryTest, SmallSendsInOnePacketDoNotStay) {
  Start(ReadsLater());
  GuardedBuffer& buffer = NewFilled(100, 1);
  const RegionId region = Register(0, buffer);
  for (int i = 0; i < 64; ++i) Receive(1, NewBuffer(100));
  for (int i = 0; i < 64; ++i) Send(0, buffer, 0, nullptr, region);
  AwaitAll();
  EXPECT_LT(FirstCopies(0), 64u) << "several go in one packet";
  EXPECT_LT(world().lane(0).late_packets(), FirstCopies(0));
}

// The first copy of a packet is held up in the port, the second is acknowledged, and the owner has the buffer back.
TEST_F(LentMemoryTest, WhatIsReadWhenItsOwnerHasItBackIsNotTaken) {
  Start(ReadsLater());
  int data = 0;
  HookData([&data](const wire::DataHeader&, NetworkPacket&, Fate& fate) {
    if (++data != 3) return;
    fate.extra_delay = Duration::Millis(500);
    fate.overtake = true;
  });
  GuardedBuffer& buffer = NewFilled(kBytes, 1);
  GuardedBuffer& to = NewBuffer(kBytes);
  const RegionId region = Register(0, buffer);
  const uint64_t received = Receive(1, to), sent = Send(0, buffer, 0, nullptr, region);
  AwaitOk(0, sent);
  AwaitOk(1, received);
  ASSERT_GT(data, 3);
  std::memset(buffer.data(), 0x77, kBytes);
  world().RunFor(Duration::Seconds(1));
  EXPECT_TRUE(to.Holds(1));
  EXPECT_EQ(endpoint(1).counters().rx_bad_checksum, 1u);
  SendFrom(region, buffer);
}

// The connection ends with the memory; what was sent may still be read, and nobody takes it.
TEST_F(LentMemoryTest, MemoryThatIsDeregisteredUnderWayIsGivenBackAtOnce) {
  Start(ReadsLater());
  GuardedBuffer& buffer = NewFilled(10 * kBytes, 1);
  const RegionId region = Register(0, buffer);
  const uint64_t received = Receive(1, NewBuffer(10 * kBytes)), sent = Send(0, buffer, 0, nullptr, region);
  ASSERT_TRUE(world().RunUntil([this] { return world().lane(0).late_packets() > 0; }));
  endpoint(0).DeregisterMemory(region, now());
  EXPECT_EQ(world().lane(0).lent(), 0u);
  std::memset(buffer.data(), 0x77, kBytes);
  EXPECT_NE(Await(0, sent).status, OperationStatus::kOk);
  EXPECT_NE(Await(1, received).status, OperationStatus::kOk);
}

}  // namespace
}  // namespace paceline::support
