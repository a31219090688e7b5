// Receives that connections share: by any of them, by those of one name, by one that was looked at first, into a buffer
// for many; and what happens to them when a connection or the queue ends. On every kind of lane.
#include <gtest/gtest.h>

#include "tests/unit/transport/core/receive_queue_fixture.h"

namespace paceline::support {
namespace {

class ReceiveQueueTest : public ReceiveQueueFixture, public testing::WithParamInterface<CoreSetup> {
 protected:
  static constexpr size_t kHalf = 1'000'000;

  void SetUp() override { StartQueue(OptionsFor(GetParam())); }

  // Both connections write into a region of their receiver, half each, and the first is ended on the way.
  void EndOneOfTwoThatWriteIntoARegion() {
    GuardedBuffer& in = NewBuffer(2 * kHalf);
    const RegionId region = endpoint(2).RegisterMemory(in.data(), in.size(), kLocalOnly);
    for (const uint64_t from : {uint64_t{0}, uint64_t{1}}) {
      Post({.buffer = {in.data() + from * kHalf, kHalf, region}, .tag = from, .user_data = from + 1});
      SendFrom(static_cast<uint32_t>(from), NewFilled(kHalf, from), from);
    }
    ASSERT_TRUE(world().RunUntil([&] { return endpoint(2).counters().rx_data_bytes > kHalf / 2; }));
    ASSERT_TRUE(got_.empty());
    endpoint(2).Abort(in_[0], now());
    host(2).Touch();
    EXPECT_EQ(Take().status, OperationStatus::kConnectionClosed);
    of_the_other_ = in.data() + kHalf;
  }

  void RepeatWhatComesBeforeThat(Duration late) {
    network().SetHook([this, late](NetworkPacket& packet, Fate& fate) {
      if (packet.from != 2 || endpoint(2).counters().rx_data_bytes > kHalf / 2) return;
      fate.copies = 2;
      fate.copy_spacing = late;
    });
  }

  void ExpectTheOtherToArrive() {
    const Completion other = Take();
    EXPECT_EQ(other.user_data, 2u);
    EXPECT_EQ(other.status, OperationStatus::kOk);
    EXPECT_EQ(FindDifference(of_the_other_, kHalf, 1), kHalf);
  }

 private:
  const uint8_t* of_the_other_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Setups, ReceiveQueueTest, testing::ValuesIn(AllCoreSetups()), CoreSetupName);

TEST_P(ReceiveQueueTest, AnyConnectionMeetsTheReceivesInPostingOrder) {
  for (const size_t bytes : {size_t{0}, size_t{100}, size_t{300'000}}) {
    GuardedBuffer& first = NewBuffer(bytes);
    GuardedBuffer& second = NewBuffer(bytes);
    Post({.buffer = Into(first), .tag = 5, .user_data = 1});
    Post({.buffer = Into(second), .tag = 5, .user_data = 2});
    SendFrom(1, NewFilled(bytes, 11), 5);
    Settle();
    SendFrom(0, NewFilled(bytes, 10), 5);
    const Completion one = Take(), two = Take();
    EXPECT_EQ(one.user_data, 1u);
    EXPECT_EQ(one.connection, in_[1]);
    EXPECT_EQ(two.user_data, 2u);
    EXPECT_EQ(two.connection, in_[0]);
    EXPECT_TRUE(first.Holds(11));
    EXPECT_TRUE(second.Holds(10));
  }
}

TEST_P(ReceiveQueueTest, WhatCameBeforeTheReceiveIsTakenInTheOrderItCame) {
  for (const size_t bytes : {size_t{64}, size_t{200'000}}) {
    SendFrom(0, NewFilled(bytes, 20), 1);
    Settle();
    SendFrom(1, NewFilled(bytes, 21), 1);
    Settle();
    GuardedBuffer& first = NewBuffer(bytes);
    Post({.buffer = Into(first), .tag = 1});
    EXPECT_EQ(Take().connection, in_[0]);
    EXPECT_TRUE(first.Holds(20));
    GuardedBuffer& second = NewBuffer(bytes);
    Post({.buffer = Into(second), .tag = 1});
    EXPECT_EQ(Take().connection, in_[1]);
    EXPECT_TRUE(second.Holds(21));
  }
}

TEST_P(ReceiveQueueTest, AReceiveThatNamesItsSourceTakesNoOther) {
  Name(0);
  Name(1);
  GuardedBuffer& in = NewBuffer(64);
  Post({.buffer = Into(in), .user_data = 1, .source = kNames[1]});
  SendFrom(0, NewFilled(64, 30), 0);
  Settle();
  EXPECT_TRUE(got_.empty());
  SendFrom(1, NewFilled(64, 31), 0);
  EXPECT_EQ(Take().connection, in_[1]);
  EXPECT_TRUE(in.Holds(31));
  Post({.buffer = Into(NewBuffer(64)), .user_data = 2, .source = kNames[0]});
  EXPECT_EQ(Take().connection, in_[0]);
}

TEST_P(ReceiveQueueTest, ANameGivenLaterHoldsForWhatHasComeBefore) {
  SendFrom(0, NewFilled(64, 1), 0);
  SendFrom(0, NewFilled(90'000, 2), 0);
  Settle();
  GuardedBuffer &first = NewBuffer(64), &second = NewBuffer(90'000);
  Post({.buffer = Into(first), .source = kNames[0]});
  Post({.buffer = Into(second), .source = kNames[0]});
  Settle();
  EXPECT_TRUE(got_.empty());
  Name(0);
  Take();
  Take();
  EXPECT_TRUE(first.Holds(1));
  EXPECT_TRUE(second.Holds(2));
}

TEST_P(ReceiveQueueTest, ABufferForManyTakesOneSendAfterTheOther) {
  GuardedBuffer& in = NewBuffer(1000);
  SendFrom(0, NewFilled(300, 1), 0);  // two before the receive, two after
  Settle();
  SendFrom(1, NewFilled(200, 2), 0);
  Settle();
  Post({.buffer = Into(in), .user_data = 9, .min_free = 100});
  SendFrom(0, NewFilled(450, 3), 0);  // leaves 50
  Settle();
  SendFrom(0, NewFilled(10, 4), 0);
  Settle();
  ASSERT_EQ(got_.size(), 3u);
  const uint64_t offsets[] = {0, 300, 500}, bytes[] = {300, 200, 450};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got_[i].user_data, 9u);
    EXPECT_EQ(got_[i].offset, offsets[i]);
    EXPECT_EQ(got_[i].bytes, bytes[i]);
    EXPECT_EQ(got_[i].released, i == 2);
  }
  EXPECT_TRUE(in.HoldsFirst(300, 1));
  got_.clear();
  Post({.buffer = Into(NewBuffer(64)), .user_data = 10});
  EXPECT_EQ(Take().bytes, 10u);
}

TEST_P(ReceiveQueueTest, ACancelledBufferForManyIsTakenNoMore) {
  GuardedBuffer& in = NewBuffer(1000);
  const OperationId id = Post({.buffer = Into(in), .user_data = 9, .min_free = 100});
  SendFrom(0, NewFilled(300, 1), 0);
  EXPECT_FALSE(Take().released);
  EXPECT_TRUE(endpoint(2).CancelReceive(queue_, id, now()));
  EXPECT_FALSE(endpoint(2).CancelReceive(queue_, id, now()));
  host(2).Touch();
  EXPECT_EQ(Take().status, OperationStatus::kCancelled);
  SendFrom(0, NewFilled(300, 1), 0);
  Settle();
  EXPECT_TRUE(got_.empty());
}

TEST_P(ReceiveQueueTest, ACancelledBufferForManyIsReleasedWhenItsSendsAreThere) {
  GuardedBuffer& in = NewBuffer(1'000'000);
  const OperationId id = Post({.buffer = Into(in), .user_data = 9, .min_free = 100});
  for (uint64_t i : {uint64_t{0}, uint64_t{1}}) SendFrom(0, NewFilled(300'000, i), 0);
  ASSERT_TRUE(world().RunUntil([&] { return endpoint(2).counters().rx_data_bytes > 0; }));
  ASSERT_TRUE(got_.empty());
  EXPECT_TRUE(endpoint(2).CancelReceive(queue_, id, now()));
  host(2).Touch();
  const Completion cancelled = Take(), first = Take(), second = Take();
  EXPECT_EQ(cancelled.status, OperationStatus::kCancelled);
  EXPECT_FALSE(cancelled.released);
  EXPECT_FALSE(first.released);
  EXPECT_TRUE(second.released);
  EXPECT_EQ(second.offset, 300'000u);
  EXPECT_EQ(FindDifference(in.data() + 300'000, 300'000, 1), 300'000u);
}

TEST_P(ReceiveQueueTest, AClaimedSendWaitsForTheReceiveThatNamesIt) {
  EXPECT_FALSE(endpoint(2).Peek(queue_, {.ignore = ~0ull}, true).has_value());
  for (const size_t bytes : {size_t{64}, size_t{200'000}}) {
    SendFrom(0, NewFilled(bytes, 1), 3);
    Settle();
    SendFrom(0, NewFilled(bytes, 2), 3);
    Settle();
    const auto seen = endpoint(2).Peek(queue_, {.tag = 3}, false);
    ASSERT_TRUE(seen.has_value());
    EXPECT_EQ(seen->bytes, bytes);
    EXPECT_EQ(seen->tag, 3u);
    EXPECT_EQ(seen->connection, in_[0]);
    EXPECT_EQ(seen->claimed, 0u);
    const auto claimed = endpoint(2).Peek(queue_, {.tag = 3}, true);
    ASSERT_NE(claimed->claimed, 0u);
    GuardedBuffer &other = NewBuffer(bytes), &in = NewBuffer(bytes);
    Post({.buffer = Into(other), .tag = 3});
    Take();
    EXPECT_TRUE(other.Holds(2));
    Post({.buffer = Into(in), .claimed = claimed->claimed});
    Take();
    EXPECT_TRUE(in.Holds(1));
    Post({.buffer = Into(in), .claimed = claimed->claimed}, PostResult::kInvalidArgument);
  }
}

TEST_P(ReceiveQueueTest, AClaimedSendIsMetByNoReceiveThatWaits) {
  for (const size_t bytes : {size_t{64}, size_t{200'000}}) {
    SendFrom(0, NewFilled(bytes, 1), 3);
    Settle();
    const auto claimed = endpoint(2).Peek(queue_, {.tag = 3}, true);
    ASSERT_TRUE(claimed.has_value());
    GuardedBuffer &other = NewBuffer(bytes), &in = NewBuffer(bytes);
    Post({.buffer = Into(other), .tag = 3});
    Name(0);  // what waits is looked at once more
    Settle();
    EXPECT_TRUE(got_.empty());
    Post({.buffer = Into(in), .claimed = claimed->claimed});
    Take();
    EXPECT_TRUE(in.Holds(1));
    SendFrom(0, NewFilled(bytes, 2), 3);
    Take();
    EXPECT_TRUE(other.Holds(2));
  }
}

TEST_P(ReceiveQueueTest, AConnectionThatEndsTakesNoReceiveAlong) {
  Name(0);
  Name(1);
  Post({.buffer = Into(NewBuffer(64)), .user_data = 1, .source = kNames[0]});
  Post({.buffer = Into(NewBuffer(64)), .user_data = 2});
  SendFrom(0, NewFilled(100'000, 1), 5);  // meets nothing
  Settle();
  endpoint(0).Abort(out_[0], now());
  host(0).Touch();
  Settle();
  EXPECT_TRUE(got_.empty());
  EXPECT_FALSE(endpoint(2).Peek(queue_, {.ignore = ~0ull}, false).has_value());
  endpoint(2).FailReceivesFrom(queue_, kNames[0], OperationStatus::kPeerLost, now());
  host(2).Touch();
  const Completion failed = Take();
  EXPECT_EQ(failed.user_data, 1u);
  EXPECT_EQ(failed.status, OperationStatus::kPeerLost);
  SendFrom(1, NewFilled(64, 2), 0);
  EXPECT_EQ(Take().user_data, 2u);
}

TEST_P(ReceiveQueueTest, AConnectionThatClosesTakesNoReceiveAnyMore) {
  GuardedBuffer& in = NewBuffer(64);
  Post({.buffer = Into(in), .tag = 1, .user_data = 5});
  SendFrom(0, NewFilled(64, 1), 1);
  world().RunFor(Duration::Nanos(100));  // it is under way
  endpoint(2).Close(in_[0], now());
  host(2).Touch();
  ASSERT_TRUE(world().RunUntil([&] { return !host(0).completions.empty(); }));
  EXPECT_NE(host(0).completions[0].status, OperationStatus::kOk);
  EXPECT_TRUE(got_.empty());
  SendFrom(1, NewFilled(64, 2), 1);
  EXPECT_EQ(Take().user_data, 5u);
  EXPECT_TRUE(in.Holds(2));
}

// Cards that write into one region for several connections get new keys when one of these ends.
TEST_P(ReceiveQueueTest, AConnectionThatEndsLeavesTheRegionToTheOthers) {
  EndOneOfTwoThatWriteIntoARegion();
  ExpectTheOtherToArrive();
}

// The same, and what told the old keys comes once more: after what told the new ones, or after what these have brought.
TEST_P(ReceiveQueueTest, KeysThatComeTooLateHoldNoMessageUp) {
  RepeatWhatComesBeforeThat(Duration::Micros(40));
  EndOneOfTwoThatWriteIntoARegion();
  ExpectTheOtherToArrive();
}
TEST_P(ReceiveQueueTest, KeysThatComeMuchTooLateHoldNoMessageUp) {
  RepeatWhatComesBeforeThat(Duration::Micros(100));
  EndOneOfTwoThatWriteIntoARegion();
  ExpectTheOtherToArrive();
}

TEST_P(ReceiveQueueTest, AQueueThatEndsTakesItsConnectionsAlong) {
  Post({.buffer = Into(NewBuffer(64)), .tag = 1, .user_data = 1});
  SendFrom(0, NewFilled(64, 1), 2);
  Settle();
  endpoint(2).DeleteReceiveQueue(queue_, now());
  host(2).Touch();
  EXPECT_EQ(Take().status, OperationStatus::kCancelled);
  for (const uint32_t from : {0u, 1u}) {
    EXPECT_TRUE(world().RunUntil([&] { return Event(from, ConnectionEventKind::kClosed, out_[from]) != nullptr; }));
  }
  Post({.buffer = Into(NewBuffer(64))}, PostResult::kInvalidArgument);
}

// Sends of host 0 to a queue at host 1, where there is room for four completions.
class StarvedQueueTest : public CoreFixture {
 protected:
  void SetUp() override {
    WorldOptions options;
    options.customize = [](uint32_t host, EndpointOptions& endpoint) {
      if (host == 1) endpoint.max_completions = 4;
    };
    Start(options, false);
    queue_ = endpoint(1).NewReceiveQueue();
    const uint32_t listener = endpoint(1).Listen({.receives = queue_});
    out_ = endpoint(0).Connect(endpoint(1).listen_address(listener), now());
    host(0).Touch();
    ASSERT_TRUE(world().RunUntil([&] { return Event(0, ConnectionEventKind::kEstablished, out_) != nullptr; }));
    host(1).poll_completions = false;
    const ReceiveRequest many = {.buffer = {in_.data(), in_.size()}, .min_free = 1};
    ASSERT_EQ(endpoint(1).PostSharedReceive(queue_, many, now(), &many_), PostResult::kOk);
  }
  // `count` sends of 10 bytes, which arrive.
  void SendSome(int count) {
    const GuardedBuffer& from = NewFilled(10, 1);
    for (int i = 0; i < count; ++i) {
      const SendRequest request = {
          .buffer = {const_cast<uint8_t*>(from.data()), 10}, .immediate = sent_++, .has_immediate = true};
      ASSERT_EQ(endpoint(0).PostSend(out_, request, now()), PostResult::kOk);
    }
    host(0).Touch();
    world().RunFor(Duration::Millis(2));
  }
  // The user takes what is complete.
  void Poll() {
    std::array<Completion, 8> polled;
    const size_t count = endpoint(1).PollCompletions(polled);
    for (const Completion& completion : std::span(polled).first(count)) {
      EXPECT_EQ(completion.immediate, taken_);
      EXPECT_EQ(completion.offset, 10 * taken_);
      ++taken_;
    }
  }

  ReceiveQueueId queue_ = kNoReceiveQueue;
  ConnectionId out_ = kNoConnection;
  GuardedBuffer in_{1'000'000};
  OperationId many_ = 0;
  uint64_t sent_ = 0, taken_ = 0;
};

TEST_F(StarvedQueueTest, ASendThatFindsNoRoomForItsCompletionIsMatchedLater) {
  SendSome(8);
  for (int i = 0; i < 8; ++i) {
    Poll();
    world().RunFor(Duration::Millis(1));
  }
  EXPECT_EQ(taken_, 8u);
}

TEST_F(StarvedQueueTest, AReceiveThatIsPostedLaterTakesNothingOfWhatStarved) {
  SendSome(5);
  EXPECT_FALSE(endpoint(1).Peek(queue_, {.ignore = ~0ull}, false).has_value());
  GuardedBuffer& other = NewBuffer(10);
  const ReceiveRequest request = {.buffer = {other.data(), other.size()}, .user_data = 7};
  EXPECT_EQ(endpoint(1).PostSharedReceive(queue_, request, now(), nullptr), PostResult::kTryAgain);
  Poll();
  ASSERT_EQ(taken_, 3u);
  EXPECT_EQ(endpoint(1).PostSharedReceive(queue_, request, now(), nullptr), PostResult::kOk);
  Poll();
  EXPECT_EQ(taken_, 5u);
  EXPECT_TRUE(other.Untouched());
}

TEST_F(StarvedQueueTest, ACancelledBufferForManyGivesItsRoomBackOnce) {
  GuardedBuffer& from = NewFilled(300'000, 1);
  ASSERT_EQ(endpoint(0).PostSend(out_, {.buffer = {from.data(), from.size()}}, now()), PostResult::kOk);
  host(0).Touch();
  ASSERT_TRUE(world().RunUntil([&] { return endpoint(1).counters().rx_data_bytes > 0; }));
  ASSERT_TRUE(endpoint(1).CancelReceive(queue_, many_, now()));
  world().RunFor(Duration::Millis(2));
  std::array<Completion, 8> polled;
  EXPECT_EQ(endpoint(1).PollCompletions(polled), 2u);
  for (int i = 0; i < 5; ++i) {
    const ReceiveRequest request = {.buffer = {from.data(), 1}, .tag = 9};
    EXPECT_EQ(endpoint(1).PostSharedReceive(queue_, request, now(), nullptr),
              i < 4 ? PostResult::kOk : PostResult::kTryAgain);
  }
}

TEST_F(StarvedQueueTest, NoSendOvertakesOneThatStarved) {
  SendSome(5);
  host(1).Freeze();
  SendSome(1);  // is there when the host goes on, and finds room
  Poll();
  ASSERT_EQ(taken_, 3u);
  host(1).Thaw();
  host(1).Touch();
  world().RunFor(Duration::Millis(2));
  Poll();
  EXPECT_EQ(taken_, 6u);
}

}  // namespace
}  // namespace paceline::support
