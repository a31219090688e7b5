// Send and receive: sizes, matching, unexpected messages, truncation, immediates. On every kind of lane.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/base/random.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

class MessagingTest : public CoreSetupTest {};
INSTANTIATE_TEST_SUITE_P(Setups, MessagingTest, testing::ValuesIn(AllCoreSetups()), CoreSetupName);

// However short it is, it is complete when it has met its receive and not before; others behind it are not held up.
TEST_P(MessagingTest, ASendToAReceiveWaitsForIt) {
  for (const size_t bytes : {size_t{1}, size_t{1000}, size_t{100'000}}) {
    const uint64_t send = SendToReceive(0, NewFilled(bytes, 3), 5);
    Exchange(0, 500, 6);
    world().RunFor(Duration::Millis(20));
    EXPECT_EQ(Done(0, send), nullptr) << bytes;
    GuardedBuffer& in = NewBuffer(bytes);
    AwaitOk(1, Receive(1, in, 5));
    EXPECT_TRUE(in.Holds(3));
    AwaitOk(0, send);
  }
  AwaitOk(0, SendToReceive(0, NewBuffer(0), 7));  // nothing to wait for
}

TEST_P(MessagingTest, SizesAroundEveryBorder) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{7}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{8191}, size_t{8192},
        size_t{8193}, size_t{16383}, size_t{16384}, size_t{16385}, size_t{100'000}}) {
    Exchange(0, bytes, 1);
    Exchange(1, bytes, 2);
  }
}

TEST_P(MessagingTest, SeveralMegabytes) { Exchange(0, 3 * 1024 * 1024 + 17); }

TEST_P(MessagingTest, SizesAroundEveryBorderBeforeTheReceiveIsPosted) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{4096}, size_t{4097}, size_t{16384}, size_t{16385}, size_t{500'000}}) {
    GuardedBuffer& out = NewFilled(bytes, bytes);
    const uint64_t send = Send(0, out, 5);
    world().RunFor(Duration::Millis(1));
    GuardedBuffer& in = NewBuffer(bytes);
    const uint64_t receive = Receive(1, in, 5);
    AwaitOk(1, receive);
    AwaitOk(0, send);
    EXPECT_TRUE(in.Holds(bytes)) << bytes;
  }
}

TEST_P(MessagingTest, AcknowledgementsRideOnAnswers) {
  if (GetParam().control == TestControl::kCredit) GTEST_SKIP() << "demands and grants take packets of their own";
  Exchange(0, 64);
  Exchange(1, 64);
  world().RunFor(Duration::Millis(1));
  const uint64_t before = network().packets_sent();
  constexpr uint64_t kRounds = 100;
  for (uint64_t i = 0; i < kRounds; ++i) {
    for (const uint32_t from : {0u, 1u}) {
      const uint64_t receive = Receive(1 - from, NewBuffer(64), i);
      Send(from, NewFilled(64, i), i);
      AwaitOk(1 - from, receive);
    }
  }
  AwaitAll();
  EXPECT_LE(network().packets_sent() - before, 2 * kRounds + 4);
}

// Where senders ask for the acknowledgements that they wait for, those come at once and the others wait for long.
class PromptAcksTest : public CoreFixture {
 protected:
  void SetUp() override {
    WorldOptions options;
    options.endpoint.prompt_acks = true;
    options.endpoint.last_ack_delay = Duration::Millis(5);
    Start(options);
  }
  // How long a send that meets a receive takes.
  Duration TimeOf(size_t bytes, bool awaited) {
    Receive(1, NewBuffer(bytes), 1);
    GuardedBuffer& out = NewFilled(bytes, 1);
    const Time start = now();
    AwaitOk(0, awaited ? Send(0, out, 1) : SendUnawaited(0, out, 1));
    return now() - start;
  }
};

TEST_F(PromptAcksTest, WhoWaitsIsAnsweredAtOnceAndWhoDoesNotIsNot) {
  for (const size_t bytes : {size_t{0}, size_t{64}, size_t{4000}, size_t{14'000}}) {
    EXPECT_LT(TimeOf(bytes, true), Duration::Millis(1)) << bytes;
    EXPECT_GE(TimeOf(bytes, false), Duration::Millis(5)) << bytes;
  }
  EXPECT_EQ(endpoint(0).counters().tail_probes, 0u);
}

// What goes before the last packet of an answer has one size, and so leaves at once, also where each has room for more.
TEST_F(PromptAcksTest, AcknowledgementsRideOnTheLastPacketOfAnAnswer) {
  WorldOptions options;
  options.endpoint.prompt_acks = true;
  options.endpoint.last_ack_delay = Duration::Millis(5);
  options.customize_lane = [lanes = 0](uint32_t, LaneCapabilities& lane) mutable {
    if (lanes++ == 1) lane.max_packet_bytes += 256;  // of host 1; the shorter ones of host 0 decide on the segments
  };
  Start(options);
  network().StartCapture();
  for (uint64_t i = 0; i < 20; ++i) {
    for (const uint32_t from : {0u, 1u}) {
      const uint64_t receive = Receive(1 - from, NewBuffer(14'000), i);
      SendUnawaited(from, NewFilled(14'000, i), i);
      AwaitOk(1 - from, receive);
    }
  }
  uint32_t riding = 0, longest = 0;
  for (const NetworkPacket& packet : network().captured()) longest = std::max(longest, packet.payload_bytes);
  for (const NetworkPacket& packet : network().captured()) {
    if ((packet.bytes[1] & wire::kHasFrames) == 0) continue;
    ++riding;
    EXPECT_LT(packet.payload_bytes, longest);
  }
  EXPECT_GE(riding, 38u);
}

TEST_P(MessagingTest, CompletionTellsLengthTagAndImmediate) {
  GuardedBuffer& out = NewFilled(5000, 1);
  GuardedBuffer& in = NewBuffer(9000);
  const uint64_t receive = Receive(1, in, 0x12);
  const uint64_t send = SendImmediate(0, out, 0x12, 0xfeedfacecafebeef);
  AwaitOk(0, send);
  const Completion completion = Await(1, receive);
  EXPECT_EQ(completion.operation, Operation::kReceive);
  EXPECT_EQ(completion.status, OperationStatus::kOk);
  EXPECT_EQ(completion.connection, connection(1));
  EXPECT_EQ(completion.bytes, 5000u);
  EXPECT_EQ(completion.tag, 0x12u);
  EXPECT_TRUE(completion.has_immediate);
  EXPECT_EQ(completion.immediate, 0xfeedfacecafebeefu);
  EXPECT_TRUE(in.HoldsFirst(5000, 1));
  EXPECT_TRUE(in.Untouched(5000));
  EXPECT_EQ(Done(0, send)->operation, Operation::kSend);
  EXPECT_EQ(Done(0, send)->bytes, 5000u);
}

TEST_P(MessagingTest, SameTagMatchesInPostingOrder) {
  constexpr size_t kMessages = 40;
  std::vector<GuardedBuffer*> in;
  std::vector<uint64_t> receives, sends;
  for (size_t i = 0; i < kMessages; ++i) {
    in.push_back(&NewBuffer(30'000));
    receives.push_back(Receive(1, *in.back(), 3));
  }
  for (size_t i = 0; i < kMessages; ++i) sends.push_back(Send(0, NewFilled(100 + i * 700, i), 3));
  AwaitAll();
  for (size_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(Done(1, receives[i])->bytes, 100 + i * 700);
    EXPECT_TRUE(in[i]->HoldsFirst(100 + i * 700, i)) << i;
  }
}

TEST_P(MessagingTest, OtherTagsDoNotStandInTheWay) {
  GuardedBuffer& first = NewFilled(50'000, 1);
  const uint64_t large = Send(0, first, 1);  // nobody receives it yet
  Exchange(0, 100, 2);
  Exchange(0, 100'000, 3);
  EXPECT_EQ(Done(0, large), nullptr);
  GuardedBuffer& in = NewBuffer(50'000);
  AwaitOk(1, Receive(1, in, 1));
  AwaitOk(0, large);
  EXPECT_TRUE(in.Holds(1));
}

TEST_P(MessagingTest, IgnoredTagBitsMatchAnything) {
  GuardedBuffer& any = NewBuffer(100);
  GuardedBuffer& low = NewBuffer(100);
  const uint64_t receive_low = Receive(1, low, 0x0100, 0xff);
  const uint64_t receive_any = Receive(1, any, 0, ~uint64_t{0});
  Send(0, NewFilled(100, 1), 0x0200);
  Send(0, NewFilled(100, 2), 0x0155);
  AwaitAll();
  EXPECT_EQ(Done(1, receive_low)->tag, 0x0155u);
  EXPECT_EQ(Done(1, receive_any)->tag, 0x0200u);
  EXPECT_TRUE(low.Holds(2));
  EXPECT_TRUE(any.Holds(1));
}

TEST_P(MessagingTest, AWildcardTakesMessagesInTheOrderInWhichTheyWereSent) {
  constexpr size_t kMessages = 30;
  std::vector<uint64_t> receives;
  for (size_t i = 0; i < kMessages; ++i) receives.push_back(Receive(1, NewBuffer(40'000), 0, ~uint64_t{0}));
  for (size_t i = 0; i < kMessages; ++i) Send(0, NewFilled(i % 3 == 0 ? 40'000 : 64, i), 1000 + i);
  AwaitAll();
  for (size_t i = 0; i < kMessages; ++i) EXPECT_EQ(Done(1, receives[i])->tag, 1000 + i);
}

TEST_P(MessagingTest, TheOldestReceiveThatMatchesIsTaken) {
  const uint64_t wildcard = Receive(1, NewBuffer(64), 0, ~uint64_t{0});
  const uint64_t exact = Receive(1, NewBuffer(64), 7);
  Send(0, NewFilled(64, 1), 7);
  AwaitOk(1, wildcard);
  EXPECT_EQ(Done(1, exact), nullptr);
  Send(0, NewFilled(64, 2), 7);
  AwaitOk(1, exact);
}

TEST_P(MessagingTest, UnexpectedMessagesKeepTheirOrder) {
  for (size_t i = 0; i < 20; ++i) Send(0, NewFilled(i % 2 == 0 ? 200 : 60'000, i), i % 3);
  world().RunFor(Duration::Millis(5));
  std::vector<std::pair<uint64_t, size_t>> receives;
  for (size_t tag = 0; tag < 3; ++tag) {
    for (size_t i = tag; i < 20; i += 3) receives.push_back({Receive(1, NewBuffer(60'000), tag), i});
  }
  AwaitAll();
  for (const auto& [receive, i] : receives) EXPECT_EQ(Done(1, receive)->bytes, i % 2 == 0 ? 200u : 60'000u) << i;
}

TEST_P(MessagingTest, TruncationKeepsTheFirstBytes) {
  for (const size_t bytes : {size_t{1}, size_t{4097}, size_t{16'384}, size_t{100'000}}) {
    for (const size_t room : {size_t{0}, bytes / 2, bytes - 1}) {
      GuardedBuffer& in = NewBuffer(room);
      const uint64_t receive = Receive(1, in, 9);
      const uint64_t send = Send(0, NewFilled(bytes, bytes), 9);
      const Completion completion = Await(1, receive);
      EXPECT_EQ(completion.status, OperationStatus::kTruncated) << bytes << " into " << room;
      EXPECT_EQ(completion.bytes, bytes);
      EXPECT_TRUE(in.Holds(bytes)) << bytes << " into " << room;
      AwaitOk(0, send);
    }
  }
  Exchange(0, 1000, 9);
}

TEST_P(MessagingTest, TruncationOfAnUnexpectedMessage) {
  const uint64_t send = Send(0, NewFilled(10'000, 4), 9);
  world().RunFor(Duration::Millis(1));
  GuardedBuffer& in = NewBuffer(5000);
  const Completion completion = Await(1, Receive(1, in, 9));
  EXPECT_EQ(completion.status, OperationStatus::kTruncated);
  EXPECT_EQ(completion.bytes, 10'000u);
  EXPECT_TRUE(in.Holds(4));
  AwaitOk(0, send);
}

TEST_P(MessagingTest, BothWaysAtOnceInRandomInterleaving) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    struct Expected {
      uint64_t receive;
      GuardedBuffer* buffer;
      uint64_t pattern;
      size_t bytes;
    };
    std::vector<Expected> expected;
    for (uint32_t to = 0; to < 2; ++to) {
      // The same messages in the same order per tag on both sides, posted in any interleaving.
      std::vector<size_t> sizes;
      for (int i = 0; i < 30; ++i) sizes.push_back(random.Below(random.Chance(0.3) ? 80'000 : 3000));
      size_t sent = 0, posted = 0;
      while (sent < sizes.size() || posted < sizes.size()) {
        if (sent < sizes.size() && (posted == sizes.size() || random.Chance(0.5))) {
          Send(1 - to, NewFilled(sizes[sent], seed * 1000 + to * 100 + sent), 4);
          ++sent;
        } else {
          GuardedBuffer& in = NewBuffer(sizes[posted]);
          expected.push_back({Receive(to, in, 4), &in, seed * 1000 + to * 100 + posted, sizes[posted]});
          ++posted;
        }
        if (random.Chance(0.2)) world().RunFor(Duration::Micros(static_cast<int64_t>(random.Below(50))));
      }
    }
    AwaitAll();
    for (const Expected& one : expected) EXPECT_TRUE(one.buffer->Holds(one.pattern)) << "seed " << seed;
  }
}

TEST_P(MessagingTest, ASmallMessageIsNotStuckBehindAnUnmatchedLargeOne) {
  Send(0, NewFilled(1'000'000, 1), 1);
  Exchange(0, 8, 2);
  Receive(1, NewBuffer(1'000'000), 1);
  AwaitAll();
}

TEST_P(MessagingTest, ManyConnectionsBetweenTwoHosts) {
  std::vector<std::pair<ConnectionId, ConnectionId>> connections;
  for (int i = 0; i < 20; ++i) connections.push_back(world().Establish(0, 1));
  const auto first = std::pair(a_, b_);
  for (auto pair : connections) {
    std::tie(a_, b_) = pair;
    Exchange(0, 20'000);
    Exchange(1, 64);
  }
  std::tie(a_, b_) = first;
  Exchange(0, 64);
}

TEST_P(MessagingTest, ALaneThatTakesOneSegmentAtATime) {
  for (uint32_t i = 0; i < 2; ++i) {
    for (uint32_t port = 0; port < GetParam().ports; ++port) world().lane(i, port).set_room(1);
  }
  Exchange(0, 300'000);
  Exchange(1, 300'000);
}

// What a send's completion means: the receiver's core holds every byte.
TEST_P(MessagingTest, ALargeSendCompletesOnlyWithItsReceive) {
  const uint64_t send = Send(0, NewFilled(200'000, 1), 1);
  world().RunFor(Duration::Millis(100));
  EXPECT_EQ(Done(0, send), nullptr);
  GuardedBuffer& in = NewBuffer(200'000);
  const uint64_t receive = Receive(1, in, 1);
  world().RunUntil([&] { return Done(0, send) != nullptr; });
  ASSERT_NE(Done(0, send), nullptr);
  EXPECT_NE(Done(1, receive), nullptr);
  EXPECT_TRUE(in.Holds(1));
}

// The sender may write into its buffer again as soon as it has the completion.
TEST_P(MessagingTest, TheBufferMayBeReusedAtTheCompletion) {
  GuardedBuffer& out = NewBuffer(20'000);
  std::vector<std::pair<GuardedBuffer*, uint64_t>> received;
  for (uint64_t i = 0; i < 20; ++i) {
    out.Fill(i);
    GuardedBuffer& in = NewBuffer(20'000);
    Receive(1, in, 1);
    received.push_back({&in, i});
    AwaitOk(0, Send(0, out, 1));
    out.Poison();
  }
  AwaitAll();
  for (const auto& [buffer, i] : received) EXPECT_TRUE(buffer->Holds(i));
}

}  // namespace
}  // namespace paceline::support
