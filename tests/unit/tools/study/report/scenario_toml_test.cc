#include "tools/study/report/scenario_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include "tests/unit/tools/study/report/sample_data.h"

namespace paceline::tools {
namespace {

TEST(ScenarioToml, ReadsBackAsTheSameScenario) {
  SampleOptions options;
  options.faults = true;
  const std::string text = ScenarioToml(SampleSection(options).results["scenario"]);
  const toml::table read = toml::parse(text);
  EXPECT_EQ(read["fabric"]["queue_bytes"].value<int64_t>(), 178880);
  EXPECT_EQ(read["fabric"]["trimming"].value<bool>(), false);
  EXPECT_EQ(read["cc"]["algorithms"][0].value<std::string>(), "tita");
  EXPECT_EQ(read["run"]["seeds"][2].value<int64_t>(), 3);
  EXPECT_EQ(read["fault"][0]["target"].value<std::string>(), "agg:5/up:0");
}

TEST(ScenarioToml, QuotesWhatNeedsIt) {
  const nlohmann::json scenario = {{"odd key", "a\"b\\c\n'd'"}, {"share", 0.25}, {"none", nullptr}};
  const toml::table read = toml::parse(ScenarioToml(scenario));
  EXPECT_EQ(read["odd key"].value<std::string>(), "a\"b\\c\n'd'");
  EXPECT_EQ(read["share"].value<double>(), 0.25);
  EXPECT_FALSE(read.contains("none"));
}

TEST(ScenarioToml, OfNothingIsEmpty) {
  EXPECT_EQ(ScenarioToml(nlohmann::json()), "");
  EXPECT_EQ(ScenarioToml(nlohmann::json::object()), "");
}

}  // namespace
}  // namespace paceline::tools
