// Small sends that share packets: that each of them is what it would be alone, whatever becomes of the packet.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/base/random.h"
#include "transport/core/rx/message.h"
#include "transport/wire/bundle.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr size_t kSegment = 1024;

// Sends of one test, in posting order, and the receives that they are to meet.
struct Sent {
  uint64_t pattern = 0;
  uint64_t send = 0;
  uint64_t receive = 0;
  GuardedBuffer* out = nullptr;
  GuardedBuffer* in = nullptr;
};

class BundlesFixture : public CoreFixture {
 protected:
  static WorldOptions Options(CoreSetup setup = CoreSetup()) {
    WorldOptions options = OptionsFor(setup);
    options.packet_capabilities.max_packet_bytes = kSegment + limits::kMaxDataHeaderBytes;
    return options;
  }
  // From now on the kinds of host 0's data packets are kept.
  void WatchKinds() {
    HookData([this](const wire::DataHeader& header, NetworkPacket&, Fate&) { kinds_.push_back(header.kind); });
  }
  void PostSends(size_t count, size_t bytes, uint64_t tag = 0) {
    for (size_t i = 0; i < count; ++i) {
      Sent sent{.pattern = 100 + sent_.size()};
      sent.out = &NewFilled(bytes, sent.pattern);
      sent.send = Send(0, *sent.out, tag);
      sent_.push_back(sent);
    }
  }
  void PostReceives(uint64_t tag = 0) {
    for (Sent& sent : sent_) {
      if (sent.receive != 0) continue;
      sent.in = &NewBuffer(std::max(kSegment, sent.out->size()));
      sent.receive = Receive(1, *sent.in, tag);
    }
  }
  // All of one tag: they met in posting order, and are whole.
  void AwaitSent() {
    AwaitAll();
    for (const Sent& sent : sent_) {
      const Completion* completion = Done(1, sent.receive);
      ASSERT_NE(completion, nullptr);
      EXPECT_EQ(completion->status, OperationStatus::kOk);
      EXPECT_EQ(FindDifference(sent.in->data(), completion->bytes, sent.pattern), completion->bytes);
      EXPECT_EQ(Done(0, sent.send)->status, OperationStatus::kOk);
    }
  }

  std::vector<Sent> sent_;
  std::vector<wire::MessageKind> kinds_;
};

class BundlesTest : public BundlesFixture {
 protected:
  void SetUp() override { Start(Options()); }

  // SendTwentyTwo, while `hook` sees the first bundle.
  void SendUnder(const DataHook& hook) {
    HookData([hook, first = true](const wire::DataHeader& header, NetworkPacket& packet, Fate& fate) mutable {
      if (header.kind != wire::MessageKind::kBundle || !std::exchange(first, false)) return;
      hook(header, packet, fate);
    });
    SendTwentyTwo();
  }
  // 16 sends of 50 bytes, which go in one packet, and others behind them later, so that a loss shows by what follows.
  void SendTwentyTwo() {
    PostSends(16, 50);
    PostReceives();
    for (int i = 0; i < 6; ++i) {
      world().RunFor(Duration::Micros(10));
      PostSends(1, 50);
      PostReceives();
    }
    AwaitSent();
  }
};

TEST_F(BundlesTest, SmallSendsThatStandReadyShareAPacket) {
  WatchKinds();
  std::vector<uint64_t> receives;
  std::vector<GuardedBuffer*> in;
  for (uint64_t i = 0; i < 8; ++i) {
    in.push_back(&NewBuffer(64));
    receives.push_back(Receive(1, *in.back(), 10 + i));
    GuardedBuffer& out = NewFilled(20 + i, i);
    if (i % 2 == 0) {
      Send(0, out, 10 + i);
    } else {
      SendImmediate(0, out, 10 + i, 1000 + i);
    }
  }
  AwaitAll();
  EXPECT_EQ(kinds_, std::vector{wire::MessageKind::kBundle});
  for (uint64_t i = 0; i < 8; ++i) {
    const Completion* completion = Done(1, receives[i]);
    EXPECT_EQ(completion->bytes, 20 + i);
    EXPECT_EQ(completion->tag, 10 + i);
    EXPECT_EQ(completion->has_immediate, i % 2 == 1);
    if (completion->has_immediate) {
      EXPECT_EQ(completion->immediate, 1000 + i);
    }
    EXPECT_EQ(FindDifference(in[i]->data(), 20 + i, i), 20 + i);
  }
}

TEST_F(BundlesTest, TheySucceedInTheirOrder) {
  PostSends(16, 50);
  PostReceives();
  AwaitSent();
  for (const uint32_t at : {0u, 1u}) {
    EXPECT_EQ(host(at).completions.size(), 16u);
    uint64_t last = 0;
    for (const Completion& completion : host(at).completions) {
      EXPECT_GT(completion.user_data, last) << "host " << at;
      last = completion.user_data;
    }
  }
}

TEST_F(BundlesTest, OneAloneWaitsForNoOther) {
  WatchKinds();
  for (int i = 0; i < 3; ++i) {
    PostSends(1, 64);
    PostReceives();
    AwaitSent();
  }
  EXPECT_EQ(kinds_, std::vector(3, wire::MessageKind::kSend));
}

TEST_F(BundlesTest, APacketTakesAsManyAsItHasRoomFor) {
  std::vector<uint32_t> bytes;
  HookData([&](const wire::DataHeader& header, NetworkPacket& packet, Fate&) {
    EXPECT_EQ(header.length, packet.payload_bytes);
    bytes.push_back(packet.payload_bytes);
  });
  PostSends(30, 64);
  PostReceives();
  AwaitSent();
  EXPECT_EQ(bytes, (std::vector<uint32_t>{13 * 76, 13 * 76, 4 * 76})) << "76 bytes each, 1024 at most";
}

TEST_F(BundlesTest, APacketTakesNoMoreWhereASegmentIsLonger) {
  WorldOptions options;
  options.packet_capabilities.max_packet_bytes = 20'000;
  Start(options);
  std::vector<uint32_t> bytes;
  HookData([&](const wire::DataHeader&, NetworkPacket& packet, Fate&) { bytes.push_back(packet.payload_bytes); });
  PostSends(100, 64);
  PostReceives();
  AwaitSent();
  EXPECT_EQ(bytes, (std::vector<uint32_t>{53 * 76, 47 * 76})) << "76 bytes each, 4096 at most";
}

// What is long, empty, announced, or no send goes alone, and what is behind it does not pass it.
TEST_F(BundlesTest, OthersGoAlone) {
  WatchKinds();
  const RemoteMemory remote = Export(1, NewBuffer(64), kRemoteWrite);
  PostSends(2, 64);
  PostSends(1, kSegment);
  PostSends(2, 64);
  PostSends(1, 0);
  PostSends(2, 64);
  Write(0, NewFilled(64, 1), remote);
  PostSends(2, 64);
  PostReceives();
  AwaitSent();
  using enum wire::MessageKind;
  EXPECT_EQ(kinds_, (std::vector{kBundle, kSend, kBundle, kBundle, kWrite, kBundle}));
}

// Their numbers do not follow each other: that of what waits in another queue is between them.
TEST_F(BundlesTest, SendsAroundALongWriteGoAlone) {
  WatchKinds();
  GuardedBuffer& written = NewBuffer(3 * kSegment);
  const RemoteMemory remote = Export(1, written, kRemoteWrite);
  PostSends(1, 64);
  Write(0, NewFilled(3 * kSegment, 9), remote);
  PostSends(1, 64);
  PostReceives();
  AwaitSent();
  using enum wire::MessageKind;
  EXPECT_EQ(kinds_, (std::vector{kSend, kSend, kWrite, kWrite, kWrite}));
  EXPECT_TRUE(written.Holds(9));
}

TEST_F(BundlesTest, ASendThatIsToMeetItsReceiveGoesAlone) {
  WatchKinds();
  PostSends(1, 64);
  GuardedBuffer& out = NewFilled(64, 7);
  Sent sent{.pattern = 7, .send = SendToReceive(0, out, 0), .out = &out};
  sent_.push_back(sent);
  PostSends(1, 64);
  PostReceives();
  AwaitSent();
  EXPECT_EQ(kinds_, std::vector(3, wire::MessageKind::kSend));
}

TEST_F(BundlesTest, APeerThatKnowsNoneGetsNone) {
  Start(Options(), false);
  a_ = endpoint(0).ReserveConnection();
  b_ = endpoint(1).ReserveConnection();
  endpoint(0).Establish(a_, {.peer_connection = b_, .addresses = {world().lane(1).address()}, .bundles = false}, now());
  endpoint(1).Establish(b_, {.peer_connection = a_, .addresses = {world().lane(0).address()}}, now());
  WatchKinds();
  PostSends(5, 64);
  PostReceives();
  AwaitSent();
  EXPECT_EQ(kinds_, std::vector(5, wire::MessageKind::kSend));
}

TEST_F(BundlesTest, ALostOneComesAgainWhole) {
  SendUnder([](const wire::DataHeader&, NetworkPacket&, Fate& fate) { fate.drop = true; });
  EXPECT_EQ(endpoint(0).counters().retransmits, 1u);
  EXPECT_EQ(endpoint(1).counters().rx_duplicates, 0u);
}

TEST_F(BundlesTest, ATrimmedOneComesAgain) {
  SendUnder([](const wire::DataHeader&, NetworkPacket& packet, Fate&) { packet.Trim(); });
  EXPECT_EQ(endpoint(0).counters().lost_trimmed, 1u);
  EXPECT_EQ(endpoint(0).counters().retransmits, 1u);
}

TEST_F(BundlesTest, ADamagedOneComesAgain) {
  SendUnder([](const wire::DataHeader&, NetworkPacket& packet, Fate&) { packet.bytes.back() ^= 1; });
  EXPECT_EQ(endpoint(1).counters().rx_bad_checksum, 1u);
  EXPECT_EQ(endpoint(0).counters().retransmits, 1u);
}

TEST_F(BundlesTest, OneThatComesTwiceIsTakenOnce) {
  SendUnder([](const wire::DataHeader&, NetworkPacket&, Fate& fate) { fate.copies = 2; });
  EXPECT_EQ(endpoint(1).counters().rx_duplicates, 1u);
  EXPECT_EQ(endpoint(0).counters().retransmits, 0u);
}

// It is found lost and its messages go again; then the first copy arrives, before the second or behind it.
TEST_F(BundlesTest, OneThatComesLateIsTakenOnce) {
  for (const Duration late : {Duration::Micros(30), Duration::Micros(45)}) {
    sent_.clear();
    Start(Options());
    SendUnder([late](const wire::DataHeader&, NetworkPacket&, Fate& fate) {
      fate.extra_delay = late;
      fate.overtake = true;
    });
    world().RunFor(Duration::Millis(1));
    EXPECT_EQ(endpoint(0).counters().retransmits, 1u) << late.nanos();
    EXPECT_EQ(endpoint(0).counters().spurious_retransmits, 1u) << late.nanos();
    EXPECT_EQ(endpoint(0).counters().operations_failed, 0u);
    EXPECT_EQ(endpoint(1).counters().rx_duplicates, 1u) << "packets";
  }
}

// Then the second copy is not missed.
TEST_F(BundlesTest, OneThatComesLateIsEnough) {
  HookData([seen = 0](const wire::DataHeader& header, NetworkPacket&, Fate& fate) mutable {
    if (header.kind != wire::MessageKind::kBundle) return;
    ++seen;
    if (seen == 1) fate.extra_delay = Duration::Micros(45);
    fate.overtake = true;
    fate.drop = seen == 2;
  });
  SendTwentyTwo();
  world().RunFor(Duration::Millis(10));
  EXPECT_EQ(endpoint(0).counters().retransmits, 1u);
  EXPECT_EQ(endpoint(1).counters().rx_duplicates, 0u);
}

// Of a packet with one send that makes no sense none is taken.
TEST_F(BundlesTest, OneWithASendThatMakesNoSenseIsNotTaken) {
  const auto change = [](const std::function<void(std::vector<uint8_t>&)>& how) {
    return [how](wire::DataHeader header, NetworkPacket& packet, Fate&) {
      std::vector<uint8_t> payload(packet.bytes.begin() + packet.header_bytes, packet.bytes.end());
      how(payload);
      header.flags |= wire::kNoPayloadCrc;
      header.length = payload.size();
      std::array<uint8_t, limits::kMaxControlBytes> bytes;
      packet.header_bytes = static_cast<uint32_t>(wire::EncodeData(header, bytes));
      packet.bytes.assign(bytes.begin(), bytes.begin() + packet.header_bytes);
      packet.bytes.insert(packet.bytes.end(), payload.begin(), payload.end());
      packet.payload_bytes = static_cast<uint32_t>(payload.size());
    };
  };
  const std::vector<std::function<void(std::vector<uint8_t>&)>> ways = {
      [](std::vector<uint8_t>& payload) { payload.pop_back(); },                // the last one is cut
      [](std::vector<uint8_t>& payload) { payload.push_back(0); },              // something behind it
      [](std::vector<uint8_t>& payload) { payload[payload.size() - 62] = 0; },  // the last one is empty
      [](std::vector<uint8_t>& payload) { payload[2] = 0x80; },                 // no such flag
      [](std::vector<uint8_t>& payload) {                                       // longer than a segment
        const std::vector<uint8_t> more(100);
        payload.resize(payload.size() + wire::BundledBytes(more.size(), false));
        wire::WriteBundled({.data = more}, &payload[payload.size() - wire::BundledBytes(more.size(), false)]);
      },
  };
  for (const auto& way : ways) {
    sent_.clear();
    Start(Options());
    SendUnder(change(way));
    EXPECT_EQ(endpoint(1).counters().rx_malformed, 1u);
    EXPECT_EQ(endpoint(1).counters().rx_duplicates, 0u);
    EXPECT_EQ(endpoint(0).counters().retransmits, 1u);
  }
}

// Sends that nobody waits for, more than there is a store for: some of a packet are taken, the others put off.
TEST_F(BundlesTest, SomeOfAPacketArePutOff) {
  WorldOptions options = Options();
  options.endpoint.unexpected_bytes = 10 * (sizeof(RxMessage) + 64);
  Start(options);
  PostSends(50, 64);
  world().RunFor(Duration::Millis(2));
  EXPECT_GT(endpoint(1).counters().not_ready_sent, 0u);
  EXPECT_EQ(endpoint(1).counters().unexpected_messages, 50u);
  const uint64_t sent = endpoint(0).counters().tx_data_packets;
  world().RunFor(Duration::Millis(50));
  EXPECT_EQ(endpoint(0).counters().tx_data_packets, sent) << "what was put off waits to be cleared";
  PostReceives();
  AwaitSent();
}

TEST_F(BundlesTest, TheConnectionEndsWithSomeUnderWay) {
  network().SetHook([](NetworkPacket&, Fate& fate) { fate.drop = true; });
  PostSends(40, 64);
  world().RunFor(Duration::Micros(50));
  endpoint(0).Abort(a_, now());
  AwaitAll();
}

// Whatever the network does.
class BundlesAnywhereTest : public BundlesFixture, public testing::WithParamInterface<CoreSetup> {
 protected:
  // What a send has completed of is the application's again, which writes something else there.
  void SpoilWhatIsSent() {
    host(0).on_completion = [this, keep = host(0).on_completion](const Completion& completion) {
      keep(completion);
      for (const Sent& sent : sent_) {
        if (sent.send == completion.user_data) sent.out->Fill(~sent.pattern);
      }
    };
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, BundlesAnywhereTest, testing::ValuesIn(AllCoreSetups()), CoreSetupName);

TEST_P(BundlesAnywhereTest, SmallSendsArriveOnceAndInOrder) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sent_.clear();
    WorldOptions options = Options(GetParam());
    if (seed % 3 == 0) options.endpoint.unexpected_bytes = 20 * (sizeof(RxMessage) + 64);
    Start(options);
    SpoilWhatIsSent();
    Random random(seed);
    network().SetHook([&random](NetworkPacket& packet, Fate& fate) {
      fate.drop = random.Below(10) == 0;
      fate.copies = random.Below(10) == 0 ? 2 : 1;
      if (random.Below(10) == 0) {
        fate.extra_delay = Duration::Micros(static_cast<int64_t>(random.Below(40)));
        fate.overtake = packet.kind == SegmentKind::kPacket;
      }
    });
    for (int round = 0; round < 20; ++round) {
      PostSends(1 + random.Below(30), 1 + random.Below(200));
      if (random.Below(3) == 0) PostSends(1, 1 + random.Below(40'000));
      if (random.Below(2) == 0) PostReceives();
      world().RunFor(Duration::Micros(static_cast<int64_t>(random.Below(20))));
    }
    PostReceives();
    AwaitSent();
  }
}

}  // namespace
}  // namespace paceline::support
