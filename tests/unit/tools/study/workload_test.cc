#include "tools/study/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "tools/study/load_workload.h"

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Workload> TryBuild(const std::string& toml, uint64_t seed = 1, uint32_t hosts = 128) {
  const toml::table table = toml::parse(toml);
  nlohmann::json resolved;
  const auto config = LoadWorkload(&table, "", resolved);
  EXPECT_TRUE(config.ok()) << config.status();
  return BuildWorkload(*config, {.count = hosts}, seed);
}

Workload Build(const std::string& toml, uint64_t seed = 1, uint32_t hosts = 128) {
  const auto workload = TryBuild(toml, seed, hosts);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

TEST(WorkloadTest, IncastHasDistinctRandomSenders) {
  std::set<uint32_t> receivers;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Workload workload = Build("kind = 'incast'\nfan_in = 32", seed);
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
  const Workload workload = Build("kind = 'alltoall'\nranks = 16");
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
    const Workload workload = Build("kind = 'permutation'", seed);
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
  const Workload workload = Build("kind = 'victim'\nfan_in = 32\nbytes = 10\nvictim_bytes = 20");
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

TEST(WorkloadTest, JitterDelaysThePoissonFlowsToo) {
  const Workload even = Build("kind = 'poisson'\nflows = 100", 3);
  const Workload late = Build("kind = 'poisson'\nflows = 100\nstart_jitter_us = 1000", 3);
  ASSERT_EQ(late.flows.size(), even.flows.size());
  size_t later = 0;
  for (size_t i = 0; i < even.flows.size(); ++i) {
    EXPECT_GE(late.flows[i].start, even.flows[i].start);
    later += late.flows[i].start > even.flows[i].start;
  }
  EXPECT_GT(later, 90u);
}

TEST(WorkloadTest, WindowChainsEachSource) {
  const Workload workload = Build("kind = 'alltoall'\nranks = 8\nwindow = 3");
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

// The jitter of a flow that waits for others does not hold it back.
TEST(WorkloadTest, WhatWaitsInAWindowIsNoEarlierThanTheFirstThatDoesNot) {
  const Workload workload = Build("kind = 'alltoall'\nranks = 8\nwindow = 3\nstart_jitter_us = 100");
  for (uint32_t host = 0; host < 8; ++host) {
    std::vector<sim::Picos> first, later;
    for (const Flow& flow : workload.flows) {
      if (flow.source == workload.flows[host * 7].source) {
        (flow.trigger == kNoTrigger ? first : later).push_back(flow.start);
      }
    }
    ASSERT_EQ(first.size(), 3u);
    EXPECT_NE(first[0], first[1]);
    EXPECT_THAT(later, ::testing::Each(*std::min_element(first.begin(), first.end())));
  }
}

TEST(WorkloadTest, SameSeedSameFlowsOtherSeedOthers) {
  const std::string config = "kind = 'permutation'\nstart_jitter_us = 1";
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
  const auto message = [](const std::string& toml) { return std::string(TryBuild(toml).status().message()); };
  EXPECT_THAT(message("kind = 'incast'\nfan_in = 128"), HasSubstr("workload.fan_in"));
  EXPECT_THAT(message("kind = 'alltoall'\nranks = 129"), HasSubstr("workload.ranks"));
  EXPECT_THAT(message("kind = 'victim'\nfan_in = 126"), HasSubstr("workload.fan_in"));
  EXPECT_THAT(message("kind = 'connection_matrix'\nfile = 'does/not/exist.cm'"), HasSubstr("does/not/exist.cm"));
}

TEST(WorkloadTest, RefusesWhatSendsNothing) {
  for (const char* kind : {"moe", "pipeline"}) {
    for (const char* background : {"", "\nbackground_load = 0.1"}) {
      const auto workload = TryBuild(absl::StrCat("kind = '", kind, "'\nranks = 8\nranks_per_host = 8", background));
      EXPECT_THAT(workload.status().message(), HasSubstr("crosses the network")) << kind << background;
    }
  }
}

TEST(WorkloadTest, KeysOfOtherKindsAreLetBeAndNotNoted) {
  const toml::table table = toml::parse("kind = 'permutation'\nfan_in = 3\nbytes = 7");
  nlohmann::json resolved;
  EXPECT_TRUE(LoadWorkload(&table, "", resolved).ok());
  EXPECT_EQ(resolved["bytes"], 7);
  EXPECT_EQ(resolved["ranks"], 0);
  EXPECT_FALSE(resolved.contains("fan_in"));
  const toml::table wrong = toml::parse("kind = 'permutation'\nfan = 3");
  EXPECT_THAT(std::string(LoadWorkload(&wrong, "", resolved).status().message()), HasSubstr("workload.fan is not"));
}

}  // namespace
}  // namespace paceline::tools
