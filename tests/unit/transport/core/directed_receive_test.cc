// Receives of a queue that name their source: long messages to them need no announcement, and credit stands ready, as
// for receives on the connection; and they count no longer than they stand there, and for nobody else.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cc/registry.h"
#include "tests/unit/transport/core/receive_queue_fixture.h"
#include "transport/base/random.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr size_t kLong = 100'000;  // more than a send that goes without asking
constexpr uint64_t kAnyTag = ~uint64_t{0};

class DirectedFixture : public ReceiveQueueFixture {
 protected:
  static WorldOptions Options(TestControl control) {
    WorldOptions options;
    options.control = control;
    return options;
  }
  OperationId PostFrom(Source source, size_t bytes = kLong, uint64_t tag = 0) {
    return Post({.buffer = Into(NewBuffer(bytes)), .tag = tag, .source = source});
  }
  void NameAs(uint32_t from, Source source) {
    endpoint(2).SetSource(in_[from], source, now());
    host(2).Touch();
  }
  // Sends that asked before they came, each counted once unless the packet was sent again.
  uint64_t Announcements() {
    uint64_t count = 0;
    for (const NetworkPacket& packet : network().captured()) {
      if (packet.kind != SegmentKind::kPacket || packet.payload_bytes > 0) continue;
      bool bad_checksum = false;
      const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
      if (!common.has_value() || common->type != wire::PacketType::kData) continue;
      const auto header = wire::ParseData(*common, packet.bytes);
      count += header.has_value() && header->kind == wire::MessageKind::kSend && header->length > 0;
    }
    return count;
  }
  // What host 2 has told its allocator that it wants, with what has come.
  uint64_t demand_end() { return host(2).control().demand_end; }
};

class DirectedReceiveTest : public DirectedFixture, public testing::WithParamInterface<CoreSetup> {
 protected:
  void SetUp() override { StartQueue(OptionsFor(GetParam())); }
  // A placing card must be told each address.
  uint64_t announced_always() const { return GetParam().lanes == LaneKind::kHca ? 1 : 0; }
};
INSTANTIATE_TEST_SUITE_P(Setups, DirectedReceiveTest, testing::ValuesIn(AllCoreSetups()), CoreSetupName);

TEST_P(DirectedReceiveTest, ALongMessageToOneThatStandsReadyIsNotAnnounced) {
  Name(0);
  GuardedBuffer& in = NewBuffer(300'000);
  Post({.buffer = Into(in), .tag = 4, .source = kNames[0]});
  Settle();
  network().StartCapture();
  SendFrom(0, NewFilled(300'000, 8), 4);
  EXPECT_EQ(Take().bytes, 300'000u);
  EXPECT_TRUE(in.Holds(8));
  EXPECT_EQ(Announcements(), announced_always());
  EXPECT_EQ(endpoint(2).counters().unexpected_messages, 0u);
}

TEST_P(DirectedReceiveTest, NorToOneThatStoodThereBeforeItsSourceWasNamed) {
  GuardedBuffer& in = NewBuffer(300'000);
  Post({.buffer = Into(in), .tag = 4, .source = kNames[0]});
  Settle();
  Name(0);
  Settle();
  network().StartCapture();
  SendFrom(0, NewFilled(300'000, 8), 4);
  Take();
  EXPECT_TRUE(in.Holds(8));
  EXPECT_EQ(Announcements(), announced_always());
}

// Who connects names the peer at once; it counts when the connection is up.
TEST_P(DirectedReceiveTest, NorToOneThatStoodThereBeforeItsConnection) {
  GuardedBuffer& in = NewBuffer(300'000);
  Post({.buffer = Into(in), .tag = 4, .source = 80});
  const uint32_t listener = endpoint(0).Listen();
  const ConnectionId here =
      endpoint(2).Connect(endpoint(0).listen_address(listener), now(), {.receives = queue_, .source = 80});
  host(2).Touch();
  ConnectionId there = kNoConnection;
  ASSERT_TRUE(world().RunUntil([&] {
    for (const ConnectionEvent& event : host(0).events) {
      if (event.kind == ConnectionEventKind::kEstablished && event.listener == listener) there = event.connection;
    }
    return there != kNoConnection;
  }));
  Settle();
  network().StartCapture();
  GuardedBuffer& out = NewFilled(300'000, 8);
  ASSERT_EQ(endpoint(0).PostSend(there, {.buffer = Into(out), .tag = 4}, now()), PostResult::kOk);
  host(0).Touch();
  EXPECT_EQ(Take().connection, here);
  EXPECT_TRUE(in.Holds(8));
  EXPECT_EQ(Announcements(), announced_always());
}

// Receives and messages of all kinds in every order: what is cleared too early or too late arrives all the same.
TEST_P(DirectedReceiveTest, EveryMessageMeetsItsReceiveInWhateverOrder) {
  Random random(3);
  Name(0);
  struct Expected {
    GuardedBuffer* buffer;
    uint64_t pattern;
  };
  std::vector<Expected> expected;
  std::vector<std::function<void()>> steps;
  for (uint64_t i = 0; i < 60; ++i) {
    const auto from = static_cast<uint32_t>(random.Below(2));
    const size_t bytes = random.Chance(0.5) ? 60'000 : 20;
    expected.push_back({&NewBuffer(bytes), i});
    steps.emplace_back([=, this] { SendFrom(from, NewFilled(bytes, i), i); });
    const Source source = random.Chance(0.8) ? kNames[from] : kAnySource;
    steps.emplace_back(
        [=, this, in = expected.back().buffer] { Post({.buffer = Into(*in), .tag = i, .source = source}); });
  }
  for (size_t i = steps.size(); i > 1; --i) std::swap(steps[i - 1], steps[random.Below(i)]);
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i]();
    if (i == steps.size() / 2) Name(1);
    if (random.Chance(0.3)) world().RunFor(Duration::Micros(static_cast<int64_t>(random.Below(40))));
  }
  EXPECT_TRUE(world().RunUntil([&] { return got_.size() == expected.size(); }, Duration::Seconds(5))) << got_.size();
  for (const Expected& one : expected) EXPECT_TRUE(one.buffer->Holds(one.pattern)) << one.pattern;
}

// Its receiver waits for the peer, so it asks soon whether it is there: not only after 30 s, as of an idle connection.
TEST_P(DirectedReceiveTest, ALostPeerIsNoticedByWhoWaitsForIt) {
  std::vector<ConnectionId> lost;
  host(2).on_event = [&](const ConnectionEvent& event) {
    if (event.kind == ConnectionEventKind::kClosed) lost.push_back(event.connection);
  };
  Name(0);
  Name(1);
  PostFrom(kNames[0], 100);
  world().RunFor(Duration::Seconds(5));  // nobody has anything to do
  PostFrom(kNames[1], 100);
  host(0).Freeze();
  host(1).Freeze();
  world().RunFor(Duration::Seconds(13));
  EXPECT_EQ(lost.size(), 2u);
}

// ---- the limit

// However a receive ends, it leaves no room in the limit for another send.
TEST_F(DirectedFixture, WhatStandsReadyNoMoreRaisesNoLimit) {
  const std::function<void()> ends[] = {
      [&] { EXPECT_TRUE(endpoint(2).CancelReceive(queue_, PostFrom(kNames[0]), now())); },
      [&] {
        PostFrom(kNames[0]);
        endpoint(2).FailReceivesFrom(queue_, kNames[0], OperationStatus::kPeerLost, now());
      },
      [&] {
        GuardedBuffer& in = NewBuffer(kLong);
        const RegionId region = endpoint(2).RegisterMemory(in.data(), in.size(), 0);
        Post({.buffer = {.data = in.data(), .bytes = in.size(), .region = region}, .source = kNames[0]});
        endpoint(2).DeregisterMemory(region, now());
      },
      [&] {
        PostFrom(kNames[0]);
        SendFrom(0, NewFilled(kLong, 1), 0);
        Take();
      },
  };
  for (const std::function<void()>& end : ends) {
    got_.clear();
    StartQueue(Options(TestControl::kWindow));
    Name(0);
    for (int i = 0; i < 3; ++i) end();
    Settle();
    got_.clear();
    PostFrom(kNames[0]);
    Settle();
    network().StartCapture();
    for (int i = 0; i < 2; ++i) SendFrom(0, NewFilled(kLong, 1), 0);
    Settle();
    EXPECT_EQ(got_.size(), 1u);
    EXPECT_EQ(Announcements(), 1u) << "way to end " << &end - ends;
  }
}

TEST_F(DirectedFixture, OthersRaiseNoLimit) {
  StartQueue(Options(TestControl::kCredit));
  Name(0);
  Settle();
  const uint64_t grants = endpoint(2).counters().grants_sent;
  PostFrom(kAnySource);
  PostFrom(kNames[1]);                                                                         // nobody's yet
  PostFrom(kNames[0], 100);                                                                    // needs no clearing
  Post({.buffer = Into(NewBuffer(kLong)), .tag = 1, .source = kNames[0], .min_free = kLong});  // for many
  Settle();
  EXPECT_EQ(endpoint(2).counters().grants_sent, grants);
  EXPECT_EQ(demand_end(), 0u);
  network().StartCapture();
  SendFrom(0, NewFilled(kLong, 1), 0);
  Settle();
  EXPECT_EQ(Announcements(), 1u);
}

// A send that waits to be cleared by name would take the count for itself: its own connection's limit stays, that of
// others does not.
TEST_F(DirectedFixture, AStoredSendKeepsOnlyItsOwnLimitDown) {
  StartQueue(Options(TestControl::kWindow));
  Name(0);
  Name(1);
  SendFrom(1, NewFilled(kLong, 9), 9);  // nobody receives it
  Settle();
  const uint64_t taken = endpoint(2).counters().rx_data_bytes;
  PostFrom(kNames[0], kLong, 1);
  PostFrom(kNames[1], kLong, 1);
  Settle();
  EXPECT_EQ(endpoint(2).counters().rx_data_bytes, taken);
  network().StartCapture();
  SendFrom(0, NewFilled(kLong, 1), 1);
  Take();
  EXPECT_EQ(Announcements(), 0u);
  SendFrom(1, NewFilled(kLong, 1), 1);
  Take();
  EXPECT_EQ(Announcements(), 1u);
  EXPECT_EQ(endpoint(2).counters().rx_data_bytes, taken + 2 * kLong);
}

// Tags that nobody receives: the count lets the sends come, the store takes what it may hold, and the rest waits.
TEST_F(DirectedFixture, SendsOfOtherTagsDoNotFillMoreThanTheStore) {
  WorldOptions options = Options(TestControl::kWindow);
  options.endpoint.unexpected_bytes = 3 * kLong;
  StartQueue(options);
  Name(0);
  for (int i = 0; i < 16; ++i) PostFrom(kNames[0], kLong, 1);
  Settle();
  size_t stored = 0;
  host(0).on_completion = [&](const Completion&) { ++stored; };
  for (uint64_t i = 0; i < 16; ++i) SendFrom(0, NewFilled(kLong, i), 2);
  world().RunFor(Duration::Seconds(1));
  EXPECT_EQ(stored, 2u);  // with what is charged beside the payload
  EXPECT_GT(endpoint(2).counters().not_ready_sent, 0u);
  EXPECT_TRUE(got_.empty());
  std::vector<GuardedBuffer*> in;
  for (uint64_t i = 0; i < 16; ++i) {
    in.push_back(&NewBuffer(kLong));
    Post({.buffer = Into(*in.back()), .tag = 2});
  }
  for (uint64_t i = 0; i < 16; ++i) SendFrom(0, NewFilled(kLong, 50), 1);
  EXPECT_TRUE(world().RunUntil([&] { return got_.size() == 32 && stored == 32; }));
  for (uint64_t i = 0; i < 16; ++i) EXPECT_TRUE(in[i]->Holds(i)) << i;
}

// Without a store (ContextOptions::matched_sends) a completed send has met its receive, also one that came by count.
TEST_F(DirectedFixture, WithoutAStoreASendStillCompletesOnlyWithItsReceive) {
  WorldOptions options = Options(TestControl::kWindow);
  options.endpoint.eager_bytes = 0;
  options.endpoint.unexpected_bytes = 0;
  StartQueue(options);
  Name(0);
  PostFrom(kNames[0], kLong, 1);
  Settle();
  size_t sent = 0;
  host(0).on_completion = [&](const Completion&) { ++sent; };
  network().StartCapture();
  SendFrom(0, NewFilled(kLong, 2), 2);
  world().RunFor(Duration::Millis(100));
  EXPECT_EQ(Announcements(), 0u);  // it came by count
  EXPECT_EQ(sent, 0u);
  SendFrom(0, NewFilled(kLong, 1), 1);
  EXPECT_EQ(Take().tag, 1u);
  EXPECT_TRUE(world().RunUntil([&] { return sent == 1; }));
  GuardedBuffer& in = NewBuffer(kLong);
  Post({.buffer = Into(in), .tag = 2});
  Take();
  EXPECT_TRUE(in.Holds(2));
  EXPECT_TRUE(world().RunUntil([&] { return sent == 2; }));
}

// What goes unasked and finds no receive is put off, and not acknowledged until it has met one.
TEST_F(DirectedFixture, WithoutAStoreAnEagerSendCompletesOnlyWithItsReceive) {
  WorldOptions options = Options(TestControl::kWindow);
  options.endpoint.unexpected_bytes = 0;
  StartQueue(options);
  Name(0);
  size_t sent = 0;
  host(0).on_completion = [&](const Completion&) { ++sent; };
  network().StartCapture();
  for (const size_t bytes : {1u, 64u, 10'000u}) SendFrom(0, NewFilled(bytes, static_cast<uint8_t>(bytes)), bytes);
  world().RunFor(Duration::Millis(100));
  EXPECT_EQ(Announcements(), 0u);
  EXPECT_EQ(sent, 0u);
  EXPECT_GT(endpoint(2).counters().not_ready_sent, 0u);
  for (const size_t bytes : {10'000u, 1u, 64u}) {
    GuardedBuffer& in = NewBuffer(bytes);
    Post({.buffer = Into(in), .tag = bytes});
    EXPECT_EQ(Take().bytes, bytes);
    EXPECT_TRUE(in.Holds(static_cast<uint8_t>(bytes)));
  }
  EXPECT_TRUE(world().RunUntil([&] { return sent == 3; }));
  PostFrom(kNames[0], 64, 4);
  SendFrom(0, NewFilled(64, 8), 4);
  Take();
  EXPECT_EQ(Announcements(), 0u) << "its receive stood ready";
}

// Where all sends ask, however short, they are told of each receive that stands ready.
TEST_F(DirectedFixture, WhereAllAskAShortSendToOneThatStandsReadyIsNotAnnounced) {
  WorldOptions options = Options(TestControl::kWindow);
  options.endpoint.eager_bytes = 0;
  options.endpoint.unexpected_bytes = 0;
  StartQueue(options);
  Name(0);
  GuardedBuffer& in = NewBuffer(64);
  Post({.buffer = Into(in), .tag = 4, .source = kNames[0]});
  Settle();
  network().StartCapture();
  SendFrom(0, NewFilled(64, 8), 4);
  EXPECT_EQ(Take().bytes, 64u);
  EXPECT_TRUE(in.Holds(8));
  EXPECT_EQ(Announcements(), 0u);
  SendFrom(0, NewFilled(64, 9), 4);
  Settle();
  EXPECT_EQ(Announcements(), 1u) << "no receive stood ready for the second";
}

// ---- bytes ahead

TEST_F(DirectedFixture, TheAllocatorHearsOfWhatComesToStandReadyAndOfWhatDoesNoMore) {
  StartQueue(Options(TestControl::kCredit));
  Name(0);
  const OperationId first = PostFrom(kNames[0]);
  EXPECT_EQ(demand_end(), kLong);
  EXPECT_TRUE(endpoint(2).CancelReceive(queue_, first, now()));
  EXPECT_EQ(demand_end(), 0u);
  PostFrom(kNames[0]);
  PostFrom(kNames[0]);
  EXPECT_EQ(demand_end(), 2 * kLong);
  endpoint(2).FailReceivesFrom(queue_, kNames[0], OperationStatus::kPeerLost, now());
  EXPECT_EQ(demand_end(), 0u);
  GuardedBuffer& in = NewBuffer(kLong);
  const RegionId region = endpoint(2).RegisterMemory(in.data(), in.size(), 0);
  Post({.buffer = {.data = in.data(), .bytes = in.size(), .region = region}, .source = kNames[0]});
  EXPECT_EQ(demand_end(), kLong);
  endpoint(2).DeregisterMemory(region, now());
  EXPECT_EQ(demand_end(), 0u);
  PostFrom(kNames[0]);
  SendFrom(0, NewFilled(kLong / 2, 1), 0);
  Settle();
  EXPECT_EQ(demand_end(), kLong / 2);  // it has come, and the rest of the buffer waits for nothing
  PostFrom(kNames[0]);
  endpoint(2).Abort(in_[0], now());
  EXPECT_EQ(host(2).control().receiver_flows, 0u);
  PostFrom(kNames[0]);  // of a connection that is gone
  host(2).Touch();
}

// A short one comes unasked: its connection takes no path state for it, and stays idle.
TEST_F(DirectedFixture, TheAllocatorDoesNotHearOfShortOnes) {
  StartQueue(Options(TestControl::kCredit));
  Name(0);
  const OperationId receive = PostFrom(kNames[0], 1000);
  EXPECT_EQ(host(2).control().receiver_flows, 0u);
  EXPECT_TRUE(endpoint(2).CancelReceive(queue_, receive, now()));
  EXPECT_EQ(host(2).control().receiver_flows, 0u);
  PostFrom(kNames[0], 1000);
  SendFrom(0, NewFilled(1000, 1), 0);
  world().RunFor(Duration::Seconds(2));
  PostFrom(kNames[0], 1000);
  world().RunFor(Duration::Seconds(2));
  EXPECT_EQ(host(2).control().receiver_flows, 0u);
}

TEST_F(DirectedFixture, AChangeOfSourceMovesThem) {
  StartQueue(Options(TestControl::kCredit));
  PostFrom(70);
  PostFrom(70);
  PostFrom(71, 3 * kLong);
  EXPECT_EQ(demand_end(), 0u);
  NameAs(0, 70);
  EXPECT_EQ(demand_end(), 2 * kLong);
  NameAs(0, 70);
  EXPECT_EQ(demand_end(), 2 * kLong);
  NameAs(0, 71);
  EXPECT_EQ(demand_end(), 3 * kLong);
  PostFrom(70);
  EXPECT_EQ(demand_end(), 3 * kLong);
  NameAs(1, 70);
  EXPECT_EQ(demand_end(), 6 * kLong);
  NameAs(0, kAnySource);
  EXPECT_EQ(demand_end(), 3 * kLong);
}

// Stored sends that the name lets meet their receives come first: only what is left stands ready.
TEST_F(DirectedFixture, ANameIsCountedBehindWhatItLetsMeet) {
  StartQueue(Options(TestControl::kWindow));
  for (int i = 0; i < 2; ++i) PostFrom(kNames[0]);
  SendFrom(0, NewFilled(500, 1), 0);  // stored
  Settle();
  Name(0);
  Settle();
  EXPECT_EQ(got_.size(), 1u);
  network().StartCapture();
  for (int i = 0; i < 2; ++i) SendFrom(0, NewFilled(kLong, 1), 0);
  Settle();
  EXPECT_EQ(got_.size(), 2u);
  EXPECT_EQ(Announcements(), 1u);
}

// It counts for each, until one of them has met it: the others' allocator hears of that at once.
TEST_F(DirectedFixture, TwoConnectionsOfOneSourceShareWhatNamesIt) {
  StartQueue(Options(TestControl::kCredit));
  NameAs(0, 70);
  NameAs(1, 70);
  PostFrom(70);
  EXPECT_EQ(demand_end(), 2 * kLong);
  Settle();
  SendFrom(0, NewFilled(kLong, 1), 0);
  Settle();
  EXPECT_EQ(demand_end(), kLong);
  PostFrom(70);
  endpoint(2).Abort(in_[0], now());
  EXPECT_EQ(demand_end(), kLong);
  network().StartCapture();
  Settle();
  SendFrom(1, NewFilled(kLong, 1), 0);
  Settle();
  EXPECT_EQ(got_.size(), 2u);
  EXPECT_EQ(Announcements(), 0u);
}

TEST_F(DirectedFixture, TitaGrantsAhead) {
  WorldOptions options;
  options.endpoint.congestion_control = "tita";
  options.new_congestion_control = [](uint32_t) { return *CreateCongestionControl("tita", {}, 1); };
  StartQueue(options);
  Name(0);
  PostFrom(kAnySource, 1'000'000, 1);
  Settle();
  EXPECT_EQ(host(2).control().outstanding_credit_bytes(), 0u);
  PostFrom(kNames[0], 1'000'000, 2);
  Settle();
  EXPECT_GT(host(2).control().outstanding_credit_bytes(), 0u);
  network().StartCapture();
  SendFrom(0, NewFilled(1'000'000, 1), 2);
  Take();
  EXPECT_EQ(Announcements(), 0u);
}

// ---- what a connection holds

TEST_F(DirectedFixture, AConnectionIsIdleOnceNothingThatNamesItStandsReady) {
  StartQueue(Options(TestControl::kCredit));
  Name(0);
  PostFrom(kNames[0]);
  SendFrom(0, NewFilled(kLong, 1), 0);
  world().RunFor(Duration::Seconds(2));
  const size_t idle = endpoint(2).MemoryOf(in_[0]);
  EXPECT_EQ(host(2).control().receiver_flows, 0u);
  const OperationId receive = PostFrom(kNames[0]);
  world().RunFor(Duration::Seconds(2));
  EXPECT_EQ(host(2).control().receiver_flows, 1u);  // its credit holds
  EXPECT_TRUE(endpoint(2).CancelReceive(queue_, receive, now()));
  world().RunFor(Duration::Seconds(2));
  EXPECT_EQ(host(2).control().receiver_flows, 0u);
  EXPECT_EQ(endpoint(2).MemoryOf(in_[0]), idle);
}

TEST_F(DirectedFixture, AQueueThatEndsTakesThemAlong) {
  StartQueue(Options(TestControl::kCredit));
  Name(0);
  PostFrom(kNames[0]);
  PostFrom(kNames[1]);
  endpoint(2).DeleteReceiveQueue(queue_, now());
  host(2).Touch();
  Settle();
  EXPECT_EQ(got_.size(), 2u);
  EXPECT_EQ(host(2).control().receiver_flows, 0u);
}

TEST_F(DirectedFixture, NoReceiveIsPostedOnAConnectionThatSharesAQueue) {
  StartQueue(Options(TestControl::kWindow));
  GuardedBuffer& in = NewBuffer(kLong);
  EXPECT_EQ(endpoint(2).PostReceive(in_[0], {.buffer = Into(in), .ignore = kAnyTag}, now()),
            PostResult::kInvalidArgument);
}

}  // namespace
}  // namespace paceline::support
