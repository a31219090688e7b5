#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <map>

#include "tests/unit/tools/study/workloads/workload_support.h"
#include "tools/study/critical_path.h"
#include "tools/study/workloads/pipeline_schedule.h"

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;

// The longest chain of flows, in flows.
int64_t Steps(Workload workload) {
  for (Trigger& trigger : workload.triggers) trigger.delay = 0;
  const auto one = [](const Flow&) { return FlowCost{.sent = 1, .received = 1}; };
  const auto none = [](const auto&, const auto&) { return std::optional<sim::Picos>(0); };
  return FindCriticalPath(workload, {one, none})->flows;
}

// Every flow that waits, waits for something that its own sender received.
void ExpectSendersWaitForTheirInput(const Workload& workload) {
  const auto causes = CausesOf(workload);
  for (const Flow& flow : workload.flows) {
    if (flow.trigger == kNoTrigger) continue;
    ASSERT_FALSE(causes[flow.trigger].empty());
    for (uint32_t cause : causes[flow.trigger]) EXPECT_EQ(workload.flows[cause].destination, flow.source);
  }
}

// By host: the hosts whose data is in what it has received at the end.
std::map<uint32_t, std::set<uint32_t>> DataAtTheEnd(const Workload& workload) {
  const auto causes = CausesOf(workload);
  std::vector<std::set<uint32_t>> carried(workload.flows.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < workload.flows.size(); ++i) {
      const Flow& flow = workload.flows[i];
      const size_t before = carried[i].size();
      carried[i].insert(flow.source);
      if (flow.trigger != kNoTrigger) {
        for (uint32_t cause : causes[flow.trigger]) carried[i].insert(carried[cause].begin(), carried[cause].end());
      }
      changed = changed || carried[i].size() != before;
    }
  }
  std::map<uint32_t, std::set<uint32_t>> by_host;
  for (uint32_t i = 0; i < workload.flows.size(); ++i) {
    by_host[workload.flows[i].destination].insert(carried[i].begin(), carried[i].end());
  }
  return by_host;
}

void ExpectEverybodyHasDataOfAllOthers(const Workload& workload, size_t hosts) {
  const auto by_host = DataAtTheEnd(workload);
  EXPECT_EQ(by_host.size(), hosts);
  for (const auto& [host, sources] : by_host) EXPECT_GE(sources.size() + (sources.contains(host) ? 0 : 1), hosts);
}

TEST(CollectivesTest, RingAllReduceMovesTwiceTheBufferLessAShare) {
  for (uint32_t ranks : {2u, 3u, 8u, 16u}) {
    const Workload workload = Build("kind = 'allreduce_ring'\nbytes = 1000003\nchunks = 3", ranks);
    EXPECT_EQ(TotalBytes(workload), 2ull * (ranks - 1) * 1000003);
    EXPECT_EQ(workload.flows.size(), 2u * (ranks - 1) * ranks * 3);
    EXPECT_EQ(Steps(workload), 2 * (ranks - 1));
    std::map<uint32_t, uint64_t> sent;
    for (const Flow& flow : workload.flows) {
      EXPECT_EQ(flow.destination, (flow.source + 1) % ranks);
      sent[flow.source] += flow.bytes;
    }
    for (const auto& [source, bytes] : sent) EXPECT_NEAR(bytes, 2e6 * (ranks - 1) / ranks, 2 * ranks + 6);
    ExpectSendersWaitForTheirInput(workload);
    ExpectEverybodyHasDataOfAllOthers(workload, ranks);
  }
}

TEST(CollectivesTest, RingHalves) {
  for (const char* kind : {"reduce_scatter", "allgather"}) {
    const Workload workload = Build(std::string("bytes = 999999\nchunks = 2\nkind = '") + kind + "'", 9);
    EXPECT_EQ(TotalBytes(workload), 8u * 999999);
    EXPECT_EQ(Steps(workload), 8);
    ExpectSendersWaitForTheirInput(workload);
    ExpectEverybodyHasDataOfAllOthers(workload, 9);
  }
}

TEST(CollectivesTest, TreeAllReduceSendsTheBufferUpAndDown) {
  for (uint32_t ranks : {2u, 3u, 7u, 8u, 16u, 21u}) {
    const Workload workload = Build("kind = 'allreduce'\nalgorithm = 'tree'\nbytes = 1000001\nchunks = 2", ranks);
    EXPECT_EQ(TotalBytes(workload), 2ull * (ranks - 1) * 1000001) << ranks;
    ExpectSendersWaitForTheirInput(workload);
    ExpectEverybodyHasDataOfAllOthers(workload, ranks);
    std::map<uint32_t, uint64_t> sent, received;
    for (const Flow& flow : workload.flows) {
      sent[flow.source] += flow.bytes;
      received[flow.destination] += flow.bytes;
    }
    // At most three neighbours in one tree and one in the other, each with half of the buffer both ways.
    for (const auto& [host, bytes] : sent) {
      EXPECT_LE(bytes, 2'000'004u);
      EXPECT_EQ(bytes, received[host]);
    }
    int64_t levels = 0;
    while ((1u << levels) < ranks) ++levels;
    EXPECT_LE(Steps(workload), 2 * levels);
  }
}

TEST(CollectivesTest, TwoLevelHasARingBetweenHostsForEachRankOfAHost) {
  const std::string toml =
      "kind = 'allreduce'\nalgorithm = 'two_level'\nbytes = 8000000\nchunks = 2\nnvlink_gbps = 1600";
  const Workload workload = Build(toml + "\nranks_per_host = 8", 4);
  EXPECT_EQ(TotalBytes(workload), 2u * 3 * 8'000'000);
  EXPECT_EQ(workload.flows.size(), 8u * 4 * 2 * 3 * 2);
  EXPECT_EQ(Steps(workload), 2 * 3);
  ExpectEverybodyHasDataOfAllOthers(workload, 4);
  // Inside: 7/8 of the buffer at NVLink's speed before and after.
  const auto nothing = [](const Flow&) { return FlowCost(); };
  const auto none = [](const auto&, const auto&) { return std::optional<sim::Picos>(0); };
  const auto path = FindCriticalPath(workload, {nothing, none});
  EXPECT_NEAR(sim::PicosToMicros(path->end), 2 * 7 * 1e6 * 8 / 1600e3, 0.01);
  EXPECT_EQ(ComputingAlone(workload), 0);
}

TEST(CollectivesTest, RingsPinnedToRailsHaveANicEach) {
  const std::string toml = "kind = 'allreduce_two_level'\nbytes = 8000000\nchunks = 2\nranks_per_host = 8\n";
  for (const Flow& flow : Build(toml, 4, 1, 4).flows) EXPECT_EQ(flow.nic, kAllNics);
  const Workload pinned = Build(toml + "rails = 'pinned'", 4, 1, 4);
  std::map<uint8_t, uint64_t> bytes;
  for (const Flow& flow : pinned.flows) bytes[flow.nic] += flow.bytes;
  ASSERT_EQ(bytes.size(), 4u);  // two rings on each
  for (uint8_t nic = 0; nic < 4; ++nic) EXPECT_EQ(bytes[nic], 2u * 3 * 8'000'000 / 4);
  EXPECT_THAT(TryBuild(toml + "rails = 'both'", 4).status().message(), HasSubstr("workload.rails"));
}

// A ring over all ranks goes from the last of a host to the first of the next: no rail leads there.
TEST(CollectivesTest, OnlyRanksOfEqualPlaceShareARail) {
  const Workload workload =
      Build("kind = 'allreduce_ring'\nbytes = 800000\nranks_per_host = 4\nrails = 'pinned'", 4, 1, 4);
  ASSERT_FALSE(workload.flows.empty());
  for (const Flow& flow : workload.flows) EXPECT_EQ(flow.nic, kAllNics);
}

TEST(CollectivesTest, RingWithRanksOnOneHostCopiesInside) {
  const Workload workload = Build("kind = 'allreduce_ring'\nbytes = 800000\nchunks = 1\nranks_per_host = 2", 4);
  EXPECT_EQ(TotalBytes(workload), 2u * 7 * 800'000 / 2);  // every other hop
  EXPECT_EQ(Steps(workload), 7);
  for (const Flow& flow : workload.flows) EXPECT_NE(flow.source, flow.destination);
}

TEST(CollectivesTest, BroadcastReachesEverybodyOnce) {
  for (uint32_t ranks : {2u, 5u, 16u}) {
    for (const char* algorithm : {"chain", "binomial"}) {
      const Workload workload =
          Build(std::string("kind = 'broadcast'\nbytes = 100001\nchunks = 4\nalgorithm = '") + algorithm + "'", ranks);
      EXPECT_EQ(TotalBytes(workload), (ranks - 1) * 100001ull);
      ExpectSendersWaitForTheirInput(workload);
      std::map<uint32_t, uint64_t> received;
      for (const Flow& flow : workload.flows) received[flow.destination] += flow.bytes;
      EXPECT_EQ(received.size(), ranks - 1);
      EXPECT_EQ(received.count(0), 0u);
      for (const auto& [host, bytes] : received) EXPECT_EQ(bytes, 100001u);
      int rounds = 0;  // a rank gets it after as many hops as its number has bits
      for (uint32_t rank = 0; rank < ranks; ++rank) rounds = std::max(rounds, std::popcount(rank));
      EXPECT_EQ(Steps(workload), algorithm[0] == 'c' ? ranks - 1 : rounds);
    }
  }
}

TEST(CollectivesTest, PipelineSendsEachMicroBatchForwardAndBack) {
  const Workload workload =
      Build("kind = 'pipeline'\nbytes = 5000\nmicro_batches = 6\nforward_us = 10\nbackward_us = 20", 4);
  EXPECT_EQ(TotalBytes(workload), 2u * 3 * 6 * 5000);
  // With a network that takes no time: (micro-batches + stages - 1) of both.
  EXPECT_EQ(ComputingAlone(workload), (6 + 3) * 30'000'000);
  for (const Flow& flow : workload.flows) {
    EXPECT_EQ(std::max(flow.source, flow.destination) - std::min(flow.source, flow.destination), 1u);
    EXPECT_NE(flow.trigger, kNoTrigger);
  }
}

TEST(CollectivesTest, OneForwardOneBackward) {
  for (uint32_t stages : {1u, 3u, 8u}) {
    for (uint32_t stage = 0; stage < stages; ++stage) {
      uint32_t forward = 0, backward = 0, held = 0;
      for (const PipelineStep& step : OneForwardOneBackward(stage, stages, 5)) {
        EXPECT_EQ(step.micro_batch, step.backward ? backward++ : forward++);
        EXPECT_LE(backward, forward);
        held = std::max(held, forward - backward);
      }
      EXPECT_EQ(forward, 5u);
      EXPECT_EQ(backward, 5u);
      EXPECT_LE(held, stages - stage);
    }
  }
}

TEST(CollectivesTest, RefusesWhatCannotBe) {
  const auto message = [](const std::string& toml) { return std::string(TryBuild(toml, 16).status().message()); };
  EXPECT_THAT(message("kind = 'allreduce'\nranks = 17"), HasSubstr("workload.ranks"));
  EXPECT_THAT(message("kind = 'allreduce'\nranks = 12\nranks_per_host = 8"), HasSubstr("multiple"));
  EXPECT_THAT(message("kind = 'allreduce'\nranks = 8\nranks_per_host = 8"), HasSubstr("more than one host"));
  EXPECT_THAT(message("kind = 'allreduce'\nbytes = 16\nchunks = 2"), HasSubstr("workload.bytes"));
  EXPECT_THAT(message("kind = 'allreduce'\nalgorithm = 'star'"), HasSubstr("ring, tree, two_level"));
  EXPECT_THAT(message("kind = 'broadcast'\nalgorithm = 'ring'"), HasSubstr("chain, binomial"));
}

}  // namespace
}  // namespace paceline::tools
