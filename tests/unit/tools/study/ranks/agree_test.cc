#include "tools/study/ranks/agree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/unit/tools/study/ranks/thread_team.h"

namespace paceline::tools {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

// What Agree says to each rank, where `own` gives its status by rank.
std::vector<absl::Status> Verdicts(uint32_t ranks, const std::function<absl::Status(uint32_t)>& own) {
  std::vector<absl::Status> verdicts(ranks);
  ThreadTeam team(ranks);
  team.Run([&](RunExchange& exchange) { verdicts[exchange.rank()] = Agree(&exchange, own(exchange.rank())); });
  return verdicts;
}

TEST(AgreeTest, AloneWithItself) {
  EXPECT_TRUE(Agree(nullptr, absl::OkStatus()).ok());
  EXPECT_EQ(Agree(nullptr, absl::NotFoundError("no file")), absl::NotFoundError("no file"));
  EXPECT_TRUE(AgreeOnSame(nullptr, "text", "another").ok());
  EXPECT_EQ(AgreeOnExit(nullptr, 2), 2);
}

TEST(AgreeTest, AllIsWell) {
  for (const absl::Status& verdict : Verdicts(3, [](uint32_t) { return absl::OkStatus(); })) {
    EXPECT_TRUE(verdict.ok()) << verdict;
  }
}

TEST(AgreeTest, WhatAllFindIsSaidOnce) {
  for (const absl::Status& verdict : Verdicts(3, [](uint32_t) { return absl::NotFoundError("no file 7 here"); })) {
    EXPECT_EQ(verdict, absl::NotFoundError("no file 7 here"));
  }
}

TEST(AgreeTest, OneRanksErrorNamesItEverywhere) {
  const auto own = [](uint32_t rank) { return rank >= 1 ? absl::NotFoundError("no file") : absl::OkStatus(); };
  for (const absl::Status& verdict : Verdicts(3, own)) {
    EXPECT_TRUE(absl::IsNotFound(verdict));
    EXPECT_THAT(std::string(verdict.message()), StartsWith("rank 1 on "));
    EXPECT_THAT(std::string(verdict.message()), EndsWith(": no file"));
  }
}

TEST(AgreeTest, AnotherTextIsRefusedEverywhere) {
  for (const bool other : {false, true}) {
    ThreadTeam team(2);
    std::vector<absl::Status> verdicts(2);
    team.Run([&](RunExchange& exchange) {
      const bool differs = other && exchange.rank() == 1;
      verdicts[exchange.rank()] = AgreeOnSame(&exchange, differs ? "b" : "a", "it is another");
    });
    for (const absl::Status& verdict : verdicts) {
      EXPECT_EQ(verdict.ok(), !other);
      EXPECT_THAT(std::string(verdict.message()), EndsWith(other ? "it is another" : ""));
    }
  }
}

TEST(AgreeTest, RankZerosExitStatus) {
  ThreadTeam team(3);
  std::vector<int> statuses(3, -1);
  team.Run(
      [&](RunExchange& exchange) { statuses[exchange.rank()] = AgreeOnExit(&exchange, exchange.rank() == 0 ? 1 : 0); });
  EXPECT_EQ(statuses, (std::vector<int>{1, 1, 1}));
}

}  // namespace
}  // namespace paceline::tools
