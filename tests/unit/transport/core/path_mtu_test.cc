// Paths that take smaller packets than the ports at their ends: found out while a connection is set up, in both
// directions, whatever is lost; and what that costs where nothing is in the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "tests/support/core_fixture.h"
#include "transport/base/random.h"
#include "transport/wire/handshake.h"

namespace paceline::support {
namespace {

constexpr uint32_t kPortBytes = 9172;
constexpr uint32_t kNoPayload = 400;  // less than any network's least packet

wire::PacketType TypeOf(const NetworkPacket& packet) {
  return packet.bytes.empty() ? wire::PacketType::kInvalid : static_cast<wire::PacketType>(packet.bytes[0] & 0x0f);
}

class PathMtuTest : public CoreFixture {
 protected:
  static WorldOptions Jumbo() {
    WorldOptions options;
    options.packet_capabilities.max_packet_bytes = kPortBytes;
    options.packet_capabilities.path_may_be_narrower = true;
    options.packet_capabilities.overtaking = Overtaking::kShort;
    return options;
  }
  // Drops what is larger, by the host that sent it, and whatever `lost` says.
  void Narrow(uint32_t from_client, uint32_t from_server,
              const std::function<bool(const NetworkPacket&)>& lost = nullptr) {
    network().SetHook([this, from_client, from_server, lost](NetworkPacket& packet, Fate& fate) {
      const auto bytes = static_cast<uint32_t>(packet.bytes.size());
      fate.drop = bytes > (packet.from == 0 ? from_client : from_server) || (lost && lost(packet));
      if (!fate.drop && packet.payload_bytes > 0 && TypeOf(packet) == wire::PacketType::kData) {
        largest_[packet.from] = std::max(largest_[packet.from], bytes);
      }
    });
  }
  // Connects, and has a message of many packets go each way.
  void ConnectAndExchange() {
    Connect();
    ASSERT_NE(a_, kNoConnection);
    const uint64_t before = Retransmits();
    Exchange(0, 100'000);
    Exchange(1, 100'000);
    EXPECT_EQ(Retransmits(), before);
  }
  // A message is under way over a path that takes no payload as of just now, but for control packets.
  void BeginOutage() {
    Start(Jumbo(), false);
    Narrow(kPortBytes, kPortBytes);
    ConnectAndExchange();
    sent_ = Send(0, NewFilled(100'000, 1));
    received_ = Receive(1, NewBuffer(100'000));
    Narrow(kNoPayload, kNoPayload);
  }
  void EndOutage() {
    Narrow(kPortBytes, kPortBytes);
    AwaitOk(0, sent_);
    AwaitOk(1, received_);
  }
  uint64_t Retransmits() { return endpoint(0).counters().retransmits + endpoint(1).counters().retransmits; }
  size_t Captured(uint32_t from, wire::PacketType type) {
    return static_cast<size_t>(
        std::count_if(network().captured().begin(), network().captured().end(),
                      [&](const NetworkPacket& packet) { return packet.from == from && TypeOf(packet) == type; }));
  }

  uint64_t sent_ = 0, received_ = 0;
  std::map<uint32_t, uint32_t> largest_;  // data packet that got through, by the port that sent it
};

TEST_F(PathMtuTest, WhereThePortsLargestPassesOneMoreRequestIsAllItCosts) {
  Start(Jumbo(), false);
  network().StartCapture();
  Narrow(kPortBytes, kPortBytes);
  ConnectAndExchange();
  EXPECT_EQ(Captured(0, wire::PacketType::kInit), 3u);  // plain, as large as can be, with the cookie
  EXPECT_EQ(Captured(1, wire::PacketType::kCookie), 2u);
  EXPECT_EQ(endpoint(0).counters().paths_narrower, 0u);
  EXPECT_GT(largest_[0], kPortBytes - 96);
  EXPECT_GT(largest_[1], kPortBytes - 96);
}

TEST_F(PathMtuTest, PortsThatKnowTheirWaySendOneRequest) {
  WorldOptions options = Jumbo();
  options.packet_capabilities.path_may_be_narrower = false;
  Start(options, false);
  network().StartCapture();
  ConnectAndExchange();
  EXPECT_EQ(Captured(0, wire::PacketType::kInit), 2u);
  EXPECT_EQ(Captured(1, wire::PacketType::kCookie), 1u);
  for (const NetworkPacket& packet : network().captured()) {
    if (TypeOf(packet) == wire::PacketType::kData) continue;
    EXPECT_EQ(packet.payload_bytes, 0u);
  }
}

TEST_F(PathMtuTest, ANarrowPathGetsPacketsThatFitExactly) {
  for (const uint32_t limit : {600u, 1232u, 1422u, 1472u, 4068u, 8922u, kPortBytes - 1}) {
    SCOPED_TRACE(limit);
    largest_.clear();
    Start(Jumbo(), false);
    Narrow(limit, limit);
    ConnectAndExchange();
    EXPECT_EQ(endpoint(0).counters().paths_narrower, 1u);
    EXPECT_EQ(endpoint(1).counters().paths_narrower, 0u);
    for (const uint32_t from : {0u, 1u}) {
      EXPECT_LE(largest_[from], limit);
      EXPECT_GT(largest_[from], limit - 96);
    }
    CoreFixture::TearDown();
  }
}

// In virtual time, with 10 us there and back.
TEST_F(PathMtuTest, ASearchTakesLessThanTwentyMilliseconds) {
  for (const uint32_t limit : {kPortBytes, 1472u, 8922u, 600u}) {
    Start(Jumbo(), false);
    Narrow(limit, limit);
    const Time begin = now();
    Connect();
    ASSERT_NE(a_, kNoConnection);
    const Duration took = now() - begin;
    RecordProperty("us_" + std::to_string(limit), static_cast<int>(took.nanos() / 1000));
    EXPECT_LE(took, limit == kPortBytes ? Duration::Micros(100) : Duration::Millis(20)) << limit;
    CoreFixture::TearDown();
  }
}

// A second pair of ports whose path nobody has measured: what is lost there arrives by the other.
TEST_F(PathMtuTest, ANarrowerSecondRailHoldsNothingUp) {
  WorldOptions options = Jumbo();
  options.ports = 2;
  Start(options, false);
  network().SetHook(
      [](NetworkPacket& packet, Fate& fate) { fate.drop = packet.from % 2 == 1 && packet.bytes.size() > 1472; });
  Connect();
  ASSERT_NE(a_, kNoConnection);
  for (int i = 0; i < 20; ++i) {
    Exchange(0, 500'000);
    Exchange(1, 500'000);
  }
  EXPECT_EQ(endpoint(0).counters().paths_narrower, 0u);
  EXPECT_GT(endpoint(0).counters().retransmits, 0u);
  EXPECT_LE(endpoint(0).counters().retransmits, endpoint(0).counters().tx_data_packets / 3);
}

TEST_F(PathMtuTest, TheNarrowerDirectionCounts) {
  for (const auto& [out, back] :
       {std::pair(kPortBytes, 1472u), std::pair(1472u, kPortBytes), std::pair(4000u, 3000u)}) {
    SCOPED_TRACE(out);
    largest_.clear();
    Start(Jumbo(), false);
    Narrow(out, back);
    ConnectAndExchange();
    for (const uint32_t from : {0u, 1u}) {
      EXPECT_LE(largest_[from], std::min(out, back));
      EXPECT_GT(largest_[from], std::min(out, back) - 96);
    }
    CoreFixture::TearDown();
  }
}

TEST_F(PathMtuTest, AServerWithASmallerPort) {
  WorldOptions options = Jumbo();
  options.ports = 1;
  bool client = true;  // lanes are made host by host
  options.customize_lane = [&client](uint32_t, LaneCapabilities& capabilities) {
    if (!std::exchange(client, false)) capabilities.max_packet_bytes = 1472;
  };
  Start(options, false);
  Narrow(1472, 1472);
  ConnectAndExchange();
  EXPECT_GT(largest_[0], 1472u - 96);
  EXPECT_GT(largest_[1], 1472u - 96);
}

// A server on loopback, reached from the same machine's other interface: its own lane knows its way.
TEST_F(PathMtuTest, AServerWhoseOwnPortKnowsItsWayAnswersInSize) {
  WorldOptions options = Jumbo();
  bool client = true;  // lanes are made host by host
  options.customize_lane = [&client](uint32_t, LaneCapabilities& capabilities) {
    capabilities.path_may_be_narrower = std::exchange(client, false);
  };
  Start(options, false);
  Narrow(kPortBytes, kPortBytes);
  ConnectAndExchange();
  EXPECT_GT(largest_[0], kPortBytes - 96);
}

TEST_F(PathMtuTest, WithAClusterKey) {
  for (const bool encrypt : {false, true}) {
    SCOPED_TRACE(encrypt);
    WorldOptions options = Jumbo();
    options.endpoint.cluster_key.emplace().fill(7);
    options.endpoint.encrypt = encrypt;
    options.customize = [](uint32_t host, EndpointOptions& endpoint) {
      endpoint.key_seed.fill(static_cast<uint8_t>(host + 1));
    };
    Start(options, false);
    Narrow(1472, 1472);
    ConnectAndExchange();
    EXPECT_EQ(endpoint(0).counters().rx_forged + endpoint(1).counters().rx_forged, 0u);
    CoreFixture::TearDown();
  }
}

TEST_F(PathMtuTest, AQueueThatTakesOnePacketAtATime) {
  Start(Jumbo(), false);
  world().lane(0).set_room(1);
  world().lane(1).set_room(1);
  Narrow(1472, 1472);
  ConnectAndExchange();
  EXPECT_GT(largest_[0], 1472u - 96);
}

TEST_F(PathMtuTest, LossOfEachPacketInTurn) {
  for (const uint32_t limit : {1472u, kPortBytes}) {
    for (uint64_t n = 0; n < 24; ++n) {
      SCOPED_TRACE(n);
      largest_.clear();
      Start(Jumbo(), false);
      Narrow(limit, limit, [n](const NetworkPacket& packet) { return packet.index == n; });
      Connect();
      ASSERT_NE(a_, kNoConnection);
      network().SetHook([](NetworkPacket&, Fate&) {});
      Narrow(limit, limit);
      Exchange(0, 100'000);
      EXPECT_LE(largest_[0], limit);
      EXPECT_GT(largest_[0], limit - 96) << "one lost packet made the path narrower";
      CoreFixture::TearDown();
    }
  }
}

// A third of all packets: few give up, and none takes more than passes.
TEST_F(PathMtuTest, ManyPacketsLost) {
  uint32_t connected = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    largest_.clear();
    Start(Jumbo(), false);
    auto random = std::make_shared<Random>(seed);
    Narrow(1472, 1472, [random](const NetworkPacket&) { return random->Chance(0.3); });
    std::tie(a_, b_) = world().Connect(0, 1);
    if (a_ != kNoConnection) {
      ++connected;
      Narrow(1472, 1472);
      Exchange(0, 50'000);
      Exchange(1, 50'000);
      EXPECT_LE(largest_[0], 1472u);
    }
    CoreFixture::TearDown();
  }
  EXPECT_GE(connected, 95u);
}

// The peer may have taken the first request with the cookie: none after it says anything else.
TEST_F(PathMtuTest, WhatWasAskedForIsNotChanged) {
  WorldOptions options = Jumbo();
  options.ports = 2;
  options.customize_lane = [](uint32_t port, LaneCapabilities& capabilities) {
    capabilities.path_may_be_narrower = port == 0;
  };
  Start(options, false);
  network().StartCapture();
  bool narrow = true;
  uint32_t accepts = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (TypeOf(packet) == wire::PacketType::kAccept) {
      fate.drop = ++accepts <= 3;
      narrow = false;  // the route has changed
    }
    if (narrow) fate.drop = packet.bytes.size() > 1472;
  });
  Connect();
  ASSERT_NE(a_, kNoConnection);
  EXPECT_EQ(accepts, 4u);
  std::set<uint32_t> segments;
  for (const NetworkPacket& packet : network().captured()) {
    if (TypeOf(packet) != wire::PacketType::kInit) continue;
    const auto init = wire::ParseInit(std::span(packet.bytes).first(packet.header_bytes).subspan(wire::kCommonBytes));
    ASSERT_TRUE(init.has_value());
    if (init->cookie != wire::Cookie{}) segments.insert(init->hello.segment_bytes);
  }
  EXPECT_EQ(segments, std::set<uint32_t>{1472 - 96});
  Exchange(0, 100'000);
  Exchange(1, 100'000);
}

// Answers that come late, or twice, call for nothing once the search is over.
TEST_F(PathMtuTest, TheCookieIsSentOnce) {
  Start(Jumbo(), false);
  network().StartCapture();
  network().SetHook([](NetworkPacket& packet, Fate& fate) {
    if (TypeOf(packet) == wire::PacketType::kCookie) {
      fate.copies = 3;
      fate.copy_spacing = Duration::Micros(300);
    }
    if (TypeOf(packet) == wire::PacketType::kAccept) fate.extra_delay = Duration::Millis(5);
  });
  Connect();
  ASSERT_NE(a_, kNoConnection);
  EXPECT_EQ(Captured(0, wire::PacketType::kInit), 3u);
}

TEST_F(PathMtuTest, ASilentPeerIsNoNarrowPath) {
  for (const Duration heard : {Duration(), Duration::Micros(500)}) {  // nothing at first, or the first answers
    largest_.clear();
    Start(Jumbo(), false);
    Narrow(heard > Duration() ? 1472 : kPortBytes, kPortBytes, [this, heard](const NetworkPacket&) {
      return now() >= Time() + heard && now() < Time() + Duration::Millis(700);
    });
    ConnectAndExchange();
    EXPECT_GT(largest_[0], (heard > Duration() ? 1472 : kPortBytes) - 96);
    CoreFixture::TearDown();
  }
}

TEST_F(PathMtuTest, AnAnswerIsNeverLargerThanWhatItAnswers) {
  Start(Jumbo(), false);
  network().StartCapture();
  Narrow(4000, kPortBytes);
  Connect();
  uint64_t asked = 0, answered = 0;
  for (const NetworkPacket& packet : network().captured()) {
    const bool fits = packet.from != 0 || packet.bytes.size() <= 4000;
    if (TypeOf(packet) == wire::PacketType::kInit && fits) asked += packet.bytes.size();
    if (TypeOf(packet) == wire::PacketType::kCookie) answered += packet.bytes.size();
    ASSERT_LE(answered, asked);
    for (size_t i = packet.header_bytes; TypeOf(packet) != wire::PacketType::kData && i < packet.bytes.size(); ++i) {
      ASSERT_EQ(packet.bytes[i], 0) << "padding that says something";
    }
  }
  EXPECT_GT(answered, 0u);
}

// Control packets still pass, and the peer answers: but nobody waits for ever for data that cannot arrive.
TEST_F(PathMtuTest, APathThatTakesNoPayloadEndsTheConnection) {
  BeginOutage();
  const Time begin = now();
  EXPECT_EQ(Await(0, sent_).status, OperationStatus::kPeerLost);
  EXPECT_GE(now() - begin, EndpointOptions().peer_timeout);
  EXPECT_LE(now() - begin, EndpointOptions().peer_timeout + Duration::Seconds(1));
  const ConnectionEvent* closed = Event(0, ConnectionEventKind::kClosed, a_);
  ASSERT_NE(closed, nullptr);
  EXPECT_NE(closed->detail.find("smaller packets"), std::string::npos) << closed->detail;
}

// The same where the peer does not know fragments.
TEST_F(PathMtuTest, WithoutFragmentsANarrowerPathEndsTheConnection) {
  Start(Jumbo(), false);
  a_ = endpoint(0).ReserveConnection();
  b_ = endpoint(1).ReserveConnection();
  for (const uint32_t host : {0u, 1u}) {
    EstablishedPeer peer{.peer_connection = connection(1 - host), .fragments = false};
    peer.addresses = {world().lane(1 - host).address()};
    endpoint(host).Establish(connection(host), peer, now());
  }
  Exchange(0, 100'000);
  Narrow(4000, 4000);
  const uint64_t sent = Send(0, NewFilled(100'000, 1));
  Receive(1, NewBuffer(100'000));
  EXPECT_EQ(Await(0, sent).status, OperationStatus::kPeerLost);
  largest_.clear();
  ConnectAndExchange();
  EXPECT_LE(largest_[0], 4000u);
}

// An outage that ends in time is forgotten, however soon the patience would have been at its end.
TEST_F(PathMtuTest, APathThatIsNarrowForAWhileEndsNothing) {
  BeginOutage();
  const uint64_t before = endpoint(0).counters().tx_packets;
  world().RunFor(Duration::Seconds(8));
  EXPECT_GT(endpoint(0).counters().timeouts, 5u);
  EXPECT_LT(endpoint(0).counters().tx_packets - before, 400u) << "few packets try the path, ever more seldom";
  EndOutage();
  for (int i = 0; i < 40; ++i) {
    const uint64_t early = Send(0, NewFilled(50'000, 2));
    world().RunFor(Duration::Millis(300));
    AwaitOk(1, Receive(1, NewBuffer(50'000)));
    AwaitOk(0, early);
  }
}

// Nor does a pause of our own count: what has come meanwhile is only heard after it.
TEST_F(PathMtuTest, AnOutageWithAPauseBehindItEndsNothing) {
  BeginOutage();
  world().RunFor(Duration::Seconds(1));
  host(0).Stall(Duration::Millis(9500));
  world().RunFor(Duration::Seconds(9));
  EndOutage();
}

TEST_F(PathMtuTest, APeerThatIsNotReadyForLongIsNoNarrowPath) {
  WorldOptions options = Jumbo();
  options.endpoint.unexpected_bytes = 16'384;
  Start(options, false);
  Narrow(kPortBytes, kPortBytes);
  ConnectAndExchange();
  std::vector<uint64_t> sent;
  for (int i = 0; i < 200; ++i) sent.push_back(Send(0, NewFilled(12'000, 3)));
  world().RunFor(Duration::Seconds(100));
  for (size_t i = 0; i < sent.size(); ++i) AwaitOk(1, Receive(1, NewBuffer(12'000)));
  for (const uint64_t one : sent) AwaitOk(0, one);
}

// Acknowledgements that ride on packets do not make them longer than what passes.
TEST_F(PathMtuTest, BothWaysAtOnce) {
  WorldOptions options = Jumbo();
  options.endpoint.ack_every = 2;
  Start(options, false);
  Narrow(1472, 1472);
  Connect();
  ASSERT_NE(a_, kNoConnection);
  GuardedBuffer& target = NewFilled(300'000, 9);
  const RemoteMemory remote = Export(1, target, kRemoteRead);
  for (int i = 0; i < 10; ++i) {
    for (const uint32_t at : {0u, 1u}) {
      Receive(at, NewBuffer(300'000));
      Send(at, NewFilled(300'000, 4));
    }
    Read(0, NewBuffer(300'000), remote);
  }
  AwaitAll();
  EXPECT_EQ(Retransmits(), 0u);
}

// Loss however heavy is no such path, as long as anything arrives.
TEST_F(PathMtuTest, HeavyLossForLongEndsNothing) {
  WorldOptions options = Jumbo();
  options.endpoint.peer_timeout = Duration::Millis(50);
  options.control_bytes = 64 * 1024;
  Start(options, false);
  Connect();
  auto random = std::make_shared<Random>(7);
  HookData([random](const wire::DataHeader&, NetworkPacket&, Fate& fate) { fate.drop = random->Chance(0.5); });
  const Time begin = now();
  while (now() - begin < Duration::Millis(500)) Exchange(0, 1'000'000);
  EXPECT_GT(endpoint(0).counters().retransmits, 1000u);
}

// A pair of ports that is down is left for the next one, which is searched by itself.
TEST_F(PathMtuTest, ThePairThatAnswersIsSearched) {
  WorldOptions options = Jumbo();
  options.ports = 2;
  Start(options, false);
  network().SetPortUp(2, false);  // the server's first
  network().SetHook([](NetworkPacket& packet, Fate& fate) { fate.drop = packet.bytes.size() > 1472; });
  Connect();
  ASSERT_NE(a_, kNoConnection);
  Exchange(0, 100'000);
  Exchange(1, 100'000);
  EXPECT_EQ(endpoint(0).counters().paths_narrower, 1u);
}

// Where bytes bound a burst it holds more of smaller packets, all on one path.
TEST_F(PathMtuTest, BurstsHoldAsManyBytesOfSmallerPackets) {
  WorldOptions options = Jumbo();
  options.packet_capabilities.burst_segments = 7;
  options.packet_capabilities.burst_bytes = 65'507;
  Start(options, false);
  Narrow(1472, 1472);
  Connect();
  ASSERT_NE(a_, kNoConnection);
  network().StartCapture();
  Exchange(0, 400'000);
  size_t in_row = 0, longest = 0;
  const NetworkPacket* last = nullptr;
  for (const NetworkPacket& packet : network().captured()) {
    if (packet.from != 0 || TypeOf(packet) != wire::PacketType::kData) continue;
    in_row = last != nullptr && last->entropy == packet.entropy ? in_row + 1 : 1;
    longest = std::max(longest, in_row);
    last = &packet;
  }
  EXPECT_EQ(longest, 65'507u / 1472);
}

TEST_F(PathMtuTest, OrderedPlacementKeepsItsLines) {
  WorldOptions options = Jumbo();
  options.endpoint.ordered_placement = true;
  Start(options, false);
  Narrow(1472, 1472);
  ConnectAndExchange();
  EXPECT_GT(largest_[0], 1280u);
}

}  // namespace
}  // namespace paceline::support
