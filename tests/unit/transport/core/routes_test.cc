// Which ports of two hosts are used for a connection: those that reach each other, and where memory is shared, only
// those that share it.
#include "transport/core/routes.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/core/context.h"
#include "transport/wire/handshake.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

// Ports that reach what the test says: `reach[local]` has the remote ports. A remote port's address is its number.
class Reachability : public EndpointEnvironment {
 public:
  explicit Reachability(std::vector<std::set<uint8_t>> reach) : reach_(std::move(reach)), ports_(reach_.size()) {
    for (uint32_t i = 0; i < ports_.size(); ++i) ports_[i].index = i;
  }
  void ShareMemory(uint32_t port) { ports_[port].capabilities.shares_memory = true; }

  uint32_t OpenPeer(uint32_t port, const LaneAddress& address) override {
    if (!reach_[port].contains(address.bytes[0])) return 0;
    ++open_;
    return 100 + address.bytes[0];
  }
  void ClosePeer(uint32_t, uint32_t peer) override {
    EXPECT_NE(peer, 0u);
    --open_;
  }
  uint64_t RegisterMemory(uint32_t, const LaneMemory&) override { return 0; }
  void DeregisterMemory(uint32_t, uint64_t) override {}

  Routes Open(uint32_t remote_ports) { return OpenRoutes(*this, ports_, Addresses(remote_ports)); }
  std::vector<std::pair<int, int>> Pairs(uint32_t remote_ports) {
    std::vector<std::pair<int, int>> pairs;
    for (const PortPair& pair : PairsToTry(*this, ports_, Addresses(remote_ports))) {
      pairs.emplace_back(pair.local, pair.remote);
    }
    return pairs;
  }
  // Remote port of each local one; -1 without.
  std::vector<int> RemoteOf(uint32_t remote_ports) {
    const Routes routes = Open(remote_ports);
    std::vector<int> remotes;
    for (uint32_t port = 0; port < ports_.size(); ++port) {
      remotes.push_back(routes.handle[port] == 0 ? -1 : routes.remote_of[port]);
    }
    CloseRoutes(*this, routes);
    return remotes;
  }
  int open() const { return open_; }
  std::set<uint8_t> hidden;  // remote ports whose address is left empty

 private:
  std::vector<LaneAddress> Addresses(uint32_t remote_ports) const {
    std::vector<LaneAddress> addresses(remote_ports);
    for (uint8_t i = 0; i < remote_ports; ++i) {
      if (hidden.contains(i)) continue;
      addresses[i].size = 1;
      addresses[i].bytes[0] = i;
    }
    return addresses;
  }
  std::vector<std::set<uint8_t>> reach_;
  std::vector<Port> ports_;
  int open_ = 0;
};

TEST(Routes, LikePortsPairUpInTurn) {
  Reachability all({{0, 1, 2}, {0, 1, 2}, {0, 1, 2}});
  EXPECT_EQ(all.RemoteOf(3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(all.RemoteOf(2), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(all.open(), 0);
}

TEST(Routes, PlanesStayApart) {
  Reachability planes({{0, 2}, {1, 3}, {0, 2}, {1, 3}});
  EXPECT_EQ(planes.RemoteOf(4), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Routes, PortsOfAnotherKindAreSkipped) {
  Reachability network_only({{1, 2}, {1, 2}});
  EXPECT_EQ(network_only.RemoteOf(3), (std::vector<int>{1, 2}));
  Reachability two_families({{0}, {1}});
  EXPECT_EQ(two_families.RemoteOf(2), (std::vector<int>{0, 1}));
  EXPECT_EQ(two_families.RemoteOf(1), (std::vector<int>{0, -1}));
  EXPECT_EQ(two_families.Open(1).Reach(), 1u);
}

TEST(Routes, AnEmptyAddressIsNotUsed) {
  Reachability all({{0, 1}, {0, 1}});
  all.hidden = {0};
  EXPECT_EQ(all.RemoteOf(2), (std::vector<int>{1, 1}));
}

TEST(Routes, SharedMemoryLeavesTheNetworkOut) {
  Reachability host({{0}, {1, 2}, {1, 2}});
  host.ShareMemory(0);
  EXPECT_EQ(host.RemoteOf(3), (std::vector<int>{0, -1, -1}));
  EXPECT_EQ(host.Pairs(3),
            (std::vector<std::pair<int, int>>{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 1}, {2, 2}, {1, 2}, {2, 1}}));
  host.hidden = {0};  // a peer elsewhere
  EXPECT_EQ(host.RemoteOf(3), (std::vector<int>{-1, 1, 2}));
}

TEST(Routes, EveryPairIsTriedAndOursFirst) {
  Reachability all({{0, 1}, {0, 1}});
  EXPECT_EQ(all.Pairs(2), (std::vector<std::pair<int, int>>{{0, 0}, {1, 1}, {0, 1}, {1, 0}}));
  Reachability nothing({{}, {}});
  EXPECT_TRUE(nothing.Pairs(2).empty());
  EXPECT_EQ(nothing.Open(2).Reach(), 0u);
}

// Two hosts with a port of shared memory (0) and two of a network (1, 2).
class MixedPortsTest : public CoreFixture {
 protected:
  static constexpr uint32_t kPorts = 3;
  static constexpr uint32_t kSharedPacket = 16384;

  // `there`, `back`: the memory of the other host is within reach, of host 0 and of host 1.
  void StartMixed(bool there, bool back) {
    WorldOptions options;
    options.ports = kPorts;
    options.control = TestControl::kCredit;
    options.customize_lane = [](uint32_t port, LaneCapabilities& capabilities) {
      capabilities.shares_memory = port == 0;
      if (port == 0) capabilities.max_packet_bytes = kSharedPacket;
    };
    Start(options, false);
    for (uint32_t at = 0; at < 2; ++at) {
      for (uint32_t port = 0; port < kPorts; ++port) {
        const bool memory = at == 0 ? there : back;
        world().lane(at, port).set_reach([port, memory](uint32_t remote) {
          const bool shared = remote % kPorts == 0;
          return port == 0 ? shared && memory : !shared;
        });
      }
    }
    Connect();
  }
  // With a cluster key, a port of shared memory (0) and one of the network (1), each within reach of its like; the test
  // connects.
  void StartProtected() {
    WorldOptions options;
    options.endpoint.cluster_key.emplace().fill(7);
    options.ports = 2;
    options.customize_lane = [](uint32_t port, LaneCapabilities& capabilities) {
      capabilities.shares_memory = port == 0;
    };
    Start(options, false);
    for (uint32_t at = 0; at < 2; ++at) {
      for (uint32_t port = 0; port < 2; ++port) {
        world().lane(at, port).set_reach([port](uint32_t remote) { return remote % 2 == port; });
      }
    }
  }
  uint64_t SentOn(uint32_t at, uint32_t port) { return world().lane(at, port).counters().tx_packets; }
};

TEST_F(MixedPortsTest, PeersOfOneHostUseSharedMemoryAlone) {
  StartMixed(true, true);
  Exchange(0, 1'000'000);
  Exchange(1, 1'000'000);
  for (uint32_t at = 0; at < 2; ++at) {
    EXPECT_GT(SentOn(at, 0), 1'000'000u / kSharedPacket);
    EXPECT_LT(SentOn(at, 0), 4'000'000u / kSharedPacket) << "small segments";
    EXPECT_EQ(SentOn(at, 1) + SentOn(at, 2), 0u);
  }
}

TEST_F(MixedPortsTest, PeersElsewhereUseTheNetworkAlone) {
  StartMixed(false, false);
  Exchange(0, 1'000'000);
  Exchange(1, 1'000'000);
  for (uint32_t at = 0; at < 2; ++at) {
    EXPECT_EQ(SentOn(at, 0), 0u);
    EXPECT_GT(SentOn(at, 1), 50u);
    EXPECT_GT(SentOn(at, 2), 50u);
  }
}

TEST_F(MixedPortsTest, ThePortsOfTheNetworkStandInForEachOtherAndNotForSharedMemory) {
  StartMixed(false, false);
  network().SetPortUp(world().lane(0, 1).port(), false);
  Exchange(0, 1'000'000);
  EXPECT_EQ(SentOn(0, 0), 0u);
  EXPECT_GT(SentOn(0, 2), 100u);
}

TEST_F(MixedPortsTest, WhereMemoryIsReachedOneWayOnlyTheNetworkIsUsed) {
  StartMixed(true, false);
  const uint64_t requests = SentOn(0, 0);
  EXPECT_GT(requests, 0u);
  Exchange(0, 1'000'000);
  EXPECT_EQ(SentOn(0, 0), requests);
  EXPECT_GT(SentOn(0, 1), 50u);
}

TEST_F(MixedPortsTest, WhatThePeerAnswersLateIsNotMixedWithALaterTry) {
  StartProtected();
  host(1).Stall(Duration::Millis(900));  // by then the network has been tried too
  const uint32_t listener = endpoint(1).Listen();
  endpoint(0).Connect(endpoint(1).listen_address(listener), now());
  EXPECT_TRUE(world().RunUntil([&] { return !host(0).events.empty(); }));
  EXPECT_EQ(host(0).events[0].kind, ConnectionEventKind::kEstablished) << host(0).events[0].detail;
}

// Once the peer may have taken a request, further tries are of the kind of port that it came by: it would not know a
// request with other ports for the same one.
TEST_F(MixedPortsTest, WhileAnswersAreLostTheRequestStaysTheSame) {
  StartProtected();
  int lost = 0;
  std::set<uint32_t> ports;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
    if (!common.has_value()) return;
    if (common->type == wire::PacketType::kInit) {
      const wire::Hello hello = wire::ParseInit(wire::BodyOf(packet.bytes))->hello;
      uint32_t named = 0;
      for (uint32_t port = 0; port < hello.ports; ++port) named |= hello.addresses[port].size > 0 ? 1u << port : 0;
      ports.insert(named);
    }
    if (common->type == wire::PacketType::kAccept && lost < 6) {
      ++lost;
      fate.drop = true;
    }
  });
  const uint32_t listener = endpoint(1).Listen();
  endpoint(0).Connect(endpoint(1).listen_address(listener), now());
  EXPECT_TRUE(world().RunUntil([&] { return !host(0).events.empty(); }));
  EXPECT_EQ(host(0).events[0].kind, ConnectionEventKind::kEstablished) << host(0).events[0].detail;
  EXPECT_EQ(lost, 6);
  EXPECT_EQ(ports, std::set<uint32_t>{1}) << "shared memory";
}

// A request that names no address which the server could answer to, though it came from one.
TEST_F(MixedPortsTest, WhoNamesNoWayBackIsRefusedAndToldWhy) {
  Start(WorldOptions(), false);
  network().SetHook([](NetworkPacket& packet, Fate&) {
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
    if (!common.has_value() || common->type != wire::PacketType::kInit) return;
    auto init = wire::ParseInit(wire::BodyOf(packet.bytes));
    ASSERT_TRUE(init.has_value());
    init->hello.addresses.fill(LaneAddress());
    packet.bytes.resize(limits::kMaxControlBytes);
    packet.bytes.resize(wire::EncodeInit(*init, packet.bytes));
    packet.header_bytes = static_cast<uint32_t>(packet.bytes.size());
  });
  endpoint(0).Connect(endpoint(1).listen_address(endpoint(1).Listen()), now());
  EXPECT_TRUE(world().RunUntil([&] { return !host(0).events.empty(); }));
  ASSERT_EQ(host(0).events[0].kind, ConnectionEventKind::kClosed);
  EXPECT_EQ(host(0).events[0].reason, CloseReason::kRefusedNoRoute);
  EXPECT_EQ(endpoint(1).connections(), 0u);
}

TEST_F(MixedPortsTest, APeerThatNoPortReachesIsAskedForUntilThePatienceEnds) {
  WorldOptions options;
  options.endpoint.connect_timeout = Duration::Millis(400);
  Start(options, false);
  bool reachable = false;
  world().lane(0).set_reach([&reachable](uint32_t) { return reachable; });
  const uint32_t listener = endpoint(1).Listen();
  endpoint(0).Connect(endpoint(1).listen_address(listener), now());
  EXPECT_TRUE(world().RunUntil([&] { return !host(0).events.empty(); }));
  ASSERT_EQ(host(0).events[0].kind, ConnectionEventKind::kClosed);
  EXPECT_EQ(host(0).events[0].reason, CloseReason::kUnreachable);
  EXPECT_NE(host(0).events[0].detail.find("none of our ports"), std::string::npos) << host(0).events[0].detail;
  host(0).events.clear();

  endpoint(0).Connect(endpoint(1).listen_address(listener), now());
  world().RunFor(Duration::Millis(60));
  reachable = true;  // it was not ready yet
  EXPECT_TRUE(world().RunUntil([&] { return !host(0).events.empty(); }));
  EXPECT_EQ(host(0).events[0].kind, ConnectionEventKind::kEstablished);
}

}  // namespace
}  // namespace paceline::support
