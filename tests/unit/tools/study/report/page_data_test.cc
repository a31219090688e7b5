#include "tools/study/report/page_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/study/report/sample_data.h"

namespace paceline::tools {
namespace {

nlohmann::json DataOf(const ReportSection& section) {
  ReportPage page;
  page.sections.push_back(section);
  return PageData(page, AssignStyles(page));
}

TEST(PageData, CarriesLimitsAndTheRateOfAnIdealRun) {
  const auto limits = DataOf(SampleSection({}))["sections"][0]["limits"];
  EXPECT_EQ(limits["queue_bytes"], 178880);
  EXPECT_EQ(limits["ecn_min_bytes"], 37440);
  EXPECT_EQ(limits["link_gbps"], 100);
  EXPECT_NEAR(limits["ideal_gbps"].get<double>(), 8e-3 * 32e6 / (81.5 * 32 + 13.7), 0.01);
}

TEST(PageData, DrawsNoLimitWhereThereIsNone) {
  ReportSection section = SampleSection({});
  section.results["scenario"]["fabric"]["pfc"] = true;
  EXPECT_FALSE(DataOf(section)["sections"][0]["limits"].contains("queue_bytes"));
  section.results["scenario"]["fabric"]["pfc"] = false;
  section.results["scenario"]["fabric"]["buffer"] = "shared";
  EXPECT_FALSE(DataOf(section)["sections"][0]["limits"].contains("queue_bytes"));
}

TEST(PageData, CarriesAnAlgorithmsOwnMarkingWhereItDiffers) {
  ReportSection section = SampleSection({});
  section.results["scenario"]["cc"]["dcqcn"] = {{"ecn_min_bytes", 5000}, {"ecn_max_bytes", 145600}, {"g", 0.1}};
  section.results["scenario"]["cc"]["tita"] = {{"ecn_min_bytes", 37440}, {"ecn_max_bytes", 145600}};
  const auto marking = DataOf(section)["sections"][0]["marking"];
  EXPECT_EQ(marking, (nlohmann::json{{"dcqcn", {{"ecn_min_bytes", 5000}}}}));
}

TEST(PageData, CarriesFaults) {
  SampleOptions options;
  options.faults = true;
  const auto faults = DataOf(SampleSection(options))["sections"][0]["faults"];
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0]["name"], "link down");
  EXPECT_EQ(faults[0]["target"], "agg:5/up:0");
  EXPECT_EQ(faults[0]["at_us"], 600);
  EXPECT_EQ(faults[0]["until_us"], 1100);
}

TEST(PageData, KeepsListsOfPointsAlike) {
  const auto section = DataOf(SampleSection({}))["sections"][0];
  ASSERT_EQ(section["series"].size(), 12U);
  for (const auto& run : section["series"]) {
    for (const char* key : {"queue", "last_hop_queue", "port_rate", "last_hop_rate", "total_rate"}) {
      EXPECT_EQ(run[key]["x"].size(), run[key]["y"].size());
      EXPECT_LE(run[key]["x"].size(), 600U);
    }
  }
  EXPECT_EQ(section["fct"]["tita"]["count"], 96);
}

TEST(PageData, ComparesSizesOnlyWhenThereAreSeveral) {
  EXPECT_TRUE(DataOf(SampleSection({}))["sections"][0]["by_size"].empty());
  SampleOptions options;
  options.mixed_sizes = true;
  options.flows = 500;
  const auto by_size = DataOf(SampleSection(options))["sections"][0]["by_size"]["tita"];
  EXPECT_LE(by_size["bytes"].size(), 24U);
  size_t flows = 0;
  for (const auto& count : by_size["flows"]) flows += count.get<size_t>();
  EXPECT_EQ(flows, 1500U);
}

TEST(StableResults, LeavesOutTheWallClock) {
  const auto results = StableResults(SampleSection({}).results);
  for (const auto& run : results["runs"]) EXPECT_FALSE(run.contains("wall_s"));
  EXPECT_EQ(StableResults(nlohmann::json()), nlohmann::json::object());
}

}  // namespace
}  // namespace paceline::tools
