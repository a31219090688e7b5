#include <gmock/gmock.h>

#include <map>

#include "tests/unit/tools/study/workloads/workload_support.h"

namespace paceline::tools {
namespace {

TEST(MoeTest, WithoutSkewItIsTwoAllToAlls) {
  const Workload workload = Build("kind = 'moe'\nskew = 0\nbytes = 1000\nranks = 8", 16);
  ASSERT_EQ(workload.flows.size(), 2u * 8 * 7);
  for (const Flow& flow : workload.flows) EXPECT_EQ(flow.bytes, 1000u);
}

TEST(MoeTest, SkewKeepsTheTotalAndTheSeedChoosesWhoIsHot) {
  std::set<uint32_t> hottest;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Workload workload = Build("kind = 'moe'\nskew = 1\nbytes = 1000000\nexperts = 32", 16, seed);
    std::map<uint32_t, uint64_t> dispatched, combined;
    for (const Flow& flow : workload.flows) {
      (flow.trigger == kNoTrigger ? dispatched[flow.destination] : combined[flow.source]) += flow.bytes;
    }
    EXPECT_EQ(dispatched, combined);
    uint64_t total = 0, most = 0;
    uint32_t who = 0;
    for (const auto& [host, bytes] : dispatched) {
      total += bytes;
      if (bytes > most) {
        most = bytes;
        who = host;
      }
    }
    EXPECT_NEAR(total, 15 * 16 * 1e6, 200);
    EXPECT_GT(most, 3u * total / 16);  // the hottest of 32 experts has a quarter at this skew
    hottest.insert(who);
  }
  EXPECT_GT(hottest.size(), 3u);
}

TEST(MoeTest, CombineWaitsForAllThatIsDispatchedToItsRank) {
  const Workload workload = Build("kind = 'moe'\nranks = 8\ncompute_us = 5", 8);
  const auto causes = CausesOf(workload);
  for (const Flow& flow : workload.flows) {
    if (flow.trigger == kNoTrigger) continue;
    EXPECT_EQ(causes[flow.trigger].size(), 7u);
    EXPECT_EQ(workload.triggers[flow.trigger].firings, 7u);
    EXPECT_EQ(workload.triggers[flow.trigger].delay, 5'000'000);
    for (uint32_t cause : causes[flow.trigger]) EXPECT_EQ(workload.flows[cause].destination, flow.source);
  }
  EXPECT_THAT(std::string(TryBuild("kind = 'moe'\nranks = 8\nexperts = 12", 8).status().message()),
              ::testing::HasSubstr("workload.experts"));
}

}  // namespace
}  // namespace paceline::tools
