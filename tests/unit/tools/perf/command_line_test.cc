#include "tools/perf/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The arguments as CLI11 fills them; fails the test when it refuses them.
PerfArguments Parse(std::vector<std::string> words) {
  CLI::App app("test", "perf");
  PerfArguments arguments;
  DeclarePerfOptions(app, arguments);
  std::reverse(words.begin(), words.end());
  EXPECT_NO_THROW(app.parse(words));
  return arguments;
}

std::string SpecError(const std::vector<std::string>& words) {
  return std::string(ToTestSpec(Parse(words)).status().message());
}

TEST(CommandLine, DefaultsOfAPair) {
  const auto spec = ToTestSpec(Parse({"local"}));
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->kind, "pair");
  EXPECT_EQ(spec->op, "send");
  EXPECT_THAT(spec->sizes, ElementsAre(65536));
  EXPECT_EQ(spec->iterations, 0u);
  EXPECT_EQ(spec->warmup, std::nullopt);
  EXPECT_EQ(ToTestSpec(Parse({"local", "--warmup", "0"}))->warmup, 0u);
  EXPECT_DOUBLE_EQ(spec->seconds, 2);
}

TEST(CommandLine, EverythingOfAClient) {
  const PerfArguments arguments = Parse({"client",
                                         "192.0.2.9",
                                         "--port",
                                         "4000",
                                         "--op",
                                         "write_imm",
                                         "--sizes",
                                         "1K:4K",
                                         "--iterations",
                                         "10",
                                         "--warmup",
                                         "3",
                                         "--window",
                                         "5",
                                         "--bidirectional",
                                         "--rate",
                                         "200M",
                                         "--interval",
                                         "0.5",
                                         "--histogram",
                                         "--memory",
                                         "host",
                                         "--json",
                                         "out.json",
                                         "--lane",
                                         "udp",
                                         "--device",
                                         "eth0,eth1",
                                         "--cc",
                                         "swift",
                                         "--cc-set",
                                         "a=1",
                                         "--cc-set",
                                         "b=2",
                                         "--impair",
                                         "loss=1%",
                                         "--link-gbps",
                                         "25",
                                         "--mtu",
                                         "9000",
                                         "--progress",
                                         "thread",
                                         "--engines",
                                         "3"});
  EXPECT_EQ(arguments.mode, "client");
  EXPECT_EQ(arguments.host, "192.0.2.9");
  EXPECT_EQ(arguments.port, 4000);
  EXPECT_TRUE(arguments.histogram);
  const auto spec = ToTestSpec(arguments);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->op, "write_imm");
  EXPECT_THAT(spec->sizes, ElementsAre(1024, 2048, 4096));
  EXPECT_TRUE(spec->bidirectional);
  EXPECT_DOUBLE_EQ(spec->rate, 2e8);
  const auto options = ToContextOptions(arguments);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->bind, ElementsAre("eth0", "eth1"));
  EXPECT_EQ(options->congestion_control, "swift");
  EXPECT_EQ(options->congestion_control_parameters.at("b"), "2");
  EXPECT_EQ(options->impair, "loss=1%");
  EXPECT_EQ(options->progress, api::ProgressMode::kThread);
  EXPECT_EQ(options->engines, 3u);
}

TEST(CommandLine, ManyRanks) {
  const auto spec = ToTestSpec(Parse({"alltoall", "--ranks", "8", "--size", "64K", "--seconds", "1"}));
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->kind, "alltoall");
  EXPECT_DOUBLE_EQ(spec->seconds, 1);
}

TEST(CommandLine, NumbersBelowZeroOrTooLargeAreRefused) {
  for (const std::string option : {"--iterations", "--warmup", "--window", "--mtu", "--engines", "--seed", "--ranks"}) {
    for (const char* value : {"-1", "-18446744073709551615", "18446744073709551617"}) {
      CLI::App app("test", "perf");
      PerfArguments arguments;
      DeclarePerfOptions(app, arguments);
      EXPECT_THROW(app.parse(std::vector<std::string>{value, option, "permutation"}), CLI::ParseError)
          << option << " " << value;
    }
  }
  EXPECT_EQ(Parse({"permutation", "--seed", "18446744073709551615"}).seed, ~0ull);
}

TEST(CommandLine, MistakesAreNamed) {
  EXPECT_THAT(SpecError({"local", "--op", "teleport"}), HasSubstr("teleport"));
  EXPECT_THAT(SpecError({"local", "--size", "1K", "--sizes", "1K:2K"}), HasSubstr("--sizes"));
  EXPECT_THAT(SpecError({"local", "--size", "huge"}), HasSubstr("huge"));
  EXPECT_THAT(SpecError({"local", "--iterations", "5", "--seconds", "1"}), HasSubstr("--seconds"));
  EXPECT_THAT(SpecError({"local", "--seconds", "-1"}), HasSubstr("--seconds"));
  EXPECT_THAT(SpecError({"local", "--window", "100000"}), HasSubstr("--window"));
  EXPECT_THAT(SpecError({"local", "--rate", "warp"}), HasSubstr("warp"));
  EXPECT_THAT(SpecError({"local", "--memory", "gpu:0"}), HasSubstr("planned"));
  EXPECT_THAT(std::string(ToContextOptions(Parse({"local", "--cc-set", "x"})).status().message()),
              HasSubstr("--cc-set x"));
  EXPECT_THAT(std::string(ToContextOptions(Parse({"local", "--impair", "theft=1%"})).status().message()),
              HasSubstr("theft"));
  EXPECT_THAT(std::string(ToContextOptions(Parse({"local", "--progress", "none"})).status().message()),
              HasSubstr("--progress none"));
}

}  // namespace
}  // namespace paceline::tools
