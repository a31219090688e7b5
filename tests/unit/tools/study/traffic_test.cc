#include "tools/study/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;

std::map<std::string, TrafficRow> Rows(const TrafficModel& model) {
  std::map<std::string, TrafficRow> rows;
  for (const TrafficRow& row : TrafficOf(model)) rows[row.what] = row;
  return rows;
}

// To the digits that were published.
TEST(TrafficTest, PublishedTotalsOfLlama3) {
  const auto rows = Rows(*LoadTrafficModel("llama3-70b"));
  EXPECT_NEAR(rows.at("data parallel").published_bytes, 1396e15, 0.5e15);
  EXPECT_NEAR(rows.at("fully sharded, forward").published_bytes, 174.4e15, 0.05e15);
  EXPECT_NEAR(rows.at("fully sharded, backward").published_bytes, 174.4e15, 0.05e15);
  EXPECT_NEAR(rows.at("tensor parallel, forward").published_bytes, 22.9e18, 0.05e18);
  EXPECT_NEAR(rows.at("tensor parallel, backward").published_bytes, 27.9e18, 0.05e18);
  EXPECT_NEAR(rows.at("pipeline, each way").published_bytes, 17.9e15, 0.05e15);
}

TEST(TrafficTest, OwnAlgorithms) {
  const TrafficModel model = {
      .layers = 3, .hidden = 10, .parameters = 1000, .bytes_per_value = 2, .mini_batches = 5, .tokens = 7, .gpus = 4};
  const auto rows = Rows(model);
  EXPECT_EQ(rows.at("data parallel").own_bytes, 4 * 2 * (3.0 / 4) * 2000 * 5);  // 2 (G-1)/G of 2000 bytes each
  EXPECT_EQ(rows.at("fully sharded, forward").own_bytes, 3 * 2000 * 5);
  EXPECT_EQ(rows.at("fully sharded, backward").own_bytes, 2 * 3 * 2000 * 5);
  EXPECT_EQ(rows.at("tensor parallel, forward").own_bytes, 3 * 2 * (2 * 3 * 140));
  EXPECT_EQ(rows.at("pipeline, each way").own_bytes, 3 * 140);
}

TEST(TrafficTest, TableAndJsonShowBoth) {
  const TrafficModel model = *LoadTrafficModel("llama3-70b");
  const std::string table = TrafficTable(model);
  for (const char* text : {"1396 PB", "174.4 PB", "22.9 EB", "27.9 EB", "17.9 PB", "348.9 PB"}) {
    EXPECT_THAT(table, HasSubstr(text));
  }
  const nlohmann::json json = TrafficJson(model);
  EXPECT_EQ(json["model"]["parameters"], 70e9);
  EXPECT_EQ(json["traffic"].size(), 6u);
  EXPECT_NEAR(json["traffic"][0]["every_pair_bytes"].get<double>(), 1396e15, 0.5e15);
}

TEST(TrafficTest, RefusesMistakes) {
  EXPECT_THAT(std::string(LoadTrafficModel(testing::TempDir()).status().message()), HasSubstr("Is a directory"));
  const auto message = [](const char* toml) { return std::string(ParseTrafficModel(toml, "m").status().message()); };
  EXPECT_THAT(message("[model]\nlayers = 3\n"), HasSubstr("model.hidden is missing"));
  EXPECT_THAT(message("[model]\nlayers = 'a'\n"), HasSubstr("model.layers must be"));
  EXPECT_THAT(message("[model\n"), HasSubstr("m:1"));
  EXPECT_THAT(message("[model]\nlayers=1\nhidden=1\nparameters=1\nmini_batches=1\ntokens=1\nwidth=2\n"),
              HasSubstr("model.width is not known"));
  EXPECT_THAT(std::string(LoadTrafficModel("none.toml").status().message()), HasSubstr("llama3-70b"));
}

}  // namespace
}  // namespace paceline::tools
