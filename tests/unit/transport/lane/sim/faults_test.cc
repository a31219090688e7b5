#include "transport/lane/sim/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace paceline::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Topology FatTree() {
  TopologyConfig config;
  config.kind = TopologyKind::kFatTree;
  config.hosts = 128;
  return *Topology::Create(config);
}

std::vector<std::string> Names(const std::string& target, uint64_t seed = 1) {
  const Topology topology = FatTree();
  Random random(seed);
  const auto ports = ResolveTarget(target, topology, random);
  if (!ports.ok()) return {"refused: " + std::string(ports.status().message())};
  std::vector<std::string> names;
  for (uint32_t port : *ports) names.push_back(topology.PortName(port));
  return names;
}

TEST(FaultTargetTest, NamesBothDirectionsOfALink) {
  EXPECT_THAT(Names("host:6/nic:0"), ElementsAre("host:6/nic:0", "tor:1/down:2"));
  EXPECT_THAT(Names("tor:2/up:1"), ElementsAre("tor:2/up:1", "agg:1/down:2"));
  EXPECT_THAT(Names("agg:5/up:0"), ElementsAre("agg:5/up:0", "core:4/down:1"));
}

TEST(FaultTargetTest, WholeSwitchAndWholeFabric) {
  EXPECT_EQ(Names("switch:core:1").size(), 16u);
  EXPECT_EQ(Names("switch:tor:0").size(), 16u);
  EXPECT_EQ(Names("hosts").size(), 256u);
  EXPECT_EQ(Names("all").size(), 768u);
}

TEST(FaultTargetTest, RandomLinksLieInDifferentPodsAndFollowTheSeed) {
  const Topology topology = FatTree();
  for (uint64_t seed = 1; seed < 20; ++seed) {
    Random random(seed);
    const auto ports = ResolveTarget("random:4:agg-core", topology, random);
    ASSERT_TRUE(ports.ok());
    ASSERT_EQ(ports->size(), 8u);
    std::set<uint32_t> pods;
    for (uint32_t port : *ports) {
      const LinkInfo& link = topology.links()[port];
      if (link.from_tier == Tier::kAgg) pods.insert(topology.switch_of_node(link.from).pod);
    }
    EXPECT_EQ(pods.size(), 4u);
    EXPECT_EQ(Names("random:4:agg-core", seed), Names("random:4:agg-core", seed));
  }
  EXPECT_NE(Names("random:4:agg-core", 1), Names("random:4:agg-core", 2));
  EXPECT_EQ(Names("random:128:host-tor").size(), 256u);
}

TEST(FaultTargetTest, RandomLinksOfTwoTiersLieAtDifferentSwitches) {
  TopologyConfig config;
  config.kind = TopologyKind::kLeafSpine;
  config.hosts = 16;
  config.tor_radix = 4;
  const Topology topology = *Topology::Create(config);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    Random random(seed);
    const auto ports = ResolveTarget("random:4:tor-core", topology, random);
    ASSERT_TRUE(ports.ok()) << ports.status();
    std::set<uint32_t> tors;
    for (uint32_t port : *ports) {
      const LinkInfo& link = topology.links()[port];
      if (link.from_tier == Tier::kTor) tors.insert(link.from);
    }
    EXPECT_EQ(tors.size(), 4u) << seed;
  }
}

TEST(FaultTargetTest, RefusesWhatIsNotThere) {
  EXPECT_THAT(Names("host:128/nic:0")[0], HasSubstr("no such host"));
  EXPECT_THAT(Names("host:1/nic:1")[0], HasSubstr("no such host or NIC"));
  EXPECT_THAT(Names("tor:99/up:0")[0], HasSubstr("no such switch"));
  EXPECT_THAT(Names("tor:1/up:4")[0], HasSubstr("no such port"));
  EXPECT_THAT(Names("core:1/up:0")[0], HasSubstr("no such port"));
  EXPECT_THAT(Names("random:1000:agg-core")[0], HasSubstr("128 links"));
  for (const char* target :
       {"", "nonsense", "host:", "tor:1", "switch:tor", "random:x:agg-core", "a/b/c", "tor:1/left:0"}) {
    EXPECT_THAT(Names(target)[0], HasSubstr("refused")) << target;
  }
}

TEST(FaultPlanTest, DamageFollowsTimeAndAddsUp) {
  const Topology topology = FatTree();
  Random random(1);
  Fault loss{.kind = FaultKind::kLoss, .at = 100, .until = 300, .probability = 0.5, .target = "host:0/nic:0"};
  Fault more{.kind = FaultKind::kLoss, .at = 200, .until = 400, .probability = 0.5, .target = "all"};
  Fault slow{.kind = FaultKind::kLinkSlow, .at = 250, .fraction = 0.25, .target = "host:0/nic:0"};
  const auto plan = FaultPlan::Create({loss, more, slow}, topology, random);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->changes(), ElementsAre(100, 200, 250, 300, 400));
  EXPECT_FALSE(plan->DamageAt(0, 99).disturbs());
  EXPECT_EQ(plan->DamageAt(0, 100).loss, 0.5);
  EXPECT_EQ(plan->DamageAt(0, 200).loss, 0.75);
  EXPECT_EQ(plan->DamageAt(1, 200).loss, 0.5);
  EXPECT_EQ(plan->DamageAt(0, 300).fraction, 0.25);
  EXPECT_FALSE(plan->DamageAt(0, 400).disturbs());
}

TEST(FaultPlanTest, RefusesBadNumbers) {
  const Topology topology = FatTree();
  Random random(1);
  EXPECT_FALSE(FaultPlan::Create({Fault{.probability = 1.5}}, topology, random).ok());
  EXPECT_FALSE(FaultPlan::Create({Fault{.fraction = 0}}, topology, random).ok());
  EXPECT_FALSE(FaultPlan::Create({Fault{.at = 5, .until = 5}}, topology, random).ok());
}

}  // namespace
}  // namespace paceline::sim
