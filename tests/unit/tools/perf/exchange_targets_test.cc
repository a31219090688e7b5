#include <gtest/gtest.h>

#include <set>

#include "tools/perf/exchange_test.h"

namespace paceline::tools {
namespace {

TEST(ExchangeTargets, AllToAllReachesEveryOtherOnce) {
  const auto targets = ExchangeTargets("alltoall", 5, 1);
  for (uint32_t rank = 0; rank < 5; ++rank) {
    const std::set<uint32_t> distinct(targets[rank].begin(), targets[rank].end());
    EXPECT_EQ(targets[rank].size(), 4u);
    EXPECT_EQ(distinct.size(), 4u);
    EXPECT_EQ(distinct.count(rank), 0u);
  }
}

TEST(ExchangeTargets, IncastGoesToRankZero) {
  const auto targets = ExchangeTargets("incast", 4, 1);
  EXPECT_TRUE(targets[0].empty());
  for (uint32_t rank = 1; rank < 4; ++rank) EXPECT_EQ(targets[rank], std::vector<uint32_t>{0});
}

TEST(ExchangeTargets, PermutationHasNoFixedPointAndDependsOnTheSeedOnly) {
  std::set<std::vector<std::vector<uint32_t>>> seen;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const uint32_t world : {2u, 3u, 8u, 17u}) {
      const auto targets = ExchangeTargets("permutation", world, seed);
      std::set<uint32_t> reached;
      for (uint32_t rank = 0; rank < world; ++rank) {
        ASSERT_EQ(targets[rank].size(), 1u);
        EXPECT_NE(targets[rank][0], rank);
        reached.insert(targets[rank][0]);
      }
      EXPECT_EQ(reached.size(), world);
      EXPECT_EQ(targets, ExchangeTargets("permutation", world, seed));
      if (world == 17) seen.insert(targets);
    }
  }
  EXPECT_GT(seen.size(), 15u);
}

}  // namespace
}  // namespace paceline::tools
