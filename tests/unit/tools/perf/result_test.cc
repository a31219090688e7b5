#include "tools/perf/result.h"

#include <gtest/gtest.h>

namespace paceline::tools {
namespace {

TEST(Result, TravelsWhole) {
  RankResult result;
  result.messages = 1;
  result.messages_not_started = 15;
  result.bytes = 2;
  result.seconds = 3.5;
  result.cpu_seconds = 4.5;
  result.iterations = 5;
  result.latency.Add(600);
  result.operation.Add(700);
  result.latency_kind = "completion";
  result.verified = false;
  result.checked_bytes = 8;
  result.retransmits = 9;
  result.retransmitted_bytes = 10;
  result.drops = 11;
  result.impaired_bytes = 12;
  result.data_bytes = 13;
  result.counters["apples"] = 14;
  const auto back = RankResult::FromJson(result.ToJson().dump());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->ToJson(), result.ToJson());
}

TEST(Result, NonsenseIsRefused) {
  EXPECT_FALSE(RankResult::FromJson("").ok());
  EXPECT_FALSE(RankResult::FromJson("{}").ok());
  EXPECT_FALSE(RankResult::FromJson("{\"latency\": {}, \"operation\": {}}").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(RankResult::FromJson("{\"latency\": 1, \"operation\": 2}").status()));
}

}  // namespace
}  // namespace paceline::tools
