#include "tools/perf/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;

RankResult Rank(uint64_t messages, uint64_t bytes, double seconds) {
  RankResult result;
  result.messages = messages;
  result.bytes = bytes;
  result.seconds = seconds;
  result.cpu_seconds = seconds;
  result.checked_bytes = 100;
  return result;
}

TEST(Report, APairHasEveryFieldOfTheContract) {
  TestSpec spec;
  RankResult server = Rank(0, 0, 1.9), client = Rank(10, 2'000'000'000, 2);
  client.latency.Add(20'000);
  client.latency_kind = "half round trip";
  client.retransmits = 3;
  server.drops = 4;
  const SizeReport report = JoinResults(spec, "udp", 4096, 8, {server, client});
  for (const char* field : {"op", "lane", "size", "messages", "bytes", "seconds", "gbps", "latency_us", "cpu_seconds",
                            "retransmits", "drops", "verified"}) {
    EXPECT_TRUE(report.json.contains(field)) << field;
  }
  for (const char* field : {"p50", "p90", "p99", "p999", "max"}) EXPECT_TRUE(report.json["latency_us"].contains(field));
  EXPECT_DOUBLE_EQ(report.json["gbps"].get<double>(), 8);
  EXPECT_NEAR(report.json["latency_us"]["p50"].get<double>(), 10, 0.2);
  EXPECT_EQ(report.json["retransmits"], 3);
  EXPECT_EQ(report.json["drops"], 4);
  EXPECT_DOUBLE_EQ(report.json["cpu_seconds"].get<double>(), 3.9);
  EXPECT_TRUE(report.verified);
  EXPECT_THAT(TableRow(spec, report), HasSubstr("4 KiB"));
  EXPECT_THAT(TableHeading(spec, 2), HasSubstr("p50"));
}

TEST(Report, WhatAnOpenLoopDidNotStartIsSaid) {
  TestSpec spec;
  spec.rate = 1e9;
  RankResult held_up = Rank(10, 640, 1);
  EXPECT_EQ(JoinResults(spec, "udp", 64, 1, {Rank(0, 0, 1), held_up}).json["messages_not_started"], 0);
  held_up.messages_not_started = 7;
  const SizeReport report = JoinResults(spec, "udp", 64, 1, {held_up, held_up});
  EXPECT_EQ(report.json["messages_not_started"], 14);
  EXPECT_THAT(TableRow(spec, report), HasSubstr("\n14 more messages"));
}

TEST(Report, BandwidthIsReckonedAsInNcclTests) {
  TestSpec spec;
  const auto at = [&](const std::string& kind) {
    spec.kind = kind;
    std::vector<RankResult> ranks(4, Rank(30, 0, 1));
    for (RankResult& rank : ranks) rank.iterations = 10;
    return JoinResults(spec, "udp", 1'000'000'000, 2, ranks).json;
  };
  EXPECT_NEAR(at("alltoall")["algbw"].get<double>(), 40, 1e-9);
  EXPECT_NEAR(at("alltoall")["busbw"].get<double>(), 30, 1e-9);
  EXPECT_NEAR(at("allreduce")["algbw"].get<double>(), 10, 1e-9);
  EXPECT_NEAR(at("allreduce")["busbw"].get<double>(), 15, 1e-9);
  EXPECT_NEAR(at("permutation")["busbw"].get<double>(), 10, 1e-9);
}

TEST(Report, NothingCheckedIsNotVerified) {
  TestSpec spec;
  RankResult unchecked;
  unchecked.seconds = 1;
  EXPECT_FALSE(JoinResults(spec, "udp", 64, 1, {unchecked, unchecked}).verified);
  RankResult wrong = Rank(1, 1, 1);
  wrong.verified = false;
  const SizeReport report = JoinResults(spec, "udp", 64, 1, {Rank(1, 1, 1), wrong});
  EXPECT_FALSE(report.verified);
  EXPECT_THAT(TableRow(spec, report), HasSubstr("NO"));
}

TEST(Report, OneSizeIsFlatAndSeveralAreAList) {
  TestSpec spec;
  const SizeReport report = JoinResults(spec, "udp", 64, 1, {Rank(1, 1, 1), Rank(1, 1, 1)});
  EXPECT_EQ(ReportJson({report}, "1.2.3")["paceline"], "1.2.3");
  EXPECT_EQ(ReportJson({report}, "1.2.3")["size"], 64);
  EXPECT_EQ(ReportJson({report, report}, "1.2.3")["runs"].size(), 2u);
}

}  // namespace
}  // namespace paceline::tools
