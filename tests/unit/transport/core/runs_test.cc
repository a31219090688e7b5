// Packets of one message that leave and arrive as a run: that they are what single packets would be, and that one of
// them which is lost, damaged or doubled takes no other along.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr size_t kSegment = 4096;
constexpr size_t kSegments = 40;
constexpr size_t kBurst = 16 * kSegment;

class RunsTest : public CoreFixture {
 protected:
  // Packets that arrive within `poll_interval` are taken together.
  void Begin(uint64_t window, TestControl control = TestControl::kWindow,
             Duration poll_interval = Duration::Micros(4)) {
    WorldOptions options;
    options.control = control;
    options.control_bytes = window;
    options.network.poll_interval = poll_interval;
    options.packet_capabilities.burst_segments = 16;
    options.packet_capabilities.max_packet_bytes = kSegment + limits::kMaxDataHeaderBytes;
    Start(options);
  }
  // Sends a message of kSegments from host 0, with its receive posted, while `hook` sees its packets.
  void ExchangeUnder(const DataHook& hook) {
    HookData([hook](const wire::DataHeader& header, NetworkPacket& packet, Fate& fate) {
      if (header.length == kSegment * kSegments) hook(header, packet, fate);
    });
    Exchange(0, kSegment * kSegments, 1);
    network().SetHook(nullptr);
  }
};

TEST_F(RunsTest, EachPacketSaysWhatItWouldAlone) {
  Begin(1 << 20);
  std::vector<wire::DataHeader> seen;
  ExchangeUnder([&](const wire::DataHeader& header, NetworkPacket&, Fate&) { seen.push_back(header); });
  ASSERT_EQ(seen.size(), kSegments);
  size_t runs = 1;
  for (size_t i = 0; i < seen.size(); ++i) {
    const uint64_t behind = kSegment * (kSegments - 1 - i);
    EXPECT_EQ(seen[i].psn, seen[0].psn + i);
    EXPECT_EQ(seen[i].psn - seen[i].floor_distance, seen[0].psn - seen[0].floor_distance) << i;
    EXPECT_EQ(seen[i].offset, kSegment * i);
    EXPECT_EQ(seen[i].tx_total, seen[0].tx_total + kSegment * i);
    EXPECT_EQ(wire::DecodeBacklog(seen[i].backlog), behind);
    EXPECT_EQ((seen[i].flags & wire::kLastOfBacklog) != 0, behind == 0) << i;
    EXPECT_EQ(seen[i].message, seen[0].message);
    if (i > 0 && seen[i].entropy != seen[i - 1].entropy) ++runs;
  }
  EXPECT_EQ(runs, 3u) << "16, 16 and 8";
}

// As many as the window takes, and those that leave no room for two more ask for news.
TEST_F(RunsTest, AWindowEndsARun) {
  constexpr uint64_t kWindow = 10;
  Begin(kWindow * kSegment);
  uint64_t in_flight = 0;
  std::vector<wire::DataHeader> seen;
  ExchangeUnder([&](const wire::DataHeader& header, NetworkPacket&, Fate&) { seen.push_back(header); });
  ASSERT_EQ(seen.size(), kSegments);
  for (size_t i = 0; i < kWindow; ++i) {
    ++in_flight;
    EXPECT_EQ((seen[i].flags & wire::kAckNow) != 0, in_flight + 2 > kWindow) << i;
    EXPECT_EQ(seen[i].timestamp, seen[0].timestamp) << i;
  }
  EXPECT_NE(seen[kWindow].timestamp, seen[0].timestamp) << "this one had to wait";
}

// Up to a quarter of a burst; more waits for the next turn, by another path.
TEST_F(RunsTest, TheEndOfAMessageGoesWithTheBurstBeforeIt) {
  for (const size_t more : {4, 5}) {
    Begin(1 << 20);
    std::vector<uint16_t> paths;
    HookData([&](const wire::DataHeader& header, NetworkPacket&, Fate&) { paths.push_back(header.entropy); });
    Exchange(0, kBurst + kSegment * more, 1);
    ASSERT_EQ(paths.size(), 16 + more);
    for (size_t i = 1; i < paths.size(); ++i) EXPECT_EQ(paths[i] != paths[0], more == 5 && i >= 16) << i;
    network().SetHook(nullptr);
  }
}

// The next message does not.
TEST_F(RunsTest, WhatIsNoEndWaitsForItsTurn) {
  Begin(1 << 20);
  std::map<uint32_t, uint16_t> path;  // by message
  HookData([&](const wire::DataHeader& header, NetworkPacket&, Fate&) { path[header.message] = header.entropy; });
  for (int i = 0; i < 2; ++i) Receive(1, NewBuffer(kBurst), 1);
  world().RunFor(Duration::Millis(1));  // the sender knows that they stand ready
  for (const size_t bytes : {kBurst, kSegment * 2}) Send(0, NewFilled(bytes, 1), 1);
  AwaitAll();
  ASSERT_EQ(path.size(), 2u);
  EXPECT_NE(path.begin()->second, path.rbegin()->second);
}

TEST_F(RunsTest, CreditEndsARun) {
  Begin(6 * kSegment, TestControl::kCredit);
  ExchangeUnder([](const wire::DataHeader&, NetworkPacket&, Fate&) {});
  EXPECT_EQ(endpoint(0).counters().retransmits, 0u);
}

TEST_F(RunsTest, WhileMoreFollowsFourBurstsHaveOneAcknowledgement) {
  Begin(kBurst * 64, TestControl::kWindow, Duration::Nanos(1));
  const uint64_t before = endpoint(1).counters().acks_sent;
  Exchange(0, kBurst * 12, 1);
  EXPECT_GE(endpoint(1).counters().acks_sent - before, 3u);
  EXPECT_LE(endpoint(1).counters().acks_sent - before, 4u);
}

// As long as four bursts have, where one burst has come and the next is late.
TEST_F(RunsTest, AnAcknowledgementWaitsFourTimesAsLongForMoreBursts) {
  Begin(kBurst * 64, TestControl::kWindow, Duration::Nanos(1));
  GuardedBuffer& in = NewBuffer(kBurst * 4);
  const uint64_t receive = Receive(1, in, 1);
  world().RunFor(Duration::Millis(1));  // the sender knows that it stands ready, and does not ask
  const uint64_t before = endpoint(1).counters().acks_sent;
  size_t packets = 0;
  Time answered;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (packet.payload_bytes == kSegment && ++packets > 16) fate.extra_delay = Duration::Millis(1);
    if (answered == Time() && endpoint(1).counters().acks_sent > before) answered = now();
  });
  const Time start = now();
  Send(0, NewFilled(kBurst * 4, 2), 1);
  AwaitOk(1, receive);
  EXPECT_GE(answered - start, Duration::Micros(100));
  EXPECT_LE(answered - start, Duration::Micros(130));
}

TEST_F(RunsTest, NewsOfCreditGoesWithTheAcknowledgementWhileThereIsEnough) {
  constexpr uint64_t kBursts = 64;
  const auto time_with = [this](uint64_t credit) {
    Begin(credit, TestControl::kCredit, Duration::Nanos(1));
    Exchange(0, kBurst, 1);
    const Time start = now();
    const uint64_t before = endpoint(1).counters().tx_packets;
    Exchange(0, kBurst * kBursts, 2);
    return std::pair(now() - start, endpoint(1).counters().tx_packets - before);
  };
  const Duration unhindered = time_with(kBurst * 2 * kBursts).first;
  const auto [time, packets] = time_with(kBurst * 16);
  EXPECT_LE(packets, kBursts / 4 + 4);
  EXPECT_LE(time.nanos(), unhindered.nanos() * 21 / 20) << "the sender has had to wait";
  EXPECT_GE(time_with(kBurst * 2).second, kBursts * 3 / 4) << "where there is little, all of it is told at once";
}

TEST_F(RunsTest, OneThatIsLostIsSentAgainAlone) {
  Begin(1 << 20);
  ExchangeUnder([lost = std::set<uint64_t>()](const wire::DataHeader& header, NetworkPacket&, Fate& fate) mutable {
    fate.drop = header.offset / kSegment % 16 == 5 && lost.insert(header.offset).second;
  });
  EXPECT_EQ(endpoint(0).counters().retransmits, 3u);
  EXPECT_EQ(endpoint(1).counters().rx_duplicates, 0u);
}

TEST_F(RunsTest, OneThatIsDamagedTakesNoOtherAlong) {
  for (const bool payload : {false, true}) {
    Begin(1 << 20);
    ExchangeUnder(
        [payload, hit = std::set<uint64_t>()](const wire::DataHeader& header, NetworkPacket& packet, Fate&) mutable {
          if (header.offset / kSegment % 16 != 6 || !hit.insert(header.offset).second) return;
          packet.bytes[payload ? packet.bytes.size() - 1 : 17] ^= 1;
        });
    EXPECT_EQ(endpoint(1).counters().rx_bad_checksum, 3u) << payload;
    EXPECT_EQ(endpoint(0).counters().retransmits, 3u) << payload;
    EXPECT_EQ(endpoint(1).counters().rx_duplicates, 0u) << payload;
  }
}

TEST_F(RunsTest, OneThatComesTwiceIsTakenOnce) {
  Begin(1 << 20);
  ExchangeUnder([](const wire::DataHeader& header, NetworkPacket&, Fate& fate) {
    if (header.offset / kSegment % 8 == 3) fate.copies = 2;
  });
  EXPECT_EQ(endpoint(1).counters().rx_duplicates, 5u);
  EXPECT_EQ(endpoint(0).counters().retransmits, 0u);
}

TEST_F(RunsTest, OneThatComesTwiceAsAWholeIsTakenOnce) {
  Begin(1 << 20);
  ExchangeUnder([](const wire::DataHeader&, NetworkPacket&, Fate& fate) {
    fate.copies = 2;
    fate.copy_spacing = Duration::Micros(8);
  });
  world().RunFor(Duration::Millis(1));
  EXPECT_EQ(endpoint(1).counters().rx_duplicates, kSegments);
  EXPECT_EQ(endpoint(1).counters().rx_data_packets, kSegments);
}

TEST_F(RunsTest, OneThatIsMarkedIsTheOnlyOne) {
  Begin(1 << 20);
  ExchangeUnder([](const wire::DataHeader& header, NetworkPacket& packet, Fate&) {
    packet.congestion_experienced = header.offset / kSegment % 16 == 9;
  });
  EXPECT_EQ(endpoint(1).counters().rx_marked, 2u);
}

}  // namespace
}  // namespace paceline::support
