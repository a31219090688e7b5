#include "tools/perf/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Spec, Sizes) {
  EXPECT_EQ(*ParseSize("64"), 64u);
  EXPECT_EQ(*ParseSize("64K"), 65536u);
  EXPECT_EQ(*ParseSize("1M"), 1048576u);
  EXPECT_EQ(*ParseSize("16g"), 16ull << 30);
  for (const char* bad : {"", "0", "-1", "K", "1.5M", "17G", "12Q", "99999999999999999999"}) {
    EXPECT_THAT(std::string(ParseSize(bad).status().message()), HasSubstr("not a size")) << bad;
  }
  EXPECT_THAT(*ParseSizes("64:512"), ElementsAre(64, 128, 256, 512));
  EXPECT_THAT(*ParseSizes("100:350"), ElementsAre(100, 200));
  EXPECT_FALSE(ParseSizes("64").ok());
  EXPECT_THAT(std::string(ParseSizes("64:32").status().message()), HasSubstr("empty"));
}

TEST(Spec, Rates) {
  EXPECT_DOUBLE_EQ(*ParseBitRate("5"), 5e9);
  EXPECT_DOUBLE_EQ(*ParseBitRate("2.5G"), 2.5e9);
  EXPECT_DOUBLE_EQ(*ParseBitRate("200M"), 2e8);
  for (const char* bad : {"", "0", "-2", "fast", "nan", "inf"}) EXPECT_FALSE(ParseBitRate(bad).ok()) << bad;
}

TEST(Spec, TravelsWhole) {
  TestSpec spec;
  spec.kind = "incast";
  spec.op = "write";
  spec.sizes = {1, 2, 3};
  spec.iterations = 4;
  spec.seconds = 5.5;
  spec.warmup = 6;
  spec.window = 7;
  spec.bidirectional = true;
  spec.rate = 8e9;
  spec.interval = 9;
  spec.seed = 10;
  spec.congestion_control = "swift";
  const auto back = TestSpec::FromJson(spec.ToJson().dump());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->ToJson(), spec.ToJson());
  EXPECT_EQ(back->warmup, 6u);
  spec.warmup = 0;
  EXPECT_EQ(TestSpec::FromJson(spec.ToJson().dump())->warmup, 0u) << "none, and not the default";
  EXPECT_EQ(TestSpec::FromJson(TestSpec().ToJson().dump())->warmup, std::nullopt);
}

TEST(Spec, StrangersAreRefused) {
  for (const char* text : {"", "GET / HTTP/1.1", "[]", "{}", "{\"format\": 1}", "{\"format\": \"2\"}",
                           "{\"format\": 2, \"kind\": 5}", "{\"format\": 2, \"sizes\": {\"a\": 1}}"}) {
    // As the other side's fault, not as wrong use.
    EXPECT_TRUE(absl::IsFailedPrecondition(TestSpec::FromJson(text).status())) << text;
  }
}

TEST(Spec, WhatNoCommandLineCanAskForIsRefused) {
  const auto refused = [](auto change) {
    TestSpec spec;
    change(spec);
    return std::string(TestSpec::FromJson(spec.ToJson().dump()).status().message());
  };
  EXPECT_THAT(refused([](TestSpec& spec) { spec.kind = "dance"; }), HasSubstr("dance"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.op = "dance"; }), HasSubstr("dance"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.sizes = {}; }), HasSubstr("--size"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.sizes = {64, 0}; }), HasSubstr("--size 0"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.sizes = {~0ull}; }), HasSubstr("--size"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.window = kMostWindow + 1; }), HasSubstr("--window"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.iterations = kMostIterations + 1; }), HasSubstr("--iterations"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.warmup = ~0ull; }), HasSubstr("--warmup"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.seconds = 0; }), HasSubstr("--seconds"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.rate = -1; }), HasSubstr("--rate"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.interval = -1; }), HasSubstr("--interval"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.interval = 1e300; }), HasSubstr("--interval"));
  EXPECT_THAT(refused([](TestSpec& spec) { spec.rate = 1e-300; }), HasSubstr("--rate"));
  EXPECT_THAT(refused([](TestSpec& spec) {
                spec.rate = 64;
                spec.sizes = {8, 1 << 20};
              }),
              HasSubstr("a message of 1048576 bytes"));
}

TEST(Spec, SlowIsNotWrong) {
  TestSpec spec;
  spec.sizes = {8};
  spec.rate = 64;  // one a second
  spec.interval = 3600;
  EXPECT_TRUE(spec.Check().ok()) << spec.Check();
}

}  // namespace
}  // namespace paceline::tools
