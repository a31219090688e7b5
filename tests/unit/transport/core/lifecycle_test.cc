// How operations and connections end: cancel, close, abort, lost peers, pauses, keepalive, idle memory. Whatever
// happens, each operation has exactly one completion.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/base/random.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr uint8_t kAll = kRemoteRead | kRemoteWrite | kRemoteAtomic;

class LifecycleTest : public CoreSetupTest {
 protected:
  // Operations of every kind in both directions that cannot all be done at once. Numbers by host.
  void PostAMix() {
    for (uint32_t at = 0; at < 2; ++at) {
      GuardedBuffer& memory = NewFilled(300'000, 1);
      const RemoteMemory remote = Export(1 - at, memory, kAll);
      mix_[at].push_back(Receive(at, NewBuffer(100), 50));  // never sent
      mix_[at].push_back(Receive(at, NewBuffer(400'000), 1));
      mix_[at].push_back(Send(at, NewFilled(400'000, 1), 1));
      mix_[at].push_back(Send(at, NewFilled(400'000, 1), 60));  // never received
      mix_[at].push_back(Send(at, NewFilled(100, 1), 61));      // never received, eager
      mix_[at].push_back(Write(at, NewFilled(200'000, 1), remote));
      mix_[at].push_back(WriteImmediate(at, NewFilled(1000, 1), remote, 250'000, 1));
      mix_[at].push_back(Read(at, NewBuffer(200'000), remote));
      mix_[at].push_back(FetchAdd(at, remote, 299'992, 1));
      mix_[at].push_back(CompareSwap(at, remote, 299'984, 1, 2));
      mix_[at].push_back(Flush(at));
    }
  }
  void ExpectStatus(uint32_t at, std::initializer_list<OperationStatus> allowed) {
    for (const uint64_t operation : mix_[at]) {
      const Completion* completion = Done(at, operation);
      if (completion == nullptr) {
        ADD_FAILURE() << "host " << at << ": operation " << operation << " has no completion";
        continue;
      }
      EXPECT_TRUE(std::find(allowed.begin(), allowed.end(), completion->status) != allowed.end())
          << "host " << at << ", " << OperationName(completion->operation) << ": "
          << OperationStatusName(completion->status);
    }
  }
  bool AwaitClosed(uint32_t at, Duration limit = Duration::Seconds(30)) {
    return world().RunUntil([&] { return Event(at, ConnectionEventKind::kClosed, connection(at)) != nullptr; }, limit);
  }
  CloseReason Reason(uint32_t at) { return Event(at, ConnectionEventKind::kClosed, connection(at))->reason; }

  std::vector<uint64_t> mix_[2];
};
INSTANTIATE_TEST_SUITE_P(Setups, LifecycleTest, testing::ValuesIn(AllCoreSetups()), CoreSetupName);

TEST_P(LifecycleTest, CancelAReceive) {
  GuardedBuffer& cancelled = NewBuffer(100);
  const uint64_t first = Receive(1, cancelled, 1);
  const uint64_t second = Receive(1, NewBuffer(100), 1);
  EXPECT_TRUE(Cancel(1, first));
  EXPECT_EQ(Await(1, first).status, OperationStatus::kCancelled);
  EXPECT_FALSE(Cancel(1, first));
  AwaitOk(0, Send(0, NewFilled(100, 1), 1));
  AwaitOk(1, second);
  EXPECT_TRUE(cancelled.Untouched());
}

TEST_P(LifecycleTest, CancelASendThatNobodyReceives) {
  const uint64_t send = Send(0, NewFilled(300'000, 1), 1);
  world().RunFor(Duration::Millis(2));
  if (!Cancel(0, send)) {  // too late is a fair answer, then it completes as usual
    GuardedBuffer& in = NewBuffer(300'000);
    AwaitOk(1, Receive(1, in, 1));
    AwaitOk(0, send);
    return;
  }
  EXPECT_EQ(Await(0, send).status, OperationStatus::kCancelled);
  // The next of the same tag is the one that is received.
  GuardedBuffer& in = NewBuffer(300'000);
  const uint64_t receive = Receive(1, in, 1);
  AwaitOk(0, Send(0, NewFilled(300'000, 2), 1));
  AwaitOk(1, receive);
  EXPECT_TRUE(in.Holds(2));
}

TEST_P(LifecycleTest, CancelAtAnyMomentLeavesBothSidesWell) {
  for (int64_t micros = 0; micros < 80; micros += 3) {
    SCOPED_TRACE(micros);
    GuardedBuffer& in = NewBuffer(100'000);
    const uint64_t receive = Receive(1, in, 1);
    const uint64_t send = Send(0, NewFilled(100'000, 1), 1);
    world().RunFor(Duration::Micros(micros));
    const uint32_t at = micros % 2 == 0 ? 0 : 1;
    const bool cancelled = Done(at, at == 0 ? send : receive) == nullptr && Cancel(at, at == 0 ? send : receive);
    world().RunFor(Duration::Millis(1));
    if (cancelled) {
      EXPECT_EQ(Await(at, at == 0 ? send : receive).status, OperationStatus::kCancelled);
      if (at == 1) {  // the message waits for another receive, or was given up
        const uint64_t again = Receive(1, NewBuffer(100'000), 1);
        world().RunFor(Duration::Millis(100));
        if (Done(0, send) != nullptr && Done(1, again) == nullptr) Cancel(1, again);
        Await(1, again);
      } else if (Done(1, receive) == nullptr) {
        EXPECT_TRUE(Cancel(1, receive));
      }
    }
    Await(0, send);
    Await(1, receive);
    Exchange(0, 10'000, 2);
  }
  AwaitAll();
}

TEST_P(LifecycleTest, CloseCarriesOutWhatWasPosted) {
  GuardedBuffer& in = NewBuffer(2'000'000);
  const uint64_t receive = Receive(1, in, 1);
  const uint64_t never = Receive(0, NewBuffer(10), 9);
  const uint64_t send = Send(0, NewFilled(2'000'000, 5), 1);
  endpoint(0).Close(connection(0), now());
  PostResult result;
  Send(0, NewFilled(10, 1), 2, &result);
  EXPECT_EQ(result, PostResult::kUnknownConnection);
  ASSERT_TRUE(AwaitClosed(0));
  ASSERT_TRUE(AwaitClosed(1));
  AwaitOk(0, send);
  AwaitOk(1, receive);
  EXPECT_TRUE(in.Holds(5));
  EXPECT_EQ(Await(0, never).status, OperationStatus::kConnectionClosed);
  EXPECT_EQ(Reason(0), CloseReason::kLocal);
  EXPECT_EQ(Reason(1), CloseReason::kByPeer);
  world().RunFor(Duration::Seconds(5));
  EXPECT_EQ(endpoint(0).connections(), 0u);
  EXPECT_EQ(endpoint(1).connections(), 0u);
  EXPECT_EQ(endpoint(0).counters().connections_closed, 1u);
}

// What the peer asks for from then on is not taken: else it could go on for ever, as it does not know.
TEST_P(LifecycleTest, CloseEndsThoughThePeerAlwaysAsksForMore) {
  GuardedBuffer& memory = NewFilled(100'000, 1);
  GuardedBuffer& in = NewBuffer(100'000);
  const RemoteMemory remote = Export(0, memory, kRemoteRead);
  PostResult result = PostResult::kOk;
  const auto ask = [&] {
    while (pending(1) < 16 && result == PostResult::kOk) Read(1, in, remote, 0, &result);
  };
  ask();
  world().RunFor(Duration::Micros(50));
  endpoint(0).Close(connection(0), now());
  host(0).Touch();
  const Time end = now() + Duration::Seconds(1);
  while (now() < end && Event(0, ConnectionEventKind::kClosed, connection(0)) == nullptr) {
    ask();
    world().RunFor(Duration::Micros(20));
  }
  ASSERT_NE(Event(0, ConnectionEventKind::kClosed, connection(0)), nullptr);
  EXPECT_EQ(Reason(0), CloseReason::kLocal);
  ASSERT_TRUE(AwaitClosed(1));
  EXPECT_EQ(Reason(1), CloseReason::kByPeer);
}

// Each waits for what it has asked the other for, and so answers what it is asked.
TEST_P(LifecycleTest, CloseFromBothSidesCarriesOutWhatEachHasAskedFor) {
  GuardedBuffer& memory = NewFilled(100'000, 1);
  std::vector<std::pair<uint32_t, uint64_t>> asked;
  std::vector<GuardedBuffer*> read;
  for (uint32_t side = 0; side < 2; ++side) {
    const RemoteMemory readable = Export(1 - side, memory, kRemoteRead);
    const RemoteMemory words = Export(1 - side, NewBuffer(8), kRemoteAtomic);
    read.push_back(&NewBuffer(100'000));
    asked.emplace_back(side, Read(side, *read.back(), readable));
    asked.emplace_back(side, FetchAdd(side, words, 0, 1));
  }
  for (uint32_t side = 0; side < 2; ++side) {
    endpoint(side).Close(connection(side), now());
    host(side).Touch();
  }
  ASSERT_TRUE(AwaitClosed(0));
  ASSERT_TRUE(AwaitClosed(1));
  for (const auto& [side, id] : asked) EXPECT_NE(Done(side, id), nullptr);
}

TEST_P(LifecycleTest, CloseSaysWhatHasArrived) {
  bool lose = false;
  const uint32_t ports = GetParam().ports;
  network().SetHook(
      [&](NetworkPacket& packet, Fate& fate) { fate.drop = lose && packet.control && packet.from >= ports; });
  const uint64_t receive = Receive(1, NewBuffer(100), 1);
  const uint64_t send = Send(0, NewFilled(100, 5), 1);
  world().RunUntil([&] { return Done(1, receive) != nullptr; });
  lose = true;
  world().RunFor(Duration::Micros(50));
  EXPECT_EQ(Done(0, send), nullptr) << "the acknowledgement is lost";
  lose = false;
  endpoint(1).Close(connection(1), now());
  AwaitOk(0, send);
}

TEST_P(LifecycleTest, CloseFromBothSides) {
  const uint64_t r0 = Receive(0, NewBuffer(200'000), 1);
  const uint64_t r1 = Receive(1, NewBuffer(200'000), 1);
  Send(0, NewFilled(200'000, 1), 1);
  Send(1, NewFilled(200'000, 1), 1);
  world().RunFor(Duration::Micros(50));
  endpoint(0).Close(connection(0), now());
  endpoint(1).Close(connection(1), now());
  ASSERT_TRUE(AwaitClosed(0));
  ASSERT_TRUE(AwaitClosed(1));
  AwaitAll();
  Await(0, r0);
  Await(1, r1);
}

TEST_P(LifecycleTest, CloseWithAMix) {
  PostAMix();
  world().RunFor(Duration::Micros(30));
  endpoint(0).Close(connection(0), now());
  // The sends that nobody receives stand in the way of an orderly end: receive them.
  Receive(1, NewBuffer(400'000), 60);
  Receive(1, NewBuffer(100), 61);
  AwaitClosed(0, Duration::Seconds(60));
  AwaitClosed(1, Duration::Seconds(60));
  AwaitAll();
}

TEST_P(LifecycleTest, AbortEndsEverythingAtOnce) {
  PostAMix();
  world().RunFor(Duration::Micros(40));
  endpoint(0).Abort(connection(0), now());
  host(0).Touch();
  ASSERT_TRUE(AwaitClosed(0, Duration::Millis(1)));
  ASSERT_TRUE(AwaitClosed(1, Duration::Millis(10)));
  AwaitAll(Duration::Millis(10));
  ExpectStatus(0, {OperationStatus::kOk, OperationStatus::kConnectionClosed});
  ExpectStatus(1, {OperationStatus::kOk, OperationStatus::kConnectionClosed});
  EXPECT_EQ(Reason(1), CloseReason::kAborted);
  world().RunFor(Duration::Seconds(5));
  EXPECT_EQ(endpoint(1).connections(), 0u);
}

TEST_P(LifecycleTest, AbortAtAnyMoment) {
  for (int64_t micros = 0; micros < 120; micros += 7) {
    SCOPED_TRACE(micros);
    TearDown();
    Start(OptionsFor(GetParam()));
    mix_[0].clear(), mix_[1].clear();
    PostAMix();
    world().RunFor(Duration::Micros(micros));
    endpoint(1).Abort(connection(1), now());
    AwaitAll(Duration::Seconds(30));
    world().RunFor(Duration::Seconds(1));
    EXPECT_EQ(endpoint(0).connections(), 0u);
    if (HasFailure()) return;
  }
}

TEST_P(LifecycleTest, AnAbortThatIsLostIsNoticedAnyway) {
  PostAMix();
  world().RunFor(Duration::Micros(40));
  network().SetHook([](NetworkPacket& packet, Fate& fate) { fate.drop = packet.from < packet.to; });  // from host 0
  endpoint(0).Abort(connection(0), now());
  world().RunFor(Duration::Millis(100));
  network().SetHook(nullptr);
  AwaitAll(Duration::Seconds(15));
}

TEST_P(LifecycleTest, ALostPeerIsReportedOnEveryOperation) {
  PostAMix();
  world().RunFor(Duration::Micros(40));
  host(1).Freeze();
  const Time start = now();
  ASSERT_TRUE(AwaitClosed(0));
  EXPECT_GE(now() - start, Duration::Seconds(9));
  EXPECT_LE(now() - start, Duration::Seconds(13));
  EXPECT_EQ(Reason(0), CloseReason::kPeerLost);
  world().RunUntil([&] { return pending(0) == 0; }, Duration::Seconds(1));
  ExpectStatus(0, {OperationStatus::kOk, OperationStatus::kPeerLost});
  EXPECT_EQ(endpoint(0).counters().connections_lost, 1u);
  world().RunFor(Duration::Seconds(1));
  EXPECT_EQ(endpoint(0).connections(), 0u);
}

TEST_P(LifecycleTest, ALostPeerOfAnIdleConnectionIsNoticed) {
  world().RunFor(Duration::Seconds(5));
  const uint64_t receive = Receive(0, NewBuffer(10), 1);
  host(1).Freeze();
  ASSERT_TRUE(AwaitClosed(0, Duration::Seconds(20)));
  EXPECT_EQ(Await(0, receive).status, OperationStatus::kPeerLost);
}

TEST_P(LifecycleTest, APeerThatWasStoppedForAWhileLosesNothing) {
  GuardedBuffer& in = NewBuffer(3'000'000);
  const uint64_t receive = Receive(1, in, 1);
  const uint64_t send = Send(0, NewFilled(3'000'000, 1), 1);
  world().RunFor(Duration::Micros(100));
  host(1).Freeze();
  world().RunFor(Duration::Seconds(5));
  host(1).Thaw();
  AwaitOk(0, send);
  AwaitOk(1, receive);
  EXPECT_TRUE(in.Holds(1));
}

TEST_P(LifecycleTest, ARestartedPeerIsToldApart) {
  PostAMix();
  world().RunFor(Duration::Micros(40));
  world().Restart(1, 999);
  const Time start = now();
  ASSERT_TRUE(AwaitClosed(0, Duration::Millis(200)));
  EXPECT_EQ(Reason(0), CloseReason::kPeerLost);
  world().RunUntil([&] { return pending(0) == 0; }, Duration::Millis(1));
  EXPECT_EQ(pending(0), 0u);
  ExpectStatus(0, {OperationStatus::kOk, OperationStatus::kPeerLost});
  EXPECT_EQ(endpoint(0).counters().connections_gone, 1u);
  EXPECT_EQ(endpoint(1).counters().gones_sent, 2u);
  RecordProperty("noticed_after_us", static_cast<int>((now() - start).micros()));
  // A new connection works at once.
  const auto fresh = world().Connect(0, 1);
  EXPECT_NE(fresh.first, kNoConnection);
}

TEST_P(LifecycleTest, ARestartedPeerIsToldApartByWhoOnlyWaits) {
  world().RunFor(Duration::Millis(100));
  const uint64_t receive = Receive(0, NewBuffer(10), 1);
  world().Restart(1, 999);
  ASSERT_TRUE(AwaitClosed(0, Duration::Millis(2100))) << "with the first question after two seconds of silence";
  EXPECT_EQ(Await(0, receive).status, OperationStatus::kPeerLost);
}

TEST_P(LifecycleTest, ARestartedPeerOfAnIdleConnectionIsToldApart) {
  world().RunFor(Duration::Millis(100));
  world().Restart(1, 999);
  ASSERT_TRUE(AwaitClosed(0, Duration::Millis(30'200)));
  EXPECT_EQ(Reason(0), CloseReason::kPeerLost);
}

// A peer that does not know the question, as those of earlier releases, is silent: then only the time-out tells.
TEST_P(LifecycleTest, ARestartedPeerThatAnswersNoQuestionsIsLostAfterTheTimeout) {
  PostAMix();
  world().RunFor(Duration::Micros(40));
  network().SetHook([](NetworkPacket& packet, Fate& fate) {
    fate.drop = !packet.bytes.empty() && (packet.bytes[0] & 0x0f) == static_cast<int>(wire::PacketType::kGone);
  });
  world().Restart(1, 999);
  const Time start = now();
  ASSERT_TRUE(AwaitClosed(0, Duration::Seconds(15)));
  EXPECT_GE(now() - start, Duration::Seconds(9));
}

TEST_P(LifecycleTest, APeerThatHasTheConnectionDoesNotSayOtherwise) {
  network().SetHook([this](NetworkPacket& packet, Fate& fate) {
    fate.drop = now() < Time() + Duration::Seconds(3);
    if (!packet.bytes.empty() && (packet.bytes[0] & 0x0f) == static_cast<int>(wire::PacketType::kAsk)) {
      EXPECT_EQ(packet.entropy, 0u) << "an answer to its source would reach nobody";
    }
  });
  GuardedBuffer& in = NewBuffer(300'000);
  const uint64_t receive = Receive(1, in, 1);
  AwaitOk(0, Send(0, NewFilled(300'000, 1), 1));
  AwaitOk(1, receive);
  world().RunFor(Duration::Seconds(120));
  EXPECT_GT(endpoint(0).counters().asks_sent, 3u);
  EXPECT_EQ(endpoint(0).counters().gones_sent + endpoint(1).counters().gones_sent, 0u);
}

// What an earlier process's peer still sends is nobody's, though the new one has as many connections.
TEST_P(LifecycleTest, NothingForAnEarlierProcessReachesAConnectionOfTheNew) {
  world().RunFor(Duration::Millis(100));
  host(0).Freeze();
  world().Restart(1, 999);
  host(0).Thaw();
  const auto [ours, theirs] = world().Connect(0, 1);
  ASSERT_NE(theirs, kNoConnection);
  EXPECT_NE(theirs, connection(1));
  const uint64_t unknown = endpoint(1).counters().rx_unknown_connection;
  Send(0, NewFilled(100, 1), 1);  // on the old connection
  ASSERT_TRUE(AwaitClosed(0, Duration::Millis(200)));
  EXPECT_GT(endpoint(1).counters().rx_unknown_connection, unknown);
  EXPECT_EQ(endpoint(1).counters().unexpected_messages, 0u);
}

TEST_P(LifecycleTest, AnIdleConnectionStaysAndCostsLittle) {
  Exchange(0, 1'000'000);
  world().RunFor(Duration::Seconds(1));
  const uint64_t before = network().packets_sent();
  world().RunFor(Duration::Seconds(60));
  EXPECT_EQ(Event(0, ConnectionEventKind::kClosed, connection(0)), nullptr);
  EXPECT_LE(network().packets_sent() - before, 150u);  // about a question and an answer in two seconds
  const size_t bytes = endpoint(0).MemoryOf(connection(0));
  RecordProperty("idle_bytes", static_cast<int>(bytes));
  const size_t aim = 800u + 50u * (GetParam().ports - 1) + (GetParam().encrypted ? sizeof(SecureChannel) : 0);
  EXPECT_LE(bytes, aim) << "an idle connection holds " << bytes << " bytes";
  Exchange(0, 1'000'000);
  Exchange(1, 1'000'000);
}

TEST_P(LifecycleTest, MemoryDoesNotGrowWithUse) {
  auto idle_bytes = [this] {
    world().RunFor(Duration::Seconds(3));
    return endpoint(0).MemoryOf(connection(0)) + endpoint(1).MemoryOf(connection(1));
  };
  Exchange(0, 300'000);
  Exchange(1, 300'000);
  const size_t first = idle_bytes();
  for (int i = 0; i < 30; ++i) {
    Exchange(0, 300'000);
    Exchange(1, 3000);
  }
  EXPECT_EQ(idle_bytes(), first);
}

TEST_P(LifecycleTest, CreditIsBackWhenAllIsQuiet) {
  for (int i = 0; i < 5; ++i) Exchange(i % 2, 300'000);
  for (int i = 0; i < 5; ++i) Cancel(1, Receive(1, NewBuffer(500'000), 7));
  AwaitAll();
  world().RunFor(Duration::Seconds(3));
  EXPECT_EQ(host(0).control().outstanding_credit_bytes(), 0u);
  EXPECT_EQ(host(1).control().outstanding_credit_bytes(), 0u);
}

TEST_P(LifecycleTest, AnEndpointMayGoInTheMiddleOfEverything) {
  PostAMix();
  world().RunFor(Duration::Micros(45));
  world().Restart(0, 5);
  for (uint32_t port = 0; port < GetParam().ports; ++port) EXPECT_EQ(world().lane(0, port).open_peers(), 0u);
}

TEST_P(LifecycleTest, CallsOnDeadConnectionsAreRefused) {
  const ConnectionId dead = connection(0);
  endpoint(0).Abort(dead, now());
  ASSERT_TRUE(AwaitClosed(0));
  for (const ConnectionId id : {dead, kNoConnection, ConnectionId{0xffffffff}}) {
    EXPECT_EQ(endpoint(0).PostSend(id, {}, now()), PostResult::kUnknownConnection);
    EXPECT_EQ(endpoint(0).PostReceive(id, {}, now()), PostResult::kUnknownConnection);
    EXPECT_EQ(endpoint(0).PostWrite(id, {}, now()), PostResult::kUnknownConnection);
    EXPECT_EQ(endpoint(0).PostRead(id, {}, now()), PostResult::kUnknownConnection);
    EXPECT_NE(endpoint(0).PostAtomic(id, {}, now()), PostResult::kOk);
    EXPECT_EQ(endpoint(0).PostFlush(id, {}, now()), PostResult::kUnknownConnection);
    EXPECT_FALSE(endpoint(0).Cancel(id, 1, now()));
    endpoint(0).Close(id, now());
    endpoint(0).Abort(id, now());
    endpoint(0).Accept(id, now());
    endpoint(0).Refuse(id, now());
  }
}

}  // namespace
}  // namespace paceline::support
