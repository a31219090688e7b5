#include "tools/study/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;

Workload Build(const WorkloadConfig& config, uint64_t seed = 1, uint32_t hosts = 128) {
  const auto workload = BuildWorkload(config, hosts, seed);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

WorkloadConfig Config(const std::string& kind) {
  WorkloadConfig config;
  config.kind = kind;
  return config;
}

TEST(WorkloadTest, IncastHasDistinctRandomSenders) {
  WorkloadConfig config = Config("incast");
  config.fan_in = 32;
  std::set<uint32_t> receivers;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Workload workload = Build(config, seed);
    ASSERT_EQ(workload.flows.size(), 32u);
    std::set<uint32_t> senders;
    for (const Flow& flow : workload.flows) {
      EXPECT_EQ(flow.destination, workload.flows[0].destination);
      EXPECT_NE(flow.source, flow.destination);
      senders.insert(flow.source);
    }
    EXPECT_EQ(senders.size(), 32u);
    receivers.insert(workload.flows[0].destination);
  }
  EXPECT_GT(receivers.size(), 5u);
}

TEST(WorkloadTest, AllToAllSpreadsRanksAndRotatesDestinations) {
  WorkloadConfig config = Config("alltoall");
  config.ranks = 16;
  const Workload workload = Build(config);
  ASSERT_EQ(workload.flows.size(), 16u * 15);
  std::map<uint32_t, std::vector<uint32_t>> destinations;
  for (const Flow& flow : workload.flows) {
    EXPECT_EQ(flow.source % 8, 0u);
    destinations[flow.source].push_back(flow.destination);
  }
  ASSERT_EQ(destinations.size(), 16u);
  for (const auto& [source, list] : destinations) {
    for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i], (source + 8 * (i + 1)) % 128);
  }
}

TEST(WorkloadTest, PermutationSendsAndReceivesOnceEach) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Workload workload = Build(Config("permutation"), seed);
    std::set<uint32_t> sources, destinations;
    for (const Flow& flow : workload.flows) {
      EXPECT_NE(flow.source, flow.destination);
      sources.insert(flow.source);
      destinations.insert(flow.destination);
    }
    EXPECT_EQ(sources.size(), 128u);
    EXPECT_EQ(destinations.size(), 128u);
  }
}

TEST(WorkloadTest, VictimsTakeNoPartInTheIncast) {
  WorkloadConfig config = Config("victim");
  config.fan_in = 32;
  config.bytes = 10;
  config.victim_bytes = 20;
  const Workload workload = Build(config);
  std::set<uint32_t> of_incast, of_victims;
  for (const Flow& flow : workload.flows) {
    (flow.victim ? of_victims : of_incast).insert({flow.source, flow.destination});
    EXPECT_EQ(flow.bytes, flow.victim ? 20u : 10u);
  }
  EXPECT_EQ(of_incast.size(), 33u);
  EXPECT_EQ(of_victims.size(), 95u);
  for (uint32_t host : of_victims) EXPECT_EQ(of_incast.count(host), 0u);
  const Workload alone = VictimsAlone(workload);
  EXPECT_EQ(alone.flows.size(), 95u);
}

TEST(WorkloadTest, WindowChainsEachSource) {
  WorkloadConfig config = Config("alltoall");
  config.ranks = 8;
  config.window = 3;
  const Workload workload = Build(config);
  ASSERT_EQ(workload.triggers.size(), 8u);
  size_t started = 0;
  for (const Flow& flow : workload.flows) {
    EXPECT_NE(flow.fires_when_sent, kNoTrigger);
    started += flow.trigger == kNoTrigger ? 1 : 0;
  }
  EXPECT_EQ(started, 8u * 3);
  for (const Trigger& trigger : workload.triggers) {
    EXPECT_TRUE(trigger.one_at_a_time);
    EXPECT_EQ(trigger.flows.size(), 4u);
  }
}

TEST(WorkloadTest, SameSeedSameFlowsOtherSeedOthers) {
  WorkloadConfig config = Config("permutation");
  config.start_jitter = 1'000'000;
  const Workload a = Build(config, 3), b = Build(config, 3), c = Build(config, 4);
  size_t different = 0;
  for (size_t i = 0; i < a.flows.size(); ++i) {
    EXPECT_EQ(a.flows[i].destination, b.flows[i].destination);
    EXPECT_EQ(a.flows[i].start, b.flows[i].start);
    EXPECT_LE(a.flows[i].start, 1'000'000);
    different += a.flows[i].destination != c.flows[i].destination ? 1 : 0;
  }
  EXPECT_GT(different, 100u);
}

TEST(WorkloadTest, RefusesWhatDoesNotFit) {
  WorkloadConfig config = Config("incast");
  config.fan_in = 128;
  EXPECT_THAT(std::string(BuildWorkload(config, 128, 1).status().message()), HasSubstr("workload.fan_in"));
  config = Config("alltoall");
  config.ranks = 129;
  EXPECT_THAT(std::string(BuildWorkload(config, 128, 1).status().message()), HasSubstr("workload.ranks"));
  config = Config("victim");
  config.fan_in = 126;
  EXPECT_FALSE(BuildWorkload(config, 128, 1).ok());
  config = Config("connection_matrix");
  config.file = "does/not/exist.cm";
  EXPECT_THAT(std::string(BuildWorkload(config, 128, 1).status().message()), HasSubstr("does/not/exist.cm"));
}

}  // namespace
}  // namespace paceline::tools
