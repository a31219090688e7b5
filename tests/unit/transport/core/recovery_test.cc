// Whatever the network does, everything arrives exactly once: loss of every single packet in turn, random loss,
// duplication, reordering, corruption, trimming, marks, black holes.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/base/random.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr uint8_t kAll = kRemoteRead | kRemoteWrite | kRemoteAtomic;

class RecoveryTest : public CoreSetupTest {
 protected:
  // A bit of everything, checked: eager and rendezvous sends both ways, a write with immediate, a read, atomics.
  void Everything() {
    GuardedBuffer& memory = NewBuffer(60'008);
    std::memset(memory.data(), 0, 8);
    FillPattern(memory.data() + 30'008, 30'000, 1);
    const RemoteMemory remote = Export(1, memory, kAll);
    host(1).completions.clear();
    GuardedBuffer& small = NewBuffer(100);
    GuardedBuffer& large = NewBuffer(50'000);
    GuardedBuffer& back = NewBuffer(20'000);
    GuardedBuffer& read = NewBuffer(30'000);
    Receive(1, small, 1);
    Receive(0, back, 3);
    Send(0, NewFilled(100, 11), 1);
    Send(0, NewFilled(50'000, 12), 2);  // unexpected
    WriteImmediate(0, NewFilled(30'000, 13), remote, 8, 4711);
    const uint64_t add = FetchAdd(0, remote, 0, 5);
    Read(0, read, remote, 30'008);
    Send(1, NewFilled(20'000, 14), 3);
    world().RunFor(Duration::Micros(100));
    Receive(1, large, 2);
    const uint64_t swap = CompareSwap(0, remote, 0, 5, 9);
    Flush(0);
    AwaitAll();
    for (uint32_t at = 0; at < 2; ++at) {
      for (const Completion& completion : host(at).completions) EXPECT_EQ(completion.status, OperationStatus::kOk);
    }
    EXPECT_TRUE(small.Holds(11));
    EXPECT_TRUE(large.Holds(12));
    EXPECT_TRUE(back.Holds(14));
    EXPECT_TRUE(read.HoldsFirst(30'000, 1));
    EXPECT_EQ(FindDifference(memory.data() + 8, 30'000, 13), 30'000u);
    if (Done(0, add) == nullptr || Done(0, swap) == nullptr) return;
    EXPECT_EQ(Done(0, add)->result == 0 || Done(0, add)->result == 9, true);
    uint64_t cell = 0;
    std::memcpy(&cell, memory.data(), 8);
    // Atomics of one connection may be carried out in either order.
    EXPECT_TRUE(cell == 9 || cell == 5) << cell;
    EXPECT_EQ(cell == 9, Done(0, swap)->result == 5);
    size_t told = 0;
    for (const Completion& completion : host(1).completions) told += completion.operation == Operation::kWriteImmediate;
    EXPECT_EQ(told, 1u);
  }
  void Restart() { Start(OptionsFor(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(Setups, RecoveryTest, testing::ValuesIn(AllCoreSetups()), CoreSetupName);

TEST_P(RecoveryTest, NothingIsSentTwiceWithoutReason) {
  Everything();
  EXPECT_EQ(endpoint(0).counters().retransmits, 0u);
  EXPECT_EQ(endpoint(1).counters().retransmits, 0u);
  EXPECT_EQ(endpoint(0).counters().timeouts, 0u);
}

TEST_P(RecoveryTest, LossOfEachPacketInTurn) {
  // The first run only counts.
  const uint64_t first = network().packets_sent();
  Everything();
  const uint64_t packets = network().packets_sent() - first;
  ASSERT_GT(packets, 20u);
  for (uint64_t n = 0; n < packets; ++n) {
    SCOPED_TRACE("packet " + std::to_string(n) + " lost");
    TearDown();
    Restart();
    const uint64_t lost = network().packets_sent() + n;
    network().SetHook([lost](NetworkPacket& packet, Fate& fate) { fate.drop = packet.index == lost; });
    Everything();
    if (HasFailure()) return;
  }
}

TEST_P(RecoveryTest, LossOfEachPairOfNeighboursInTurn) {
  const uint64_t first = network().packets_sent();
  Everything();
  const uint64_t packets = network().packets_sent() - first;
  for (uint64_t n = 0; n < packets; n += 3) {
    SCOPED_TRACE("packets from " + std::to_string(n) + " lost");
    TearDown();
    Restart();
    const uint64_t lost = network().packets_sent() + n;
    network().SetHook(
        [lost](NetworkPacket& packet, Fate& fate) { fate.drop = packet.index >= lost && packet.index < lost + 4; });
    Everything();
    if (HasFailure()) return;
  }
}

TEST_P(RecoveryTest, DuplicationOfEverything) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "cards do not duplicate";
  network().SetHook([](NetworkPacket& packet, Fate& fate) {
    fate.copies = 3;
    fate.copy_spacing = Duration::Micros(1 + static_cast<int64_t>(packet.index % 7) * 30);
  });
  for (int i = 0; i < 5; ++i) Everything();
  EXPECT_GT(endpoint(1).counters().rx_duplicates + endpoint(1).counters().rx_replayed, 0u);
}

TEST_P(RecoveryTest, ReorderingAcrossPaths) {
  Random random(7);
  std::vector<int64_t> delay(256);
  for (int64_t& d : delay) d = static_cast<int64_t>(random.Below(200));
  network().SetHook(
      [&](NetworkPacket& packet, Fate& fate) { fate.extra_delay = Duration::Micros(delay[packet.entropy]); });
  for (int i = 0; i < 5; ++i) Everything();
}

TEST_P(RecoveryTest, ReorderingWithinPaths) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "a queue pair keeps its order";
  Random random(8);
  network().SetHook([&](NetworkPacket&, Fate& fate) {
    if (!random.Chance(0.2)) return;
    fate.overtake = true;
    fate.extra_delay = Duration::Micros(static_cast<int64_t>(random.Below(100)));
  });
  for (int i = 0; i < 5; ++i) Everything();
}

TEST_P(RecoveryTest, RandomLoss) {
  for (const double probability : {0.01, 0.1, 0.3}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(std::to_string(probability) + " seed " + std::to_string(seed));
      TearDown();
      Restart();
      auto random = std::make_shared<Random>(seed);
      network().SetHook([=](NetworkPacket&, Fate& fate) { fate.drop = random->Chance(probability); });
      Everything();
      if (HasFailure()) return;
    }
  }
}

TEST_P(RecoveryTest, AFifthIsLostAFifthComesTwiceAndAFifthLate) {
  const bool overtakes = GetParam().lanes != LaneKind::kHca;  // a queue pair keeps its order
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TearDown();
    Restart();
    auto random = std::make_shared<Random>(seed);
    network().SetHook([=](NetworkPacket&, Fate& fate) {
      fate.drop = random->Chance(0.2);
      if (random->Chance(0.2)) fate.copies = 2;
      fate.overtake = overtakes && random->Chance(0.2);
      if (fate.overtake) fate.extra_delay = Duration::Micros(static_cast<int64_t>(random->Below(100)));
    });
    Everything();
    if (HasFailure()) return;
  }
}

TEST_P(RecoveryTest, CorruptionIsNoticedAndRepaired) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "a card's own checksum drops what is corrupted";
  Random random(9);
  network().SetHook([&](NetworkPacket& packet, Fate&) {
    if (packet.bytes.empty() || !random.Chance(0.05)) return;
    for (uint64_t flips = 1 + random.Below(3); flips > 0; --flips) {
      packet.bytes[random.Below(packet.bytes.size())] ^= static_cast<uint8_t>(1u << random.Below(8));
    }
  });
  for (int i = 0; i < 10; ++i) Everything();
  EXPECT_GT(endpoint(0).counters().rx_bad_checksum + endpoint(1).counters().rx_bad_checksum, 0u);
}

TEST_P(RecoveryTest, TruncatedPacketsAreDropped) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "a card's own checksum drops what is corrupted";
  Random random(10);
  network().SetHook([&](NetworkPacket& packet, Fate&) {
    if (random.Chance(0.05)) packet.bytes.resize(random.Below(packet.bytes.size()));
  });
  for (int i = 0; i < 10; ++i) Everything();
  EXPECT_GT(endpoint(0).counters().rx_malformed + endpoint(1).counters().rx_malformed, 0u);
}

TEST_P(RecoveryTest, TrimmedHeadersBringARetransmissionAtOnce) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "cards do not show cut packets";
  if (GetParam().encrypted)
    GTEST_SKIP() << "a header alone proves nothing: ProtectionTest.TrimmedPacketsAreLostPackets";
  Random random(11);
  uint64_t trimmed = 0;
  network().SetHook([&](NetworkPacket& packet, Fate&) {
    if (packet.control || packet.payload_bytes == 0 || !random.Chance(0.2)) return;
    packet.Trim();
    ++trimmed;
  });
  const Time start = now();
  for (int i = 0; i < 5; ++i) Everything();
  EXPECT_GT(trimmed, 0u);
  EXPECT_EQ(endpoint(0).counters().rx_trimmed + endpoint(1).counters().rx_trimmed, trimmed);
  EXPECT_GT(endpoint(0).counters().lost_trimmed, 0u);
  EXPECT_EQ(endpoint(0).counters().timeouts, 0u);
  EXPECT_LT(now() - start, Duration::Millis(20));
}

TEST_P(RecoveryTest, MarksAreCounted) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "marks are not seen";
  uint64_t marked = 0;
  network().SetHook([&](NetworkPacket& packet, Fate&) {
    if (!packet.ecn_capable) return;
    packet.congestion_experienced = true;
    marked += packet.payload_bytes > 0;
  });
  Everything();
  EXPECT_GT(marked, 0u);
  EXPECT_GE(endpoint(0).counters().rx_marked + endpoint(1).counters().rx_marked, marked);
}

TEST_P(RecoveryTest, SomeBlackPathsCostLittle) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "a dead path of a card ends in a verdict: PlacementTest";
  network().SetHook([](NetworkPacket& packet, Fate& fate) { fate.drop = packet.entropy % 8 == 3; });
  for (int i = 0; i < 5; ++i) Everything();
  const Time start = now();
  Exchange(0, 2'000'000);
  EXPECT_LT(now() - start, Duration::Millis(400));
}

TEST_P(RecoveryTest, ASilentNetworkForAWhile) {
  const uint64_t receive = Receive(1, NewBuffer(5'000'000), 1);
  const uint64_t send = Send(0, NewFilled(5'000'000, 1), 1);
  world().RunFor(Duration::Micros(40));
  network().SetHook([](NetworkPacket&, Fate& fate) { fate.drop = true; });
  world().RunFor(Duration::Seconds(3));
  EXPECT_EQ(Done(0, send), nullptr);
  network().SetHook(nullptr);
  Await(0, send, Duration::Seconds(5));
  Await(1, receive, Duration::Seconds(5));
  EXPECT_EQ(Done(0, send)->status, OperationStatus::kOk);
  // 20 ms and twice as long each time: what nobody answers is asked ever more seldom.
  EXPECT_LT(endpoint(0).counters().timeouts, 12u * GetParam().ports) << "each port by itself";
}

// Somebody cuts a payload, or makes it longer, and says that there is no checksum: it is not the segment.
// The acknowledgement waits in the lane while the clock leaps: a round trip of half a minute. What is lost then is
// asked for within 2 s all the same.
TEST_P(RecoveryTest, AClockThatLeapsMakesNoLongTimeout) {
  GuardedBuffer& in = NewBuffer(1000);
  Receive(1, in);
  Send(0, NewFilled(1000, 1));
  world().RunFor(Duration::Micros(2));
  host(0).Stall(Duration::Millis(1));
  world().RunFor(Duration::Micros(900));
  host(0).LeapClock(Duration::Seconds(30));
  AwaitAll();
  network().SetHook([](NetworkPacket&, Fate& fate) { fate.drop = true; });
  GuardedBuffer& second = NewBuffer(1000);
  const uint64_t received = Receive(1, second);
  Send(0, NewFilled(1000, 2));
  world().RunFor(Duration::Millis(1));
  network().SetHook(nullptr);
  const Time start = now();
  AwaitOk(1, received);
  EXPECT_TRUE(second.Holds(2));
  EXPECT_LE(now() - start, Duration::Millis(500));
}

TEST_P(RecoveryTest, SegmentsOfAnotherLengthAreNotTaken) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "a card's own checksum drops what is corrupted";
  if (GetParam().encrypted) GTEST_SKIP() << "headers are changed here";
  uint64_t changed = 0;
  network().SetHook([&](NetworkPacket& packet, Fate&) {
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
    if (!common.has_value() || common->type != wire::PacketType::kData || packet.payload_bytes < 2) return;
    if (packet.index % 5 != 0) return;
    packet.bytes[1] |= wire::kNoPayloadCrc;
    if (packet.index % 10 == 0) {
      packet.bytes.resize(packet.bytes.size() - 1);
    } else {
      packet.bytes.push_back(0x5a);
    }
    wire::RefreshChecksum(std::span(packet.bytes).first(packet.header_bytes));
    ++changed;
  });
  Exchange(0, 500'000);
  Exchange(1, 3000);
  EXPECT_GT(changed, 10u);
  EXPECT_EQ(endpoint(0).counters().rx_malformed + endpoint(1).counters().rx_malformed, changed);
}

// What was found lost too early and has arrived after all is no loss, and the receiver is told so: it would otherwise
// hold back what it takes for gone.
TEST_P(RecoveryTest, AWrongVerdictIsTakenBack) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "a queue pair keeps its order";
  if (GetParam().encrypted) GTEST_SKIP() << "headers are read here";
  uint32_t held = 0;
  uint32_t lost_total = 0, most_lost = 0, segment = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
    if (!common.has_value() || common->type != wire::PacketType::kData || packet.payload_bytes == 0) return;
    const auto header = wire::ParseData(*common, packet.bytes);
    ASSERT_TRUE(header.has_value());
    lost_total = header->lost_total;
    most_lost = std::max(most_lost, lost_total);
    segment = std::max(segment, packet.payload_bytes);
    if ((header->flags & wire::kRetransmission) == 0 && ++held % 50 == 0) {
      fate.extra_delay = Duration::Micros(16);  // beyond the reordering window, and not yet forgotten
      fate.overtake = true;
    }
  });
  Exchange(0, 1'000'000);
  world().RunFor(Duration::Millis(5));
  Exchange(0, 1'000'000);
  EXPECT_GT(endpoint(0).counters().spurious_retransmits, 0u);
  EXPECT_GT(most_lost, 0u);
  held = 1;  // nothing more is held up
  world().RunFor(Duration::Millis(5));
  network().SetHook(nullptr);
  Exchange(0, 1000);
  network().SetHook([&](NetworkPacket& packet, Fate&) {
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
    if (!common.has_value() || common->type != wire::PacketType::kData || packet.payload_bytes == 0) return;
    lost_total = wire::ParseData(*common, packet.bytes)->lost_total;
  });
  Exchange(0, 1000);
  const EndpointCounters& counters = endpoint(0).counters();
  const uint64_t verdicts = counters.lost_path_gap + counters.lost_reorder + counters.lost_timeout;
  EXPECT_EQ(lost_total, (verdicts - counters.spurious_retransmits) * segment);
}

// A process that pauses answers late: after the first times that is no reason to probe. A loss is found all the same.
TEST_P(RecoveryTest, APeerThatPausesIsNotProbedEachTime) {
  constexpr int kMessages = 40;
  int message = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (packet.from >= GetParam().ports && message % 2 == 0) fate.extra_delay = Duration::Micros(500);
  });
  const auto exchange = [&] {
    Receive(1, NewBuffer(100), 1);
    const uint64_t send = Send(0, NewFilled(100, 1), 1);
    EXPECT_EQ(Await(0, send, Duration::Millis(15)).status, OperationStatus::kOk);
  };
  for (; message < kMessages / 2; ++message) exchange();
  const uint64_t probes = endpoint(0).counters().tail_probes;
  EXPECT_GT(probes, 0u);
  for (; message < kMessages; ++message) exchange();
  EXPECT_EQ(endpoint(0).counters().tail_probes, probes);
  EXPECT_EQ(endpoint(0).counters().retransmits, 0u);

  if (GetParam().lanes == LaneKind::kHca) return;  // whose packets are written, and not lost one by one
  bool dropped = false;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (packet.from < GetParam().ports && packet.payload_bytes == 100) fate.drop = !std::exchange(dropped, true);
  });
  exchange();
  EXPECT_TRUE(dropped);
  EXPECT_EQ(endpoint(0).counters().timeouts, 0u);
}

// Taken for lost and sent again, but it comes all the same: its acknowledgement is enough.
TEST_P(RecoveryTest, TheCopyThatArrivesFirstIsEnough) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "what a card has placed is told in other ways";
  constexpr uint32_t kBytes = 100;
  uint32_t copies = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (packet.from >= GetParam().ports || packet.payload_bytes != kBytes) return;
    if (copies++ > 0) {
      fate.drop = true;
    } else {
      fate.extra_delay = Duration::Micros(30);  // three round trips
      fate.overtake = true;
    }
  });
  GuardedBuffer& in = NewBuffer(kBytes);
  Receive(1, in, 1);
  const uint64_t send = Send(0, NewFilled(kBytes, 7), 1);
  for (int i = 0; i < 10; ++i) {
    Receive(1, NewBuffer(4000), 2);
    Send(0, NewFilled(4000, 2), 2);
    world().RunFor(Duration::Micros(3));
  }
  EXPECT_EQ(Await(0, send, Duration::Millis(10)).status, OperationStatus::kOk);
  EXPECT_GT(copies, 1u);
  EXPECT_GT(endpoint(0).counters().spurious_retransmits, 0u);
  EXPECT_TRUE(in.Holds(7));
  network().SetHook(nullptr);
  AwaitAll();
}

// A copy that was held up for long must not do any harm when it comes at last.
TEST_P(RecoveryTest, VeryLateCopies) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "a queue pair keeps its order";
  std::vector<NetworkPacket> kept;
  network().SetHook([&](NetworkPacket& packet, Fate&) { kept.push_back(packet); });
  Everything();
  network().SetHook(nullptr);
  Everything();
  for (const NetworkPacket& packet : kept) network().Inject(packet);
  world().RunFor(Duration::Millis(50));
  Everything();
  for (const NetworkPacket& packet : kept) network().Inject(packet);
  Everything();
}

}  // namespace
}  // namespace paceline::support
