// Setting up connections: cookie, retries, refusals, versions, strangers, full tables, restarts.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "tests/support/core_fixture.h"
#include "tests/support/endpoint_pair.h"
#include "transport/base/random.h"
#include "transport/core/cookie.h"
#include "transport/wire/checksum.h"
#include "transport/wire/handshake.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

wire::PacketType TypeOf(const NetworkPacket& packet) {
  return packet.bytes.empty() ? wire::PacketType::kInvalid : static_cast<wire::PacketType>(packet.bytes[0] & 0x0f);
}

// Makes the header checksum right again after a change.
void Sign(NetworkPacket& packet) {
  std::memset(packet.bytes.data() + 8, 0, 4);
  const uint32_t crc = wire::Crc32c(std::span(packet.bytes).first(packet.header_bytes));
  std::memcpy(packet.bytes.data() + 8, &crc, 4);
}

class ConnectTest : public CoreFixture {
 protected:
  void SetUp() override { Start(WorldOptions(), /*connect=*/false); }

  ConnectionId ConnectTo(const ListenAddress& address) {
    const ConnectionId connection = endpoint(0).Connect(address, now());
    EXPECT_NE(connection, kNoConnection);
    return connection;
  }
  // How the attempt ends.
  CloseReason AwaitRefusal(ConnectionId connection, Duration limit = Duration::Seconds(20)) {
    EXPECT_TRUE(world().RunUntil([&] { return Event(0, ConnectionEventKind::kClosed, connection) != nullptr; }, limit));
    const ConnectionEvent* event = Event(0, ConnectionEventKind::kClosed, connection);
    EXPECT_EQ(Event(0, ConnectionEventKind::kEstablished, connection), nullptr);
    return event == nullptr ? CloseReason::kNone : event->reason;
  }
  bool AwaitEstablished(uint32_t at, ConnectionId connection) {
    return world().RunUntil([&] { return Event(at, ConnectionEventKind::kEstablished, connection) != nullptr; });
  }
  size_t Count(uint32_t at, ConnectionEventKind kind) {
    size_t count = 0;
    for (const ConnectionEvent& event : host(at).events) count += event.kind == kind;
    return count;
  }
};

TEST_F(ConnectTest, TellsBothSidesInOrder) {
  const uint32_t listener = endpoint(1).Listen();
  EXPECT_NE(listener, 0u);
  const ConnectionId connection = ConnectTo(endpoint(1).listen_address(listener));
  ASSERT_TRUE(AwaitEstablished(0, connection));
  world().RunFor(Duration::Millis(1));
  ASSERT_EQ(host(1).events.size(), 2u);
  EXPECT_EQ(host(1).events[0].kind, ConnectionEventKind::kRequest);
  EXPECT_EQ(host(1).events[0].listener, listener);
  EXPECT_EQ(host(1).events[1].kind, ConnectionEventKind::kEstablished);
  EXPECT_EQ(host(1).events[1].connection, host(1).events[0].connection);
  EXPECT_EQ(endpoint(0).counters().connections_opened, 1u);
  EXPECT_EQ(endpoint(1).counters().connections_opened, 1u);
  a_ = connection;
  b_ = host(1).events[0].connection;
  Exchange(0, 100'000);
  Exchange(1, 100'000);
}

TEST_F(ConnectTest, PostingBeforeEstablishedIsRefusedOrCarriedOut) {
  const uint32_t listener = endpoint(1).Listen();
  a_ = ConnectTo(endpoint(1).listen_address(listener));
  PostResult result;
  Send(0, NewFilled(10, 1), 0, &result);
  EXPECT_TRUE(result == PostResult::kUnknownConnection || result == PostResult::kTryAgain || result == PostResult::kOk);
  ASSERT_TRUE(AwaitEstablished(0, a_));
}

TEST_F(ConnectTest, LossOfEachPacketInTurn) {
  for (uint64_t n = 0; n < 8; ++n) {
    SCOPED_TRACE(n);
    TearDown();
    SetUp();
    network().SetHook([n](NetworkPacket& packet, Fate& fate) { fate.drop = packet.index == n; });
    std::tie(a_, b_) = world().Connect(0, 1);
    ASSERT_NE(a_, kNoConnection);
    Exchange(0, 10'000);
    EXPECT_EQ(Count(1, ConnectionEventKind::kRequest), 1u);
  }
}

TEST_F(ConnectTest, ConnectsWhileThePathOfEntropyZeroIsDead) {
  for (const bool from_client : {true, false}) {
    SCOPED_TRACE(from_client);
    TearDown();
    SetUp();
    network().SetHook([from_client](NetworkPacket& packet, Fate& fate) {
      fate.drop = packet.entropy == 0 && (packet.from == 0) == from_client;
    });
    std::tie(a_, b_) = world().Connect(0, 1);
    ASSERT_NE(a_, kNoConnection);
    Exchange(0, 10'000);
    EXPECT_EQ(Count(1, ConnectionEventKind::kRequest), 1u);
  }
}

TEST_F(ConnectTest, MostRepeatedRequestsTakeOtherPaths) {
  auto requests = std::make_shared<size_t>(0);
  auto by_entropy_zero = std::make_shared<size_t>(0);
  network().SetHook([=](NetworkPacket& packet, Fate& fate) {
    fate.drop = true;
    if (packet.from != 0) return;
    ++*requests;
    if (packet.entropy == 0) ++*by_entropy_zero;
  });
  EXPECT_EQ(world().Connect(0, 1).first, kNoConnection);
  EXPECT_GT(*by_entropy_zero, 1u);  // a firewall may permit no other path
  EXPECT_LT(*by_entropy_zero * 2, *requests);
}

TEST_F(ConnectTest, HalfOfAllPacketsLost) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    TearDown();
    SetUp();
    auto random = std::make_shared<Random>(seed);
    network().SetHook([=](NetworkPacket&, Fate& fate) { fate.drop = random->Chance(0.5); });
    const auto pair = world().Connect(0, 1);
    if (pair.first == kNoConnection) continue;  // unlikely, but all attempts may be lost
    std::tie(a_, b_) = pair;
    network().SetHook(nullptr);
    Exchange(0, 10'000);
  }
}

TEST_F(ConnectTest, DuplicatesMakeOneConnection) {
  network().SetHook([](NetworkPacket&, Fate& fate) {
    fate.copies = 4;
    fate.copy_spacing = Duration::Micros(13);
  });
  std::tie(a_, b_) = world().Connect(0, 1);
  ASSERT_NE(a_, kNoConnection);
  world().RunFor(Duration::Seconds(2));
  EXPECT_EQ(endpoint(0).connections(), 1u);
  EXPECT_EQ(endpoint(1).connections(), 1u);
  EXPECT_EQ(Count(1, ConnectionEventKind::kEstablished), 1u);
  Exchange(0, 10'000);
}

// Who is not polled before patience is at its end is told so, and does not ask without end.
TEST_F(ConnectTest, RequestsThatAreFirstPolledTooLate) {
  const ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  for (int i = 0; i < 3; ++i) ConnectTo(address);
  const Time late = now() + Duration::Seconds(6);
  auto burst = std::make_unique<TxBurst>();
  EXPECT_LE(endpoint(0).PollTransmit(0, *burst, TxBurst::kSegments, late), 3u);
  EXPECT_LE(endpoint(0).PollTimeout(), late);
  endpoint(0).HandleTimeout(late);
  std::array<ConnectionEvent, 8> events;
  ASSERT_EQ(endpoint(0).PollConnectionEvents(events), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(events[i].reason, CloseReason::kUnreachable);
}

TEST_F(ConnectTest, NobodyListens) {
  const uint32_t listener = endpoint(1).Listen();
  const ListenAddress address = endpoint(1).listen_address(listener);
  endpoint(1).CloseListener(listener);
  EXPECT_EQ(AwaitRefusal(ConnectTo(address)), CloseReason::kRefusedNoListener);
  EXPECT_GE(endpoint(1).counters().handshakes_refused, 1u);
}

TEST_F(ConnectTest, AHandleOfAnEarlierLifeIsRefused) {
  const ListenAddress old = endpoint(1).listen_address(endpoint(1).Listen());
  world().Restart(1, 77);
  const uint32_t listener = endpoint(1).Listen();
  EXPECT_NE(endpoint(1).listen_address(listener).nonce, old.nonce);
  EXPECT_EQ(AwaitRefusal(ConnectTo(old)), CloseReason::kRefusedNoListener);
  const ConnectionId good = ConnectTo(endpoint(1).listen_address(listener));
  EXPECT_TRUE(AwaitEstablished(0, good));
}

TEST_F(ConnectTest, TheApplicationMayRefuse) {
  host(1).accept_requests = false;
  const ConnectionId connection = ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));
  ASSERT_TRUE(world().RunUntil([&] { return Count(1, ConnectionEventKind::kRequest) == 1; }));
  endpoint(1).Refuse(host(1).events[0].connection, now());
  EXPECT_EQ(AwaitRefusal(connection), CloseReason::kRefusedByApplication);
  world().RunFor(Duration::Seconds(2));
  EXPECT_EQ(endpoint(1).connections(), 0u);
}

// Said once more to who asks once more: an answer may be lost.
TEST_F(ConnectTest, ARefusalOfTheApplicationThatIsLostIsRepeated) {
  host(1).accept_requests = false;
  int refusals = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (TypeOf(packet) == wire::PacketType::kRefuse) fate.drop = ++refusals == 1;
  });
  const ConnectionId connection = ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));
  ASSERT_TRUE(world().RunUntil([&] { return Count(1, ConnectionEventKind::kRequest) == 1; }));
  endpoint(1).Refuse(host(1).events[0].connection, now());
  EXPECT_EQ(AwaitRefusal(connection), CloseReason::kRefusedByApplication);
  EXPECT_EQ(refusals, 2);
  EXPECT_EQ(Count(1, ConnectionEventKind::kRequest), 1u);
}

// A port that takes nothing keeps only its own answers waiting.
TEST_F(ConnectTest, APortWithoutRoomHoldsUpNoAnswersOfOthers) {
  WorldOptions options;
  options.ports = 2;
  Start(options, false);
  const ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  world().lane(1, 0).set_room(0);
  const ConnectionId connection = ConnectTo(address);
  EXPECT_TRUE(AwaitEstablished(0, connection));
}

TEST_F(ConnectTest, AcceptingMayTakeAWhile) {
  host(1).accept_requests = false;
  const ConnectionId connection = ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));
  ASSERT_TRUE(world().RunUntil([&] { return Count(1, ConnectionEventKind::kRequest) == 1; }));
  world().RunFor(Duration::Seconds(3));
  EXPECT_EQ(Count(1, ConnectionEventKind::kRequest), 1u) << "the same request was told more than once";
  endpoint(1).Accept(host(1).events[0].connection, now());
  ASSERT_TRUE(AwaitEstablished(0, connection));
}

TEST_F(ConnectTest, AcceptingAfterTheClientGaveUp) {
  host(1).accept_requests = false;
  const ConnectionId connection = ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));
  EXPECT_EQ(AwaitRefusal(connection), CloseReason::kUnreachable);
  ASSERT_GE(Count(1, ConnectionEventKind::kRequest), 1u);
  endpoint(1).Accept(host(1).events[0].connection, now());
  world().RunFor(Duration::Seconds(40));
  EXPECT_EQ(endpoint(1).connections(), 0u) << "a connection that nobody else knows of stays for ever";
}

TEST_F(ConnectTest, NobodyThere) {
  ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  address.addresses[0] = ScriptedLane::AddressOfPort(99);
  const Time start = now();
  EXPECT_EQ(AwaitRefusal(ConnectTo(address)), CloseReason::kUnreachable);
  EXPECT_GE(now() - start, Duration::Seconds(5));
  EXPECT_LE(now() - start, Duration::Seconds(6));
  EXPECT_EQ(endpoint(0).connections(), 0u);
}

TEST_F(ConnectTest, AnotherVersionIsRefusedAndNamed) {
  network().SetHook([](NetworkPacket& packet, Fate&) {
    if (TypeOf(packet) != wire::PacketType::kInit) return;
    packet.bytes[0] = static_cast<uint8_t>((wire::kVersion + 1) << 4 | (packet.bytes[0] & 0x0f));
    Sign(packet);
  });
  const ConnectionId connection = ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));
  EXPECT_EQ(AwaitRefusal(connection), CloseReason::kRefusedVersion);
  EXPECT_FALSE(Event(0, ConnectionEventKind::kClosed, connection)->detail.empty());
  EXPECT_EQ(endpoint(1).connections(), 0u);
}

TEST_F(ConnectTest, AnotherAlgorithmIsRefusedAndNamed) {
  WorldOptions options;
  options.customize = [](uint32_t host, EndpointOptions& endpoint) {
    endpoint.congestion_control = host == 0 ? "test" : "other";
  };
  Start(options, false);
  const ConnectionId connection = ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));
  EXPECT_EQ(AwaitRefusal(connection), CloseReason::kRefusedMismatch);
}

TEST_F(ConnectTest, AFullPeerSaysSo) {
  WorldOptions options;
  options.customize = [](uint32_t host, EndpointOptions& endpoint) { endpoint.max_connections = host == 1 ? 2 : 100; };
  Start(options, false);
  const ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  const ConnectionId first = ConnectTo(address);
  ASSERT_TRUE(AwaitEstablished(0, first));
  ASSERT_TRUE(AwaitEstablished(0, ConnectTo(address)));
  EXPECT_EQ(AwaitRefusal(ConnectTo(address)), CloseReason::kRefusedFull);
  // Room again after one has ended.
  endpoint(0).Close(first, now());
  ASSERT_TRUE(world().RunUntil([&] { return Count(1, ConnectionEventKind::kClosed) == 1; }));
  world().RunFor(Duration::Seconds(1));
  EXPECT_TRUE(AwaitEstablished(0, ConnectTo(address)));
}

TEST_F(ConnectTest, AtItsOwnBoundConnectGivesNothing) {
  WorldOptions options;
  options.endpoint.max_connections = 1;
  Start(options, false);
  const ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  ASSERT_TRUE(AwaitEstablished(0, ConnectTo(address)));
  EXPECT_EQ(endpoint(0).Connect(address, now()), kNoConnection);
}

TEST_F(ConnectTest, BothWaysAtOnce) {
  const ListenAddress to0 = endpoint(0).listen_address(endpoint(0).Listen());
  const ListenAddress to1 = endpoint(1).listen_address(endpoint(1).Listen());
  const ConnectionId from0 = endpoint(0).Connect(to1, now());
  const ConnectionId from1 = endpoint(1).Connect(to0, now());
  ASSERT_TRUE(AwaitEstablished(0, from0));
  ASSERT_TRUE(AwaitEstablished(1, from1));
  world().RunFor(Duration::Millis(10));
  EXPECT_EQ(endpoint(0).connections(), 2u);
  EXPECT_EQ(endpoint(1).connections(), 2u);
  EXPECT_EQ(Count(0, ConnectionEventKind::kEstablished), 2u);
  EXPECT_EQ(Count(1, ConnectionEventKind::kEstablished), 2u);
}

// Each of them has its turn at each port, before any of them has to try again.
TEST_F(ConnectTest, ManyAtOnceOverSeveralPorts) {
  WorldOptions options;
  options.ports = 4;
  Start(options, false);
  const ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  for (int i = 0; i < 40; ++i) ConnectTo(address);
  EXPECT_TRUE(
      world().RunUntil([&] { return Count(0, ConnectionEventKind::kEstablished) == 40; }, Duration::Millis(40)));
}

TEST_F(ConnectTest, AnEndpointMayConnectToItself) {
  const ListenAddress address = endpoint(0).listen_address(endpoint(0).Listen());
  const ConnectionId connection = ConnectTo(address);
  ASSERT_TRUE(AwaitEstablished(0, connection));
  world().RunFor(Duration::Millis(1));
  EXPECT_EQ(endpoint(0).connections(), 2u);
}

// A request without a cookie costs the server nothing that stays, and its answer is no longer than the request.
TEST_F(ConnectTest, SpoofedRequestsLeaveNoState) {
  network().StartCapture();
  std::tie(a_, b_) = world().Connect(0, 1);
  ASSERT_NE(a_, kNoConnection);
  NetworkPacket init;
  for (const NetworkPacket& packet : network().captured()) {
    if (TypeOf(packet) == wire::PacketType::kInit) {
      init = packet;
      break;
    }
  }
  ASSERT_FALSE(init.bytes.empty());
  const uint64_t before = network().packets_sent();
  const size_t captured = network().captured().size();
  for (uint32_t i = 0; i < 5000; ++i) {
    NetworkPacket forged = init;
    forged.from = 1000 + i;
    std::memcpy(forged.bytes.data() + wire::kCommonBytes, &i, sizeof(i));  // client connection
    Sign(forged);
    network().Inject(forged, Duration::Micros(i));
  }
  world().RunFor(Duration::Millis(100));
  EXPECT_EQ(endpoint(1).connections(), 1u);
  EXPECT_LE(network().packets_sent() - before, 5010u);
  for (size_t i = captured; i < network().captured().size(); ++i) {
    EXPECT_LE(network().captured()[i].bytes.size(), init.bytes.size());
  }
  EXPECT_LE(world().lane(1).open_peers(), 3u) << "a stranger's address stays open";
  Exchange(0, 10'000);
}

// What a server remembers of a request goes with the cookie: connections that come and go leave no memory behind.
TEST_F(ConnectTest, OldRequestsAreForgotten) {
  constexpr int kRounds = 200;
  const ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  const auto heap_after_rounds = [&]() -> size_t {
    for (int i = 0; i < kRounds; ++i) {
      const ConnectionId connection = ConnectTo(address);
      EXPECT_TRUE(AwaitEstablished(0, connection));
      endpoint(0).Close(connection, now());
      host(0).Touch();
      world().RunFor(CookieJar::kLife + Duration::Seconds(5));
      for (const uint32_t at : {0u, 1u}) {
        EXPECT_EQ(endpoint(at).connections(), 0u);
        host(at).events.clear();
      }
    }
    return mallinfo2().uordblks;
  };
  const size_t before = heap_after_rounds();
  if (before == 0) GTEST_SKIP() << "this allocator does not say what it holds";
  EXPECT_LT(heap_after_rounds(), before + kRounds * 16);
}

// Lanes may drop what is said to strangers, and nothing else.
TEST_F(ConnectTest, WhatIsSaidToStrangersIsExpendable) {
  std::vector<NetworkPacket> requests;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (TypeOf(packet) != wire::PacketType::kInit) return;
    requests.push_back(packet);
    fate.drop = true;
  });
  ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));
  ASSERT_TRUE(world().RunUntil([&] { return !requests.empty(); }));
  const LaneAddress source = ScriptedLane::AddressOfPort(requests[0].from);
  RxSegment segment;
  segment.data = requests[0].bytes.data();
  segment.data_bytes = static_cast<uint32_t>(requests[0].bytes.size());
  segment.source = &source;
  endpoint(1).HandleSegments(0, {&segment, 1}, now());
  auto burst = std::make_unique<TxBurst>();
  ASSERT_EQ(endpoint(1).PollTransmit(0, *burst, TxBurst::kSegments, now()), 1u);
  EXPECT_TRUE(burst->segments[0].expendable);
  network().SetHook(nullptr);
  std::tie(a_, b_) = world().Connect(0, 1);
  Send(0, NewFilled(100, 1));
  ASSERT_EQ(endpoint(0).PollTransmit(0, *burst, TxBurst::kSegments, now()), 1u);
  EXPECT_FALSE(burst->segments[0].expendable);
}

// Old set-up packets that are played again change nothing.
TEST_F(ConnectTest, ReplayedSetUpPacketsChangeNothing) {
  network().StartCapture();
  std::tie(a_, b_) = world().Connect(0, 1);
  ASSERT_NE(a_, kNoConnection);
  const std::vector<NetworkPacket> captured = network().captured();
  for (int round = 0; round < 3; ++round) {
    for (const NetworkPacket& packet : captured) network().Inject(packet, Duration::Micros(round * 100));
  }
  world().RunFor(Duration::Millis(50));
  EXPECT_EQ(endpoint(0).connections(), 1u);
  Exchange(0, 10'000);
  Exchange(1, 10'000);
  world().RunFor(Duration::Seconds(60));
  EXPECT_EQ(endpoint(1).connections(), 1u) << "a replay left a connection behind";
}

// A cookie is good for one address only, and a made-up one for none.
TEST_F(ConnectTest, ACookieIsBoundToItsAddress) {
  NetworkPacket init;  // the client's request with its cookie, which never arrives
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (TypeOf(packet) != wire::PacketType::kInit) return;
    const auto parsed = wire::ParseInit(std::span(packet.bytes).subspan(wire::kCommonBytes));
    if (!parsed.has_value() || parsed->cookie == wire::Cookie{}) return;
    init = packet;
    fate.drop = true;
  });
  ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));
  ASSERT_TRUE(world().RunUntil([&] { return !init.bytes.empty(); }));
  NetworkPacket stolen = init;
  stolen.from = 4321;
  network().Inject(stolen);
  NetworkPacket forged = init;
  forged.bytes[wire::kCommonBytes + wire::kInitCookieAt] ^= 1;
  Sign(forged);
  network().Inject(forged);
  world().RunFor(Duration::Millis(10));
  EXPECT_EQ(endpoint(1).connections(), 0u);
  network().Inject(init);
  world().RunFor(Duration::Millis(10));
  EXPECT_EQ(endpoint(1).connections(), 1u);
}

// What made a connection makes no second one when that is over.
TEST_F(ConnectTest, ARequestIsGoodOnce) {
  network().StartCapture();
  a_ = ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));  // who stays open
  ASSERT_TRUE(AwaitEstablished(0, a_));
  const std::vector<NetworkPacket> captured = network().captured();
  endpoint(0).Abort(a_, now());
  world().RunFor(Duration::Seconds(3));
  ASSERT_EQ(endpoint(1).connections(), 0u);
  for (const NetworkPacket& packet : captured) network().Inject(packet);
  world().RunFor(Duration::Millis(10));
  EXPECT_EQ(endpoint(1).connections(), 0u);
}

// The answer is lost and the server closes at once: the client does not end up with another connection.
TEST_F(ConnectTest, ARequestMakesOneConnectionEvenIfItEndsAtOnce) {
  bool closed = false;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (TypeOf(packet) != wire::PacketType::kAccept) return;
    fate.drop = true;
    closed = true;
  });
  ConnectTo(endpoint(1).listen_address(endpoint(1).Listen()));
  ASSERT_TRUE(world().RunUntil([&] { return closed; }));
  endpoint(1).Close(host(1).events.back().connection, now());
  network().SetHook([](NetworkPacket& packet, Fate& fate) { fate.drop = TypeOf(packet) == wire::PacketType::kAccept; });
  world().RunFor(Duration::Seconds(3));
  network().SetHook(nullptr);
  world().RunFor(Duration::Seconds(20));
  EXPECT_EQ(Count(1, ConnectionEventKind::kRequest), 1u);
  EXPECT_EQ(Count(0, ConnectionEventKind::kEstablished), 0u);
  EXPECT_EQ(Count(0, ConnectionEventKind::kClosed), 1u);
}

// What was sent on a connection that is over is not taken for the next one's in its place.
TEST_F(ConnectTest, PacketsOfAnEarlierConnectionDoNotReachTheNext) {
  WorldOptions options;
  options.endpoint.max_connections = 1;
  Start(options, false);
  const ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  a_ = ConnectTo(address);
  ASSERT_TRUE(AwaitEstablished(0, a_));
  world().RunFor(Duration::Millis(1));
  b_ = host(1).events.back().connection;
  network().StartCapture();
  Exchange(0, 10'000);
  const std::vector<NetworkPacket> captured = network().captured();
  endpoint(0).Abort(a_, now());
  world().RunFor(Duration::Seconds(3));
  ASSERT_EQ(endpoint(1).connections(), 0u);
  const ConnectionId next = ConnectTo(address);
  ASSERT_TRUE(AwaitEstablished(0, next));
  world().RunFor(Duration::Millis(10));
  const EndpointCounters before = endpoint(1).counters();
  size_t old = 0;
  for (const NetworkPacket& packet : captured) {
    if (packet.to != 1) continue;
    network().Inject(packet);
    ++old;
  }
  world().RunFor(Duration::Millis(10));
  EXPECT_GT(old, 0u);
  EXPECT_EQ(endpoint(1).counters().rx_unknown_connection - before.rx_unknown_connection, old);
  EXPECT_EQ(endpoint(1).counters().rx_data_packets, before.rx_data_packets);
}

TEST_F(ConnectTest, PacketsForNobodyAreCountedAndDropped) {
  std::tie(a_, b_) = world().Connect(0, 1);
  network().StartCapture();
  Exchange(0, 10'000);
  const std::vector<NetworkPacket> captured = network().captured();
  const uint64_t before = endpoint(1).counters().rx_unknown_connection;
  for (NetworkPacket packet : captured) {
    if (packet.to != 1) continue;
    const uint32_t nobody = 0x7fffffff;
    std::memcpy(packet.bytes.data() + 4, &nobody, sizeof(nobody));
    Sign(packet);
    network().Inject(packet);
  }
  world().RunFor(Duration::Millis(10));
  EXPECT_GT(endpoint(1).counters().rx_unknown_connection, before);
  Exchange(0, 10'000);
}

TEST_F(ConnectTest, ConnectionNumbersAreNotUsedAgainSoon) {
  const ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  std::set<ConnectionId> seen;
  for (int i = 0; i < 50; ++i) {
    const ConnectionId connection = ConnectTo(address);
    EXPECT_TRUE(seen.insert(connection).second);
    ASSERT_TRUE(AwaitEstablished(0, connection));
    endpoint(0).Abort(connection, now());
    ASSERT_TRUE(world().RunUntil([&] { return Event(0, ConnectionEventKind::kClosed, connection) != nullptr; }));
  }
  world().RunFor(Duration::Seconds(30));
  EXPECT_EQ(endpoint(0).connections(), 0u);
  EXPECT_EQ(endpoint(1).connections(), 0u);
  EXPECT_EQ(world().lane(0).open_peers(), 0u);
  EXPECT_EQ(world().lane(1).open_peers(), 0u);
}

// More in each pass than two bursts can answer, from whom nobody has heard of: who is connected goes on.
TEST(ConnectFlood, AnswersToStrangersLeaveRoomForWhoIsConnected) {
  NoLanes lanes;
  constexpr size_t kRoom = 16;
  const PortDescription port = {PairCapabilities(1472, kRoom), LaneAddress()};
  Endpoint endpoint({.seed = 1}, NewTestCongestionControl(TestControl::kWindow, 1 << 20), &lanes, std::span(&port, 1));
  Time now = Time::FromNanos(1'000'000);
  LaneAddress address{.size = 1};
  const ConnectionId id = endpoint.ReserveConnection();
  endpoint.Establish(id, {.peer_connection = 77, .addresses = {address}}, now);
  constexpr size_t kSends = 50;
  std::vector<uint8_t> data(10'000);
  for (size_t i = 0; i < kSends; ++i) {
    ASSERT_EQ(endpoint.PostSend(id, {.buffer = {data.data(), data.size()}}, now), PostResult::kOk);
  }

  wire::InitPacket init;
  init.client_connection = 5;
  init.client_nonce = 6;
  init.listener_nonce = 7;
  init.hello.ports = 1;
  init.hello.addresses[0] = address;
  init.hello.segment_bytes = 1000;
  init.hello.algorithm = "x";
  std::vector<uint8_t> packet(1024);
  const auto bytes = static_cast<uint32_t>(wire::EncodeInit(init, packet));
  const std::vector<RxSegment> strangers(
      64, {.data_bytes = bytes, .data = packet.data(), .source = &address, .received_at = now});
  const auto burst = std::make_unique<TxBurst>();
  size_t sent = 0, answers = 0;
  for (int pass = 0; pass < 200; ++pass) {
    now = now + Duration::Micros(20);
    endpoint.HandleSegments(0, strangers, now);
    const size_t count = endpoint.PollTransmit(0, *burst, kRoom, now);
    for (size_t i = 0; i < count; ++i) ++(burst->segments[i].expendable ? answers : sent);
  }
  EXPECT_GE(sent, kSends * data.size() / 1472);
  EXPECT_GE(answers, 200u * kRoom / 4);
}

}  // namespace
}  // namespace paceline::support
