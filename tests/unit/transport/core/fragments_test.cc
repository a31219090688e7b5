// A path comes to take only smaller packets while a connection stands: its segments go in fragments, of every kind of
// message, whatever is lost; and whole again once they pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/base/random.h"

namespace paceline::support {
namespace {

constexpr uint32_t kPortBytes = 4096 + 96;

class FragmentsTest : public CoreSetupTest {
 protected:
  void SetUp() override {
    WorldOptions options = OptionsFor(GetParam());
    options.control_bytes = window_;
    options.packet_capabilities.max_packet_bytes = kPortBytes;
    options.packet_capabilities.path_may_be_narrower = true;
    options.packet_capabilities.overtaking = Overtaking::kShort;
    Start(options);
    network().SetHook([this](NetworkPacket& packet, Fate& fate) {
      const auto bytes = static_cast<uint32_t>(packet.size());
      fate.drop = bytes > takes_;
      dropped_ += fate.drop;
      if (!fate.drop && packet.payload_bytes > 0) largest_ = std::max(largest_, bytes);
      if (also_) also_(fate);
    });
  }
  // Both directions use the path, which has just shrunk to 1,472 bytes.
  void Shrink() {
    Exchange(0, 100'000);
    takes_ = 1472;
    Exchange(0, 1'000'000);
    Exchange(1, 1'000'000);
  }
  // How large packets are that arrive while this goes on.
  uint32_t LargestOf(const std::function<void()>& traffic) {
    largest_ = 0;
    traffic();
    return largest_;
  }
  uint64_t retransmitted_bytes() {
    return endpoint(0).counters().retransmitted_bytes + endpoint(1).counters().retransmitted_bytes;
  }
  uint64_t Retransmits() { return endpoint(0).counters().retransmits + endpoint(1).counters().retransmits; }

  uint64_t window_ = 256 * 1024;     // or budget
  uint32_t takes_ = kPortBytes;      // the path
  uint32_t dropped_ = 0;             // packets too large for it
  std::function<void(Fate&)> also_;  // happens to packets
  uint32_t largest_ = 0;             // packet with payload that has passed
};
INSTANTIATE_TEST_SUITE_P(Setups, FragmentsTest,
                         testing::Values(CoreSetup{LaneKind::kPackets, TestControl::kWindow},
                                         CoreSetup{LaneKind::kPackets, TestControl::kCredit},
                                         CoreSetup{LaneKind::kPackets, TestControl::kWindow, 1, true},
                                         CoreSetup{LaneKind::kPackets, TestControl::kCredit, 2},
                                         CoreSetup{LaneKind::kPackets, TestControl::kWindow, 1, false, 8}),
                         CoreSetupName);

TEST_P(FragmentsTest, TheTransferGoesOnInASecond) {
  for (const uint32_t takes : {600u, 1000u, 1472u, 3000u, 4100u}) {
    SCOPED_TRACE(takes);
    takes_ = kPortBytes;
    TearDown();
    SetUp();
    Exchange(0, 1'000'000);
    std::vector<uint64_t> sent, received;
    for (const uint32_t from : {0u, 1u}) {
      received.push_back(Receive(1 - from, NewBuffer(3'000'000)));
      sent.push_back(Send(from, NewFilled(3'000'000, takes)));
    }
    world().RunFor(Duration::Micros(20));
    takes_ = takes;
    const uint64_t before = retransmitted_bytes();
    for (const uint32_t from : {0u, 1u}) {
      EXPECT_EQ(Await(from, sent[from], Duration::Seconds(1)).status, OperationStatus::kOk);
      EXPECT_EQ(Await(1 - from, received[from], Duration::Seconds(1)).status, OperationStatus::kOk);
    }
    EXPECT_GE(endpoint(0).counters().payload_limits_lowered, 1u);
    // Packets in flight are retransmitted as fragments, and so are a few that tried the path.
    EXPECT_LE(retransmitted_bytes() - before, 2 * GetParam().ports * (window_ + 100 * kPortBytes));
    const uint64_t again = Retransmits();
    const uint32_t largest = LargestOf([this] {
      Exchange(0, 100'000);
      Exchange(1, 100'000);
    });
    EXPECT_EQ(Retransmits(), again);
    EXPECT_LE(largest, takes);
    EXPECT_GT(largest + kPortBytes / 8 + 64, std::min(takes, kPortBytes - 96));
  }
}

TEST_P(FragmentsTest, EveryKindOfMessage) {
  Exchange(0, 100'000);
  takes_ = 1300;
  Exchange(0, 100'000);
  Exchange(1, 100'000);
  GuardedBuffer& target = NewBuffer(50'000);
  GuardedBuffer& source = NewFilled(50'000, 3);
  const RemoteMemory written = Export(1, target, kRemoteWrite);
  const RemoteMemory read = Export(1, source, kRemoteRead);
  GuardedBuffer& words = NewBuffer(1024);
  std::fill_n(words.data(), 1024, uint8_t{0});
  const RemoteMemory summed = Export(1, words, kRemoteAtomic);
  for (const size_t bytes : {1u, 700u, 1216u, 1217u, 4095u, 4096u, 4097u, 8192u, 12'289u, 50'000u}) {
    SCOPED_TRACE(bytes);
    GuardedBuffer& got = NewBuffer(bytes);
    AwaitOk(0, Write(0, NewFilled(bytes, bytes), written));
    AwaitOk(0, WriteImmediate(0, NewFilled(bytes, bytes), written, 0, 7));
    AwaitOk(0, Read(0, got, read));
    EXPECT_TRUE(std::equal(got.data(), got.data() + bytes, source.data()));
    Exchange(0, bytes);
    Exchange(1, bytes);
    const uint64_t early = Send(0, NewFilled(bytes, 9));  // meets its receive late
    world().RunFor(Duration::Millis(2));
    GuardedBuffer& late = NewBuffer(bytes);
    AwaitOk(1, Receive(1, late));
    AwaitOk(0, early);
    EXPECT_TRUE(late.Holds(9));
  }
  std::vector<int64_t> ones(128, 1);
  for (int i = 0; i < 3; ++i) {
    AwaitOk(0, PostAtomic(0, {.op = AtomicOp::kSum,
                              .type = AtomicType::kInt64,
                              .elements = 128,
                              .operands = reinterpret_cast<const uint8_t*>(ones.data()),
                              .remote = summed}));
  }
  int64_t last = 0;
  std::memcpy(&last, words.data() + 127 * 8, 8);
  EXPECT_EQ(last, 3);
}

TEST_P(FragmentsTest, LargerPacketsAreTriedAgain) {
  Shrink();
  const Time narrow = now();
  while (now() - narrow < Duration::Seconds(5)) {
    Exchange(0, 100'000);
    world().RunFor(Duration::Millis(50));
  }
  takes_ = kPortBytes;
  const Time wide = now();
  uint32_t largest = 0;
  while (largest < kPortBytes - 96 && now() - wide < Duration::Seconds(10)) {
    largest = LargestOf([this] { Exchange(0, 100'000); });
    world().RunFor(Duration::Millis(50));
  }
  const uint64_t packets = endpoint(0).counters().tx_data_packets;
  Exchange(0, 409'600);
  EXPECT_LE(endpoint(0).counters().tx_data_packets - packets, 101u * GetParam().ports);
}

TEST_P(FragmentsTest, AnIdleConnectionRemembersItsPaths) {
  Shrink();
  const uint64_t again = Retransmits();
  world().RunFor(EndpointOptions().idle_after * 3);
  Exchange(0, 1'000'000);
  Exchange(1, 1'000'000);
  EXPECT_EQ(Retransmits(), again);
}

// Trials of larger packets that do not pass cost nothing else: nothing of the data is sent again.
TEST_P(FragmentsTest, TrialsOfLargerPacketsHoldNothingUp) {
  Shrink();
  const uint64_t again = Retransmits();
  const uint64_t timeouts = endpoint(0).counters().timeouts;
  for (int i = 0; i < 200; ++i) {
    Exchange(0, 200'000);
    world().RunFor(Duration::Millis(50));
  }
  EXPECT_EQ(Retransmits(), again);
  EXPECT_EQ(endpoint(0).counters().timeouts, timeouts);
}

// 8 MB may be in flight, yet few segments are sent into a path that takes none: the first question that is due while
// many are outstanding asks for smaller sizes, and no further data goes until one of them is answered.
TEST_P(FragmentsTest, FewSegmentsAreLostToANarrowerPath) {
  window_ = 8'000'000;
  TearDown();
  SetUp();
  Exchange(0, 1'000'000);
  takes_ = 3000;
  std::vector<uint64_t> sent;
  for (uint64_t i = 0; i < 40; ++i) {
    Receive(1, NewBuffer(81'920));
    sent.push_back(Send(0, NewFilled(81'920, i)));
    world().RunFor(Duration::Micros(40));
  }
  for (const uint64_t id : sent) EXPECT_EQ(Await(0, id, Duration::Seconds(1)).status, OperationStatus::kOk);
  EXPECT_LE(dropped_, 150u * GetParam().ports);
}

// The fragments of a read response that the path lost belong to no message once the region has been revoked: none is
// retransmitted, neither in place of the refusal nor after it.
TEST_P(FragmentsTest, AReadResponseOfOneSegmentCanBeRevoked) {
  Shrink();
  GuardedBuffer& memory = NewFilled(4000, 4);
  RegionId region = 0;
  const RemoteMemory remote = Export(1, memory, kRemoteRead, &region);
  GuardedBuffer& in = NewBuffer(4000);
  const uint64_t again = retransmitted_bytes();
  const uint64_t packets = endpoint(1).counters().tx_data_packets;
  takes_ = 300;  // requests and refusals
  const uint64_t read = Read(0, in, remote);
  world().RunFor(Duration::Micros(40));
  ASSERT_GE(endpoint(1).counters().tx_data_packets - packets, 3u);
  endpoint(1).DeregisterMemory(region, now());
  host(1).Touch();
  EXPECT_EQ(Await(0, read).status, OperationStatus::kRemoteAccess);
  world().RunFor(Duration::Millis(50));
  EXPECT_EQ(retransmitted_bytes(), again);
  takes_ = 1472;
  Exchange(0, 100'000);
  Exchange(1, 100'000);
}

// The path changes all the time, and loses, repeats and delays packets: every byte arrives where it belongs.
TEST_P(FragmentsTest, WhateverHappensNothingIsLost) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    takes_ = kPortBytes;
    TearDown();
    SetUp();
    auto random = std::make_shared<Random>(seed);
    also_ = [random](Fate& fate) {
      fate.drop |= random->Chance(0.02);
      if (random->Chance(0.02)) fate.copies = 2;
      if (random->Chance(0.05)) fate.extra_delay = Duration::Micros(random->Below(300));
      fate.overtake = true;
    };
    std::vector<GuardedBuffer*> in;
    for (uint64_t i = 0; i < 40; ++i) {
      const size_t bytes = 1 + random->Below(i % 4 == 0 ? 200'000 : 9000);
      const uint32_t from = static_cast<uint32_t>(i % 2);
      in.push_back(&NewBuffer(bytes));
      Receive(1 - from, *in.back(), i);
      Send(from, NewFilled(bytes, i), i);
      world().RunFor(Duration::Micros(random->Below(2000)));
      if (i % 3 == 0) takes_ = 600 + static_cast<uint32_t>(random->Below(kPortBytes - 500));
    }
    AwaitAll(Duration::Seconds(120));
    for (size_t i = 0; i < in.size(); ++i) EXPECT_TRUE(in[i]->Holds(i)) << i;
    also_ = nullptr;
  }
}

}  // namespace
}  // namespace paceline::support
