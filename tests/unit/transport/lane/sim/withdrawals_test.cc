#include "transport/lane/sim/withdrawals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transport/base/random.h"
#include "transport/lane/sim/faults.h"

namespace paceline::sim {
namespace {

constexpr Picos kDelay = 1000;

TopologyConfig FatTree() {
  TopologyConfig config;
  config.kind = TopologyKind::kFatTree;
  config.hosts = 128;
  return config;
}

TopologyConfig Dragonfly(DragonflyRouting routing, uint32_t hosts, uint32_t global_links) {
  TopologyConfig config;
  config.kind = TopologyKind::kDragonfly;
  config.hosts = hosts;
  config.pod_size = 8;
  config.tor_radix = 2;
  config.global_links = global_links;
  config.routing = routing;
  return config;
}

// A fabric with links that are down, and its routing.
class Damaged {
 public:
  explicit Damaged(const TopologyConfig& config, Picos delay = kDelay)
      : topology_(*Topology::Create(config)), withdrawals_(topology_, delay), down_(topology_.links().size()) {}

  const Topology& topology() const { return topology_; }
  Withdrawals& withdrawals() { return withdrawals_; }

  // Both directions of each link that the target names.
  Picos Set(const std::string& target, bool down, Picos now) {
    Random random(1);
    const auto ports = ResolveTarget(target, topology_, random);
    EXPECT_TRUE(ports.ok()) << ports.status();
    Picos update_at = kNeverPicos;
    for (uint32_t port : *ports) update_at = SetPort(port, down, now);
    return update_at;
  }
  Picos SetPort(uint32_t port, bool down, Picos now) {
    down_[port] = down;
    return withdrawals_.OnLinkChange(port, down, now);
  }
  void TakeDown(const std::string& target) { withdrawals_.Update(Set(target, true, 0)); }

  bool IsDown(const std::vector<uint32_t>& path) const {
    for (uint32_t port : path) {
      if (down_[port] || down_[topology_.links()[port].reverse]) return true;
    }
    return false;
  }
  // As Topology::Path, by the routing that there is now; ends at a link that is down, and after a hundred links.
  std::vector<uint32_t> Path(uint32_t source, uint32_t destination, uint32_t route_hash) {
    std::vector<uint32_t> path = {source};
    while (topology_.links()[path.back()].to != destination && !IsDown({path.back()}) && path.size() < 100) {
      const SwitchInfo& s = topology_.switch_of_node(topology_.links()[path.back()].to);
      const uint32_t slot = topology_.slot_of(destination);
      path.push_back(withdrawals_.any() ? withdrawals_.Route(s, slot, route_hash)
                                        : topology_.Route(s, slot, route_hash));
    }
    return path;
  }
  bool Arrives(const std::vector<uint32_t>& path, uint32_t destination) const {
    return topology_.links()[path.back()].to == destination && !IsDown(path);
  }
  std::string NameOf(uint32_t port) const { return topology_.PortName(port); }

 private:
  const Topology topology_;
  Withdrawals withdrawals_;
  std::vector<bool> down_;
};

uint32_t HashOf(uint32_t source, uint32_t destination, uint32_t entropy) {
  return Topology::RouteHash(source, destination, entropy, 1);
}

TEST(WithdrawalsTest, AllPacketsArriveBesideADeadUplinkAndOthersKeepTheirPath) {
  Damaged fabric(FatTree());
  fabric.TakeDown("tor:0/up:0");
  // From the switch's own hosts, to them from its pod and from other pods, and where the link has no part in it.
  for (const auto& [a, b] : {std::pair{0u, 5u}, {1u, 100u}, {5u, 2u}, {77u, 3u}, {20u, 40u}}) {
    for (uint32_t entropy = 0; entropy < 200; ++entropy) {
      const uint32_t hash = HashOf(a, b, entropy);
      const std::vector<uint32_t> usual = fabric.topology().Path(a, b, hash), path = fabric.Path(a, b, hash);
      EXPECT_TRUE(fabric.Arrives(path, b)) << a << " to " << b;
      EXPECT_EQ(path.size(), usual.size());
      EXPECT_TRUE(fabric.IsDown(usual) || path == usual) << a << " to " << b;
    }
  }
}

// The link is dead two switches further on: the sender's switch leaves out the way there for these hosts alone.
TEST(WithdrawalsTest, ARemoteSwitchAvoidsANextHopForWhatItCannotReachAlone) {
  Damaged fabric(FatTree());
  fabric.TakeDown("tor:0/up:0");
  std::map<std::string, int> to_dead, to_neighbour;
  for (uint32_t entropy = 0; entropy < 4000; ++entropy) {
    ++to_dead[fabric.NameOf(fabric.Path(100, 2, HashOf(100, 2, entropy))[1])];
    ++to_neighbour[fabric.NameOf(fabric.Path(100, 5, HashOf(100, 5, entropy))[1])];
  }
  EXPECT_EQ(to_dead.size(), 3u);
  EXPECT_EQ(to_dead.count("tor:25/up:0"), 0u);
  for (const auto& [port, count] : to_dead) EXPECT_NEAR(count, 4000 / 3.0, 120) << port;
  EXPECT_EQ(to_neighbour.size(), 4u);
  for (const auto& [port, count] : to_neighbour) EXPECT_NEAR(count, 1000, 120) << port;
}

TEST(WithdrawalsTest, ANextHopThatHasAnotherWayKeepsItsShare) {
  Damaged fabric(FatTree());
  fabric.TakeDown("agg:0/up:0");
  std::map<std::string, int> first, second;
  for (uint32_t entropy = 0; entropy < 4000; ++entropy) {
    const std::vector<uint32_t> path = fabric.Path(0, 100, HashOf(0, 100, entropy));
    EXPECT_TRUE(fabric.Arrives(path, 100));
    ++first[fabric.NameOf(path[1])];
    if (fabric.NameOf(path[1]) == "tor:0/up:0") ++second[fabric.NameOf(path[2])];
  }
  EXPECT_NEAR(first["tor:0/up:0"], 1000, 120);
  EXPECT_EQ(second.size(), 3u);
  EXPECT_EQ(second.count("agg:0/up:0"), 0u);
  for (const auto& [port, count] : second) EXPECT_NEAR(count, first["tor:0/up:0"] / 3.0, 80) << port;
}

TEST(WithdrawalsTest, ADeadSwitchIsAllItsLinks) {
  Damaged fabric(FatTree());
  fabric.TakeDown("switch:core:1");
  fabric.TakeDown("switch:agg:2");
  for (uint32_t b = 1; b < 128; b += 3) {
    for (uint32_t entropy = 0; entropy < 100; ++entropy) {
      EXPECT_TRUE(fabric.Arrives(fabric.Path(0, b, HashOf(0, b, entropy)), b)) << b;
    }
  }
}

TEST(WithdrawalsTest, WhereNoWayIsLeftTheHashDecides) {
  Damaged fabric(FatTree());
  fabric.TakeDown("switch:tor:3");
  fabric.TakeDown("host:64/nic:0");
  for (uint32_t entropy = 0; entropy < 20; ++entropy) {
    for (const uint32_t b : {12u, 64u}) {
      const uint32_t hash = HashOf(0, b, entropy);
      const std::vector<uint32_t> usual = fabric.topology().Path(0, b, hash), path = fabric.Path(0, b, hash);
      EXPECT_FALSE(fabric.Arrives(path, b));
      EXPECT_TRUE(std::equal(path.begin(), path.end(), usual.begin()));
    }
  }
}

TEST(WithdrawalsTest, AChangeTakesEffectOnceItHasLasted) {
  Damaged fabric(FatTree());
  EXPECT_EQ(fabric.Set("tor:0/up:0", true, 500), 500 + kDelay);
  EXPECT_FALSE(fabric.withdrawals().any());
  fabric.withdrawals().Update(500 + kDelay - 1);
  EXPECT_FALSE(fabric.withdrawals().any());
  fabric.withdrawals().Update(500 + kDelay);
  EXPECT_TRUE(fabric.withdrawals().any());
  EXPECT_EQ(fabric.Set("tor:0/up:0", false, 9000), 9000 + kDelay);
  fabric.withdrawals().Update(9000 + kDelay - 1);
  EXPECT_TRUE(fabric.withdrawals().any());
  fabric.withdrawals().Update(9000 + kDelay);
  EXPECT_FALSE(fabric.withdrawals().any());
  // It was down for less than the delay: its own update finds it up.
  const Picos first = fabric.Set("tor:0/up:0", true, 20'000);
  const Picos second = fabric.Set("tor:0/up:0", false, 20'500);
  fabric.withdrawals().Update(first);
  EXPECT_FALSE(fabric.withdrawals().any());
  fabric.withdrawals().Update(second);
  EXPECT_FALSE(fabric.withdrawals().any());
}

TEST(WithdrawalsTest, ADelayOfZeroWithdrawsNothing) {
  Damaged fabric(FatTree(), 0);
  EXPECT_EQ(fabric.Set("switch:core:1", true, 0), kNeverPicos);
  EXPECT_FALSE(fabric.withdrawals().any());
}

TEST(WithdrawalsTest, OneDirectionThatIsDownIsTheWholeLink) {
  Damaged fabric(FatTree());
  const SwitchInfo& tor = fabric.topology().switches()[0];
  const uint32_t down = fabric.topology().links()[tor.first_up_port].reverse;
  fabric.withdrawals().Update(fabric.SetPort(down, true, 0));
  for (uint32_t entropy = 0; entropy < 100; ++entropy) {
    EXPECT_NE(fabric.Path(0, 100, HashOf(0, 100, entropy))[1], tor.first_up_port);
    EXPECT_TRUE(fabric.Arrives(fabric.Path(100, 0, HashOf(100, 0, entropy)), 0));
  }
}

// Two ToRs with a host each, two switches between them; the first of these is joined to the second ToR twice.
TEST(WithdrawalsTest, AGraphTakesWhatIsLeftOfItsShortestWays) {
  auto graph = std::make_shared<Graph>();
  graph->hosts = {"s", "t"};
  graph->switches = {"left", "right", "a", "b"};
  graph->links = {{.a = 0, .b = 2}, {.a = 1, .b = 3}, {.a = 2, .b = 4}, {.a = 2, .b = 5},
                  {.a = 4, .b = 3}, {.a = 4, .b = 3}, {.a = 5, .b = 3}};
  TopologyConfig config;
  config.kind = TopologyKind::kGraph;
  config.hosts = 2;
  config.graph = graph;
  Damaged fabric(config);
  const auto links_used = [&] {
    std::set<uint32_t> used;
    for (uint32_t entropy = 0; entropy < 200; ++entropy) {
      const std::vector<uint32_t> path = fabric.Path(0, 1, HashOf(0, 1, entropy));
      EXPECT_TRUE(fabric.Arrives(path, 1));
      used.insert(path.begin(), path.end());
    }
    return used.size() - 2;  // the hosts' own
  };
  EXPECT_EQ(links_used(), 5u);
  fabric.TakeDown("core:0/down:1");  // one of the two that are parallel
  EXPECT_EQ(links_used(), 4u);
  fabric.TakeDown("core:0/down:2");  // the other: nothing leads on from there
  EXPECT_EQ(links_used(), 2u);
}

// Random links between switches die, ever more of them: what some path of the undamaged fabric still joins is joined,
// and no packet goes round in circles.
void ExpectWhatIsJoinedToBeReached(const TopologyConfig& config, uint32_t hashes, size_t longest) {
  uint64_t reached = 0, moved = 0, cut_off = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Damaged fabric(config);
    Random random(seed);
    std::vector<uint32_t> between;
    for (uint32_t port = 0; port < fabric.topology().links().size(); ++port) {
      const LinkInfo& link = fabric.topology().links()[port];
      if (link.from_tier != Tier::kHost && link.to_tier != Tier::kHost) between.push_back(port);
    }
    Picos update_at = 0;
    for (uint64_t i = 0; i < between.size() * seed / 100; ++i) {
      update_at = fabric.SetPort(between[random.Below(between.size())], true, 0);
    }
    fabric.withdrawals().Update(update_at);
    for (int pair = 0; pair < 60; ++pair) {
      const auto a = static_cast<uint32_t>(random.Below(config.hosts));
      const auto b = static_cast<uint32_t>(random.Below(config.hosts));
      if (a == b) continue;
      bool joined = false;
      for (uint32_t entropy = 0; entropy < hashes && !joined; ++entropy) {
        joined = !fabric.IsDown(fabric.topology().Path(a, b, HashOf(a, b, entropy)));
      }
      cut_off += joined ? 0 : 1;
      for (uint32_t entropy = 0; entropy < 20; ++entropy) {
        const uint32_t hash = HashOf(a, b, entropy);
        const std::vector<uint32_t> path = fabric.Path(a, b, hash), usual = fabric.topology().Path(a, b, hash);
        ASSERT_LE(path.size(), longest) << "seed " << seed << ", " << a << " to " << b;
        ASSERT_TRUE(!joined || fabric.Arrives(path, b)) << "seed " << seed << ", " << a << " to " << b;
        reached += fabric.Arrives(path, b) ? 1 : 0;
        moved += path != usual ? 1 : 0;
      }
    }
  }
  EXPECT_GT(reached, 20'000u);
  EXPECT_GT(moved, 1'000u);
  EXPECT_GT(cut_off, 0u);
}

TEST(WithdrawalsTest, WhatIsJoinedIsReachedInAFatTree) {
  TopologyConfig config = FatTree();
  config.oversubscription = {2, 2};
  ExpectWhatIsJoinedToBeReached(config, 400, 6);
}

TEST(WithdrawalsTest, WhatIsJoinedIsReachedInADragonfly) {
  ExpectWhatIsJoinedToBeReached(Dragonfly(DragonflyRouting::kMinimal, 24, 2), 400, 9);
}

TEST(WithdrawalsTest, WhatIsJoinedIsReachedInADragonflyOverThirdGroups) {
  for (const DragonflyRouting routing : {DragonflyRouting::kValiant, DragonflyRouting::kBoth}) {
    ExpectWhatIsJoinedToBeReached(Dragonfly(routing, 24, 2), 2000, 20);
    ExpectWhatIsJoinedToBeReached(Dragonfly(routing, 72, 2), 2000, 20);
  }
}

}  // namespace
}  // namespace paceline::sim
