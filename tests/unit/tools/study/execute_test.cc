#include "tools/study/execute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <sstream>

#include "tests/unit/tools/study/ranks/thread_team.h"
#include "tools/study/results.h"

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Runs = std::vector<std::vector<RunOutcome>>;

// Two sections, of four runs and one.
Study Load(const std::vector<std::string>& overrides = {}) {
  auto study = ParseStudy(R"(
    [fabric]
    topology = "single_switch"
    hosts = 6
    [workload]
    kind = "incast"
    fan_in = 3
    bytes = 30000
    [[section]]
    title = "first"
    cc = { algorithms = ["tita", "dcqcn"] }
    run = { seeds = [3, 7] }
    [[section]]
    title = "second"
    cc = { algorithms = ["swift"] }
  )",
                          "test.toml", "", overrides);
  EXPECT_TRUE(study.ok()) << study.status();
  return *std::move(study);
}

// All that a study writes, wall-clock time apart.
std::string Written(const Study& study, Runs runs) {
  for (std::vector<RunOutcome>& section : runs) {
    for (RunOutcome& run : section) run.wall_s = 0;
  }
  std::ostringstream csv;
  WriteFlowsCsv(study, runs, csv);
  return StudyToJson(study, runs).dump() + csv.str();
}

// What each rank of a team gets, given its own copy of the study.
std::vector<absl::StatusOr<Runs>> Execute(uint32_t ranks, const std::vector<Study>& studies) {
  std::vector<absl::StatusOr<Runs>> all(ranks, absl::UnknownError("not run"));
  ThreadTeam team(ranks);
  team.Run([&](RunExchange& exchange) {
    ExecuteOptions options;
    options.exchange = &exchange;
    all[exchange.rank()] = ExecuteStudy(studies[exchange.rank()], options);
  });
  return all;
}

TEST(ExecuteTest, SameResultsHoweverManyRanks) {
  const Study study = Load();
  const auto alone = ExecuteStudy(study, ExecuteOptions());
  ASSERT_TRUE(alone.ok()) << alone.status();
  ASSERT_EQ((*alone)[0].size(), 4u);
  ASSERT_EQ((*alone)[1].size(), 1u);
  const std::string expected = Written(study, *alone);
  for (const uint32_t ranks : {1u, 2u, 3u, 5u, 7u}) {
    const auto all = Execute(ranks, std::vector<Study>(ranks, study));
    ASSERT_TRUE(all[0].ok()) << all[0].status();
    EXPECT_EQ(Written(study, *all[0]), expected) << ranks;
    for (uint32_t rank = 1; rank < ranks; ++rank) {
      ASSERT_TRUE(all[rank].ok()) << all[rank].status();
      EXPECT_EQ(all[rank]->size(), 2u);
      for (const auto& section : *all[rank]) EXPECT_THAT(section, IsEmpty());
    }
  }
}

TEST(ExecuteTest, WithoutAThreadTheCallerDoesItAll) {
  const Study study = Load();
  const auto expected = ExecuteStudy(study, ExecuteOptions());
  ASSERT_TRUE(expected.ok()) << expected.status();
  pthread_attr_t before, hopeless;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&hopeless), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&hopeless, size_t{1} << 47), 0);  // more than there are addresses
  ASSERT_EQ(pthread_setattr_default_np(&hopeless), 0);
  ExecuteOptions options;
  options.jobs = 4;
  const auto runs = ExecuteStudy(study, options);
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ(Written(study, *runs), Written(study, *expected));
}

// Each rank but 0 has a study in which only its own run could be executed.
TEST(ExecuteTest, NoRankExecutesWhatIsNotItsOwn) {
  const size_t runs_of[] = {0, 0, 1, 1, 2};  // algorithm of each run, by its number
  std::vector<Study> studies(5, Load());
  for (size_t rank = 1; rank < studies.size(); ++rank) {
    size_t number = 0;
    for (StudySection& section : studies[rank].sections) {
      for (AlgorithmChoice& algorithm : section.scenario.algorithms) {
        if (number++ != runs_of[rank]) algorithm.name = "hope";
      }
    }
  }
  for (const auto& runs : Execute(5, studies)) EXPECT_TRUE(runs.ok()) << runs.status();
}

TEST(ExecuteTest, ARunThatFailsFailsEverywhere) {
  std::vector<Study> studies(3, Load());
  studies[1].sections[0].scenario.algorithms[0].name = "hope";
  for (const auto& runs : Execute(3, studies)) {
    ASSERT_FALSE(runs.ok());
    EXPECT_THAT(std::string(runs.status().message()), HasSubstr("rank 1 on "));
    EXPECT_THAT(std::string(runs.status().message()), HasSubstr("hope"));
  }
}

TEST(ExecuteTest, AnotherStudyAtOneRankIsRefused) {
  for (const auto& runs : Execute(2, {Load(), Load({"workload.bytes=30001"})})) {
    ASSERT_FALSE(runs.ok());
    EXPECT_THAT(std::string(runs.status().message()), HasSubstr("rank 1 on "));
    EXPECT_THAT(std::string(runs.status().message()), HasSubstr("another scenario"));
  }
}

}  // namespace
}  // namespace paceline::tools
