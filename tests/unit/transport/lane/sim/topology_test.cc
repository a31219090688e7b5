#include "transport/lane/sim/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

namespace paceline::sim {
namespace {

using ::testing::HasSubstr;

TopologyConfig FatTree(double oversubscription) {
  TopologyConfig config;
  config.kind = TopologyKind::kFatTree;
  config.hosts = 128;
  config.oversubscription = {oversubscription};
  return config;
}

size_t CountTier(const Topology& topology, Tier tier) {
  return static_cast<size_t>(std::count_if(topology.switches().begin(), topology.switches().end(),
                                           [&](const SwitchInfo& s) { return s.tier == tier; }));
}

void ExpectEveryPairConnected(const Topology& topology) {
  for (uint32_t a = 0; a < topology.nics(); ++a) {
    for (uint32_t b = 0; b < topology.nics(); ++b) {
      if (a == b) continue;
      const auto path = topology.Path(a, b, Topology::RouteHash(a, b, 5, 1));
      ASSERT_LE(path.size(), 6u);
      ASSERT_EQ(topology.links()[path.back()].to, b);
    }
  }
  for (uint32_t port = 0; port < topology.links().size(); ++port) {
    const LinkInfo& link = topology.links()[port];
    EXPECT_EQ(topology.links()[link.reverse].reverse, port);
    EXPECT_EQ(topology.links()[link.reverse].from, link.to);
  }
}

TEST(TopologyTest, FatTreeOfTheFacts) {
  for (const auto& [ratio, cores] : {std::pair{1.0, 16u}, std::pair{4.0, 4u}}) {
    const auto topology = Topology::Create(FatTree(ratio));
    ASSERT_TRUE(topology.ok()) << topology.status();
    EXPECT_EQ(CountTier(*topology, Tier::kTor), 32u);
    EXPECT_EQ(CountTier(*topology, Tier::kAgg), 32u);
    EXPECT_EQ(CountTier(*topology, Tier::kCore), cores);
    for (const SwitchInfo& s : topology->switches()) {
      const uint32_t agg_ups = ratio == 1 ? 4 : 1;
      EXPECT_EQ(s.up_ports, s.tier == Tier::kTor ? 4 : s.tier == Tier::kAgg ? agg_ups : 0);
      EXPECT_EQ(s.down_ports, s.tier == Tier::kCore ? 8u : 4u);
    }
    ExpectEveryPairConnected(*topology);
  }
}

TEST(TopologyTest, BaseRttAcrossPodsIs14Point03Microseconds) {
  const auto topology = Topology::Create(FatTree(1));
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology->LongestBaseRtt(4160, 64), 6 * (332'800 + 1'000'000) + 6 * (5'120 + 1'000'000));
  EXPECT_NEAR(PicosToMicros(topology->LongestBaseRtt(4160, 64)), 14.03, 0.005);
  EXPECT_EQ(topology->BaseRtt(0, 1, 4160, 64), 2 * (332'800 + 1'000'000) + 2 * (5'120 + 1'000'000));
}

TEST(TopologyTest, DelaysOfSwitchesAndNicsAddUp) {
  TopologyConfig config;
  config.hosts = 4;
  config.link_delay_ns = 500;
  config.switch_delay_ns = 300;
  config.nic_delay_ns = 200;
  const auto topology = Topology::Create(config);
  ASSERT_TRUE(topology.ok());
  // Each way: two serialisations, two links, one switch, two NICs.
  EXPECT_EQ(topology->BaseRtt(0, 1, 1000, 1000), 2 * (2 * 80'000 + 2 * 500'000 + 300'000 + 2 * 200'000));
}

TEST(TopologyTest, OtherShapesConnectEveryPair) {
  TopologyConfig config;
  config.hosts = 24;
  for (TopologyKind kind : {TopologyKind::kSingleSwitch, TopologyKind::kDumbbell, TopologyKind::kLeafSpine}) {
    config.kind = kind;
    const auto topology = Topology::Create(config);
    ASSERT_TRUE(topology.ok()) << topology.status();
    ExpectEveryPairConnected(*topology);
  }
  config.kind = TopologyKind::kFatTree;
  config.hosts = 36;
  config.pod_size = 12;
  config.tor_radix = 6;
  config.oversubscription = {2, 1};
  const auto topology = Topology::Create(config);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(CountTier(*topology, Tier::kTor), 6u);
  EXPECT_EQ(CountTier(*topology, Tier::kAgg), 9u);   // 3 uplinks a ToR
  EXPECT_EQ(CountTier(*topology, Tier::kCore), 6u);  // 3 groups of 2
  ExpectEveryPairConnected(*topology);
}

TopologyConfig Rails(uint32_t nics, uint32_t planes, uint32_t tiers) {
  TopologyConfig config;
  config.kind = TopologyKind::kRailOptimized;
  config.hosts = 32;
  config.nics_per_host = nics;
  config.planes = planes;
  config.tiers = tiers;
  config.tor_radix = 4;
  config.pod_size = 16;
  return config;
}

// Every pair of one plane, both ways; NICs of other planes are out of reach.
void ExpectPlanesConnected(const Topology& topology) {
  const uint32_t nics = topology.config().nics_per_host;
  for (uint32_t a = 0; a < topology.nics(); a += 3) {
    for (uint32_t b = 0; b < topology.nics(); ++b) {
      if (a == b || topology.plane_of(a) != topology.plane_of(b)) continue;
      const auto path = topology.Path(a, b, Topology::RouteHash(a, b, 5, 1));
      ASSERT_LE(path.size(), 6u);
      ASSERT_EQ(topology.links()[path.back()].to, b);
      // The same rail under the same switch: one hop. Another rail: never under one leaf.
      const bool one_leaf = a / nics / 4 == b / nics / 4;
      if (topology.config().kind == TopologyKind::kRailOptimized) {
        EXPECT_EQ(path.size() == 2, one_leaf && a % nics == b % nics) << a << " to " << b;
      } else {
        EXPECT_EQ(path.size() == 2, one_leaf) << a << " to " << b;
      }
    }
  }
}

TEST(TopologyTest, RailsJoinNicsOfEqualNumber) {
  for (const uint32_t tiers : {2u, 3u}) {
    for (const uint32_t planes : {1u, 2u, 4u}) {
      const auto topology = Topology::Create(Rails(4, planes, tiers));
      ASSERT_TRUE(topology.ok()) << topology.status();
      EXPECT_EQ(topology->nics(), 128u);
      EXPECT_EQ(CountTier(*topology, Tier::kTor), 32u);  // 8 groups of hosts, 4 rails
      // Each leaf has 4 uplinks, so each plane has 4 spines (2 tiers).
      if (tiers == 2) {
        EXPECT_EQ(CountTier(*topology, Tier::kCore), 4 * planes);
      }
      ExpectPlanesConnected(*topology);
    }
  }
}

TEST(TopologyTest, PlanesAreCopiesOfAnyShape) {
  for (TopologyKind kind :
       {TopologyKind::kSingleSwitch, TopologyKind::kDumbbell, TopologyKind::kLeafSpine, TopologyKind::kFatTree}) {
    TopologyConfig config = Rails(4, 2, 3);
    config.kind = kind;
    const auto topology = Topology::Create(config);
    ASSERT_TRUE(topology.ok()) << topology.status();
    std::set<std::string> names;
    for (uint32_t port = 0; port < topology->links().size(); ++port) {
      names.insert(topology->PortName(port));
      const LinkInfo& link = topology->links()[port];
      EXPECT_EQ(topology->links()[link.reverse].reverse, port);
      EXPECT_GT(link.bits_per_second, 0u);
    }
    EXPECT_EQ(names.size(), topology->links().size());
    config.planes = 1;
    EXPECT_EQ(CountTier(*topology, Tier::kTor), CountTier(*Topology::Create(config), Tier::kTor) * 2);
    if (kind == TopologyKind::kLeafSpine || kind == TopologyKind::kFatTree) ExpectPlanesConnected(*topology);
  }
}

TEST(TopologyTest, EveryRailHasTheRoundTripOfTheFirst) {
  const auto topology = Topology::Create(Rails(8, 2, 2));
  ASSERT_TRUE(topology.ok()) << topology.status();
  for (uint32_t rail = 0; rail < 8; ++rail) {
    EXPECT_EQ(topology->BaseRtt(rail, 31 * 8 + rail, 4160, 64), topology->LongestBaseRtt(4160, 64));
  }
  EXPECT_EQ(topology->LongestBaseRtt(4160, 64), 4 * (332'800 + 1'000'000) + 4 * (5'120 + 1'000'000));
}

TopologyConfig ConfigOf(std::shared_ptr<const Graph> graph) {
  TopologyConfig config;
  config.kind = TopologyKind::kGraph;
  config.hosts = static_cast<uint32_t>(graph->hosts.size());
  config.graph = std::move(graph);
  return config;
}

// Three switches in a ring, two hosts each; the first pair of switches is joined twice.
TopologyConfig Ring() {
  auto graph = std::make_shared<Graph>();
  graph->hosts = {"a", "b", "c", "d", "e", "f"};
  graph->switches = {"x", "y", "z"};
  for (uint32_t host = 0; host < 6; ++host) graph->links.push_back({.a = host, .b = 6 + host / 2});
  graph->links.push_back({.a = 6, .b = 7, .gbps = 400, .delay_ns = 2000});
  graph->links.push_back({.a = 6, .b = 7, .gbps = 400, .delay_ns = 2000});
  graph->links.push_back({.a = 7, .b = 8});
  graph->links.push_back({.a = 8, .b = 6, .delay_ns = 5000});
  return ConfigOf(graph);
}

TEST(TopologyTest, GraphRoutesAreShortestPathsSharedByHash) {
  const auto topology = Topology::Create(Ring());
  ASSERT_TRUE(topology.ok()) << topology.status();
  ExpectEveryPairConnected(*topology);
  std::map<uint32_t, int> uses;
  for (uint32_t entropy = 0; entropy < 256; ++entropy) {
    const auto path = topology->Path(0, 2, Topology::RouteHash(0, 2, entropy, 7));
    ASSERT_EQ(path.size(), 3u);  // never by way of the third switch
    ++uses[path[1]];
  }
  ASSERT_EQ(uses.size(), 2u);
  for (const auto& [port, count] : uses) {
    EXPECT_NEAR(count, 128, 40);
    EXPECT_EQ(topology->links()[port].bits_per_second, 400'000'000'000u);
    EXPECT_EQ(topology->links()[port].delay, 2'000'000);
  }
  EXPECT_EQ(topology->Path(0, 1, 0).size(), 2u);
  // The longest round trip is by the link of 5 us.
  EXPECT_EQ(topology->LongestBaseRtt(0, 0), 2 * 7'000'000);
}

// In whatever order the file has the links: ideals are by the faster, controllers hear of the slower.
TEST(TopologyTest, OfEquallyShortWaysOfAGraphTheFastestIsTheBaseRoundTrip) {
  for (const int64_t first_ns : {1000, 50'000}) {
    TopologyConfig config = Ring();
    Graph graph = *config.graph;
    graph.links[6].delay_ns = first_ns;
    graph.links[7].delay_ns = 51'000 - first_ns;
    config.graph = std::make_shared<Graph>(graph);
    const auto topology = Topology::Create(config);
    ASSERT_TRUE(topology.ok()) << topology.status();
    EXPECT_EQ(topology->BaseRtt(0, 2, 0, 0), 2 * 3'000'000) << first_ns;
    EXPECT_EQ(topology->BaseRtt(2, 0, 0, 0), 2 * 3'000'000) << first_ns;
    EXPECT_EQ(topology->LongestWayRtt(0, 2, 0, 0), 2 * 52'000'000) << first_ns;
    EXPECT_EQ(topology->LongestBaseRtt(0, 0), 2 * 7'000'000) << first_ns;
  }
}

// s-a-b-d-t is near and slow, s-a-c-d-t far and fast.
TEST(TopologyTest, TheFastestPathOfAGraphDependsOnThePacketsSize) {
  auto graph = std::make_shared<Graph>();
  graph->hosts = {"s", "t"};
  graph->switches = {"a", "b", "c", "d"};
  const uint32_t s = 0, t = 1, a = 2, b = 3, c = 4, d = 5;
  graph->links = {{.a = s, .b = a},
                  {.a = t, .b = d},
                  {.a = a, .b = b, .gbps = 10},
                  {.a = b, .b = d},
                  {.a = a, .b = c, .delay_ns = 2000},
                  {.a = c, .b = d}};
  const auto topology = Topology::Create(ConfigOf(graph));
  ASSERT_TRUE(topology.ok()) << topology.status();
  const auto middle = [&](uint32_t bytes) {
    const std::vector<uint32_t> path = topology->FastestPath(0, 1, bytes);
    EXPECT_EQ(path.size(), 4u);
    return topology->links()[path[1]].bits_per_second;
  };
  // At 10 and 100 Gb/s 1389 bytes take a microsecond more by the slow link.
  EXPECT_EQ(middle(64), 10'000'000'000u);
  EXPECT_EQ(middle(1380), 10'000'000'000u);
  EXPECT_EQ(middle(1400), 100'000'000'000u);
  EXPECT_EQ(middle(4160), 100'000'000'000u);
}

// Also where a way that can be fast at first forks again later: s-a-b-d-f-t, s-a-b-e-f-t and s-a-c-d-f-t.
TEST(TopologyTest, TheSlowestWayOfAGraphMayForkFromTheFastest) {
  for (const bool b_first : {true, false}) {
    auto graph = std::make_shared<Graph>();
    graph->hosts = {"s", "t"};
    graph->switches = {"a", "b", "c", "d", "e", "f"};
    const uint32_t s = 0, t = 1, a = 2, b = 3, c = 4, d = 5, e = 6, f = 7;
    graph->links = {{.a = s, .b = a},
                    {.a = t, .b = f},
                    {.a = b, .b = d},
                    {.a = c, .b = d},
                    {.a = d, .b = f},
                    {.a = e, .b = f},
                    {.a = b, .b = e, .delay_ns = 50'000}};
    graph->links.push_back({.a = a, .b = b_first ? b : c});
    graph->links.push_back({.a = a, .b = b_first ? c : b});
    const auto topology = Topology::Create(ConfigOf(graph));
    ASSERT_TRUE(topology.ok()) << topology.status();
    EXPECT_EQ(topology->BaseRtt(0, 1, 0, 0), 2 * 5'000'000) << b_first;
    EXPECT_EQ(topology->LongestWayRtt(0, 1, 0, 0), 2 * 54'000'000) << b_first;
  }
}

// Two pods of one ToR and four aggregation switches, each of those with four cores of its own: 16 paths.
TEST(TopologyTest, WhereAPacketTurnsInOneTierOfAGraphSaysNothingOfTheNext) {
  auto graph = std::make_shared<Graph>();
  graph->hosts = {"a", "b"};
  for (int i = 0; i < 2 + 8 + 16; ++i) graph->switches.push_back("s" + std::to_string(i));
  graph->links = {{.a = 0, .b = 2}, {.a = 1, .b = 3}};
  for (uint32_t agg = 0; agg < 4; ++agg) {
    graph->links.push_back({.a = 2, .b = 4 + agg});
    graph->links.push_back({.a = 3, .b = 8 + agg});
    for (uint32_t core = 4 * agg; core < 4 * agg + 4; ++core) {
      graph->links.push_back({.a = 4 + agg, .b = 12 + core});
      graph->links.push_back({.a = 8 + agg, .b = 12 + core});
    }
  }
  const auto topology = Topology::Create(ConfigOf(graph));
  ASSERT_TRUE(topology.ok()) << topology.status();
  std::map<uint32_t, int> uses;
  for (uint32_t entropy = 0; entropy < 4096; ++entropy) {
    const auto path = topology->Path(0, 1, Topology::RouteHash(0, 1, entropy, 7));
    ASSERT_EQ(path.size(), 6u);
    ++uses[path[2]];
  }
  EXPECT_EQ(uses.size(), 16u);
  for (const auto& [port, count] : uses) EXPECT_NEAR(count, 256, 80) << topology->PortName(port);
}

TEST(TopologyTest, GraphsThatMakeNoFabricAreRefused) {
  TopologyConfig planes = Ring();
  planes.nics_per_host = planes.planes = 2;
  EXPECT_THAT(std::string(Topology::Create(planes).status().message()), HasSubstr("fabric.planes = 2"));
  const auto error_with = [](const std::function<void(Graph&)>& change) {
    TopologyConfig config = Ring();
    Graph graph = *config.graph;
    change(graph);
    config.hosts = static_cast<uint32_t>(graph.hosts.size());
    config.graph = std::make_shared<Graph>(graph);
    return std::string(Topology::Create(config).status().message());
  };
  EXPECT_THAT(error_with([](Graph& g) { g.links.push_back({.a = 5, .b = 6}); }), HasSubstr("\"f\" has 2 links"));
  EXPECT_THAT(error_with([](Graph& g) { g.links[0].b = 1; }), HasSubstr("joined without a switch"));
  EXPECT_THAT(error_with([](Graph& g) { g.switches.push_back("lone"); }), HasSubstr("\"lone\" is out of reach"));
  EXPECT_THAT(error_with([](Graph& g) { g.links.resize(6); }), HasSubstr("no path from host:0/nic:0"));
}

// Groups of four routers with two hosts and two links to other groups each: nine groups.
TopologyConfig Dragonfly(DragonflyRouting routing) {
  TopologyConfig config;
  config.kind = TopologyKind::kDragonfly;
  config.hosts = 72;
  config.pod_size = 8;
  config.tor_radix = 2;
  config.global_links = 2;
  config.routing = routing;
  return config;
}

// The groups that a path goes through, one after the other.
std::vector<uint32_t> GroupsOf(const Topology& topology, const std::vector<uint32_t>& path) {
  std::vector<uint32_t> groups;
  for (uint32_t port : path) {
    const uint32_t to = topology.links()[port].to;
    if (to < topology.nics()) break;
    const uint32_t group = topology.switch_of_node(to).pod;
    if (groups.empty() || groups.back() != group) groups.push_back(group);
  }
  return groups;
}

TEST(TopologyTest, DragonflyJoinsAllRoutersOfAGroupAndAllGroups) {
  TopologyConfig config = Dragonfly(DragonflyRouting::kMinimal);
  for (const auto& [global_links, per_pair] : {std::pair{2u, 1u}, std::pair{4u, 2u}}) {
    config.global_links = global_links;
    const auto topology = Topology::Create(config);
    ASSERT_TRUE(topology.ok()) << topology.status();
    EXPECT_EQ(topology->switches().size(), 36u);
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> between_groups, inside;
    for (const LinkInfo& link : topology->links()) {
      if (link.from_tier == Tier::kHost || link.to_tier == Tier::kHost) continue;
      const SwitchInfo &from = topology->switch_of_node(link.from), &to = topology->switch_of_node(link.to);
      ++(from.pod == to.pod ? inside[{from.index, to.index}] : between_groups[{from.pod, to.pod}]);
    }
    EXPECT_EQ(inside.size(), 9u * 4 * 3);
    EXPECT_EQ(between_groups.size(), 9u * 8);
    for (const auto& [pair, count] : inside) EXPECT_EQ(count, 1u);
    for (const auto& [pair, count] : between_groups) EXPECT_EQ(count, per_pair);
    for (uint32_t port = 0; port < topology->links().size(); ++port) {
      const LinkInfo& link = topology->links()[port];
      EXPECT_EQ(topology->links()[link.reverse].reverse, port);
      EXPECT_EQ(topology->links()[link.reverse].from, link.to);
    }
  }
}

TEST(TopologyTest, DragonflyGoesStraightOrOverOneMoreGroup) {
  for (const DragonflyRouting routing :
       {DragonflyRouting::kMinimal, DragonflyRouting::kValiant, DragonflyRouting::kBoth}) {
    TopologyConfig config = Dragonfly(routing);
    config.nics_per_host = 2;
    config.planes = 2;
    const auto topology = Topology::Create(config);
    ASSERT_TRUE(topology.ok()) << topology.status();
    uint32_t paths = 0, straight = 0;
    for (uint32_t a = 0; a < topology->nics(); a += 3) {
      for (uint32_t b = a % 2; b < topology->nics(); b += 2) {
        if (a == b) continue;
        for (uint32_t entropy = 0; entropy < 4; ++entropy) {
          const auto path = topology->Path(a, b, Topology::RouteHash(a, b, entropy, 1));
          ASSERT_EQ(topology->links()[path.back()].to, b);
          const auto groups = GroupsOf(*topology, path);
          const bool same_group = a / 16 == b / 16;
          const size_t least = same_group ? 1 : 2;
          ASSERT_GE(groups.size(), least);
          ASSERT_LE(groups.size(), same_group || routing == DragonflyRouting::kMinimal ? least : 3);
          ASSERT_LE(path.size(), 2 * groups.size() + 1);  // in each group a link at most, and those between
          if (same_group) continue;
          ++paths;
          straight += groups.size() == 2 ? 1 : 0;
        }
      }
    }
    // Of nine groups that a packet may be sent to first, one is its own and one the last.
    const double expected = routing == DragonflyRouting::kMinimal   ? 1
                            : routing == DragonflyRouting::kValiant ? 2.0 / 9
                                                                    : 11.0 / 18;
    EXPECT_NEAR(static_cast<double>(straight) / paths, expected, 0.02);
  }
}

TEST(TopologyTest, EntropiesChooseAmongTheLinksBetweenTwoGroups) {
  TopologyConfig config = Dragonfly(DragonflyRouting::kMinimal);
  config.hosts = 24;  // three groups, four links between any two
  const auto topology = Topology::Create(config);
  ASSERT_TRUE(topology.ok()) << topology.status();
  std::map<uint32_t, int> uses;
  for (uint32_t entropy = 0; entropy < 4000; ++entropy) {
    for (uint32_t port : topology->Path(0, 23, Topology::RouteHash(0, 23, entropy, 1))) {
      const LinkInfo& link = topology->links()[port];
      if (link.from_tier == Tier::kHost || link.to_tier == Tier::kHost) continue;
      if (topology->switch_of_node(link.from).pod != topology->switch_of_node(link.to).pod) ++uses[port];
    }
  }
  ASSERT_EQ(uses.size(), 4u);
  for (const auto& [port, count] : uses) EXPECT_NEAR(count, 1000, 120);
}

TEST(TopologyTest, DragonflysRoundTripIsOfTheShortestWay) {
  const auto topology = Topology::Create(Dragonfly(DragonflyRouting::kValiant));
  ASSERT_TRUE(topology.ok());
  const Picos link = 332'800 + 1'000'000 + 5'120 + 1'000'000;
  EXPECT_EQ(topology->LongestBaseRtt(4160, 64), 5 * link);  // up, inside, between, inside, down
  EXPECT_EQ(topology->BaseRtt(0, 1, 4160, 64), 2 * link);
  EXPECT_EQ(topology->BaseRtt(0, 2, 4160, 64), 3 * link);
  // With two links to each group the way may be shorter over one of them.
  TopologyConfig config = Dragonfly(DragonflyRouting::kMinimal);
  config.hosts = 24;
  const auto many = Topology::Create(config);
  ASSERT_TRUE(many.ok());
  EXPECT_EQ(many->BaseRtt(0, 8, 4160, 64), 3 * link);
  EXPECT_EQ(many->LongestWayRtt(0, 8, 4160, 64), 5 * link);
  EXPECT_EQ(many->LongestWayRtt(0, 2, 4160, 64), 3 * link);
  EXPECT_EQ(topology->LongestWayRtt(0, 71, 4160, 64), 7 * link);
}

TEST(TopologyTest, DragonflysThatCannotBeAreRefused) {
  const auto refused = [](auto change) {
    TopologyConfig config = Dragonfly(DragonflyRouting::kMinimal);
    change(config);
    return std::string(Topology::Create(config).status().message());
  };
  EXPECT_THAT(refused([](TopologyConfig& c) { c.tor_radix = 3; }), HasSubstr("fabric.tor_radix = 3 must divide"));
  EXPECT_THAT(refused([](TopologyConfig& c) { c.hosts = 70; }), HasSubstr("fabric.pod_size = 8 must divide"));
  EXPECT_THAT(refused([](TopologyConfig& c) { c.hosts = 8; }), HasSubstr("at least two groups"));
  EXPECT_THAT(refused([](TopologyConfig& c) { c.global_links = 3; }),
              HasSubstr("fabric.global_links times 4 a multiple of 8"));
  EXPECT_THAT(refused([](TopologyConfig& c) {
                c.hosts = 64;
                c.global_links = 0;
              }),
              HasSubstr("fabric.global_links is missing"));
  EXPECT_THAT(refused([](TopologyConfig& c) { c.oversubscription = {2}; }), HasSubstr("fabric.oversubscription"));
  EXPECT_EQ(refused([](TopologyConfig& c) { c.global_links = 0; }), "");
}

TEST(TopologyTest, DumbbellBottleneck) {
  TopologyConfig config;
  config.kind = TopologyKind::kDumbbell;
  config.hosts = 8;
  auto topology = Topology::Create(config);
  ASSERT_TRUE(topology.ok());
  const uint32_t between = topology->Path(0, 7, 0)[1];
  EXPECT_EQ(topology->links()[between].bits_per_second, 100'000'000'000u);
  config.oversubscription = {2};
  topology = Topology::Create(config);
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology->links()[between].bits_per_second, 200'000'000'000u);
}

TEST(TopologyTest, WhatAHostHasOfTheCore) {
  EXPECT_EQ(Topology::Create(FatTree(4))->core_oversubscription(), 4);
  EXPECT_EQ(Topology::Create(Dragonfly(DragonflyRouting::kMinimal))->core_oversubscription(), 1);
  TopologyConfig config = Dragonfly(DragonflyRouting::kMinimal);
  config.hosts = 24;
  config.global_links = 1;
  EXPECT_EQ(Topology::Create(config)->core_oversubscription(), 2);
  config = {.kind = TopologyKind::kDumbbell, .hosts = 8};
  EXPECT_EQ(Topology::Create(config)->core_oversubscription(), 4);
  config.nics_per_host = 2;
  EXPECT_EQ(Topology::Create(config)->core_oversubscription(), 8);
  config.oversubscription = {2};
  EXPECT_EQ(Topology::Create(config)->core_oversubscription(), 2);
}

TEST(TopologyTest, EntropiesSpreadEvenlyAndStably) {
  const auto topology = Topology::Create(FatTree(1));
  ASSERT_TRUE(topology.ok());
  std::map<uint32_t, int> uses;  // by core switch, over many pairs
  for (uint32_t pair = 0; pair < 64; ++pair) {
    const uint32_t a = pair, b = 127 - pair % 48;
    std::map<uint32_t, int> of_pair;
    for (uint32_t entropy = 0; entropy < 256; ++entropy) {
      const uint32_t hash = Topology::RouteHash(a, b, entropy, 99);
      EXPECT_EQ(hash, Topology::RouteHash(a, b, entropy, 99));
      const auto path = topology->Path(a, b, hash);
      ASSERT_EQ(path.size(), 6u);
      ++of_pair[path[2]];
      ++uses[topology->links()[path[2]].to];
    }
    EXPECT_EQ(of_pair.size(), 16u) << "pair " << a << "->" << b;
    for (const auto& [port, count] : of_pair) {
      EXPECT_GE(count, 3);  // 16 expected; five sigma below
      EXPECT_LE(count, 36);
    }
  }
  ASSERT_EQ(uses.size(), 16u);
  for (const auto& [core, count] : uses) EXPECT_NEAR(count, 64 * 16, 5 * 31);
}

TEST(TopologyTest, RefusesTheImpossibleNamingTheKey) {
  TopologyConfig config = FatTree(1);
  config.hosts = 100;
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("fabric.pod_size = 16"));
  config = FatTree(3);
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("fabric.oversubscription"));
  config = FatTree(1);
  config.tor_radix = 5;
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("fabric.tor_radix"));
  config = FatTree(1);
  config.tiers = 4;
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("fabric.tiers"));
  config = FatTree(1);
  config.oversubscription = {1, 1, 1};
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("a list of 2"));
  config = FatTree(1);
  config.nics_per_host = 9;
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("fabric.nics_per_host = 9"));
  config.nics_per_host = 8;
  config.planes = 3;
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("fabric.planes = 3"));
  config.planes = 1;
  config.hosts = 16384;
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("at most 65536"));
  config = TopologyConfig{};
  config.hosts = 1;
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("fabric.hosts"));
  config.kind = TopologyKind::kDumbbell;
  config.hosts = 7;
  EXPECT_THAT(std::string(Topology::Create(config).status().message()), HasSubstr("even"));
}

}  // namespace
}  // namespace paceline::sim
