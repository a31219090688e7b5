#include "paceline/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "api/cpp/src/convert.h"
#include "api/cpp/src/engine_options.h"

extern char** environ;

namespace paceline::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OptionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (text.rfind("PACELINE_", 0) == 0) names.push_back(text.substr(0, text.find('=')));
    }
    for (const std::string& name : names) unsetenv(name.c_str());
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) unsetenv(name);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(OptionsTest, EmptyEnvironmentKeepsTheDefaults) {
  ContextOptions defaults;
  defaults.lane = "shm";
  defaults.spin_us = 7;
  const auto options = ContextOptions::FromEnvironment(defaults);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->lane, "shm");
  EXPECT_EQ(options->spin_us, 7u);
}

TEST_F(OptionsTest, EnvironmentGoesOverTheDefaults) {
  setenv("PACELINE_BIND", "eth0,192.0.2.1", 1);
  setenv("PACELINE_CC", "swift", 1);
  setenv("PACELINE_CC_PARAMETERS", "a=1,b=x", 1);
  setenv("PACELINE_PROGRESS", "thread", 1);
  setenv("PACELINE_LINK_GBPS", "12.5", 1);
  setenv("PACELINE_BASE_RTT_US", "1500.5", 1);
  setenv("PACELINE_PAYLOAD_CHECKSUM", "0", 1);
  setenv("PACELINE_PEER_TIMEOUT_MS", "1500", 1);
  setenv("PACELINE_ENGINES", "3", 1);
  setenv("PACELINE_TRAFFIC_CLASS", "104", 1);
  setenv("PACELINE_DPDK_EAL", "-m 512", 1);
  setenv("PACELINE_VERBS_RELIABLE", "1", 1);
  setenv("PACELINE_MATCHED_SENDS", "1", 1);
  setenv("PACELINE_ORDERED_PLACEMENT", "1", 1);
  auto options = ContextOptions::FromEnvironment();
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_THAT(options->bind, ElementsAre("eth0", "192.0.2.1"));
  EXPECT_EQ(options->congestion_control, "swift");
  EXPECT_EQ(options->congestion_control_parameters.at("b"), "x");
  EXPECT_EQ(options->progress, ProgressMode::kThread);
  EXPECT_DOUBLE_EQ(options->link_gbps, 12.5);
  EXPECT_DOUBLE_EQ(options->base_rtt_us, 1500.5);
  EXPECT_FALSE(options->payload_checksum);
  EXPECT_EQ(options->peer_timeout_ms, 1500u);
  EXPECT_EQ(options->engines, 3u);
  EXPECT_EQ(ToLaneOptions(*options)->traffic_class, 104);
  EXPECT_EQ(ToLaneOptions(*options)->dpdk_eal, "-m 512");
  EXPECT_TRUE(ToLaneOptions(*options)->verbs_reliable);
  options->congestion_control_parameters.clear();
  EXPECT_EQ(ToEngineOptions(*options)->endpoint.unexpected_bytes, 0u);
  EXPECT_EQ(ToEngineOptions(*options)->endpoint.base_rtt, Duration::Nanos(1'500'500));
  EXPECT_TRUE(ToEngineOptions(*options)->endpoint.ordered_placement);
}

TEST_F(OptionsTest, ErrorsNameVariableAndValue) {
  for (const auto& [name, value] :
       {std::pair{"PACELINE_MTU", "big"}, std::pair{"PACELINE_MTU", "5000000000"},
        std::pair{"PACELINE_PROGRESS", "magic"}, std::pair{"PACELINE_COUNTERS", "maybe"},
        std::pair{"PACELINE_CC_PARAMETERS", "a"}, std::pair{"PACELINE_TRAFFIC_CLASS", "256"},
        std::pair{"PACELINE_LINK_GBPS", "-1"}}) {
    setenv(name, value, 1);
    const auto options = ContextOptions::FromEnvironment();
    ASSERT_FALSE(options.ok()) << name;
    EXPECT_THAT(options.status().message(), HasSubstr(std::string(name) + "=" + value));
    unsetenv(name);
  }
}

// The parameter that it sets; -1: the algorithm's default.
double Unscheduled(const ContextOptions& options) {
  const auto engine = ToEngineOptions(options);
  const auto found = engine->congestion_control_parameters.find("unscheduled");
  return found == engine->congestion_control_parameters.end() ? -1 : std::get<double>(found->second);
}

TEST_F(OptionsTest, TheFanInSetsWhatGoesWithoutCredit) {
  ContextOptions options;
  EXPECT_EQ(Unscheduled(options), -1);
  options.fan_in = 100;
  EXPECT_DOUBLE_EQ(Unscheduled(options), 0.01);
  options.fan_in = 1;
  EXPECT_DOUBLE_EQ(Unscheduled(options), 0.125);
  options.congestion_control_parameters["unscheduled"] = "0.5";
  EXPECT_DOUBLE_EQ(Unscheduled(options), 0.5);
  options.congestion_control_parameters.clear();
  options.congestion_control = "swift";
  EXPECT_EQ(Unscheduled(options), -1);
}

TEST_F(OptionsTest, ASmallJobsRanksAreItsFanIn) {
  ContextOptions options;
  setenv("OMPI_COMM_WORLD_SIZE", "21", 1);
  EXPECT_DOUBLE_EQ(Unscheduled(options), 1.0 / 20);
  setenv("OMPI_COMM_WORLD_SIZE", "1000", 1);
  EXPECT_EQ(Unscheduled(options), -1);
  options.fan_in = 16;
  EXPECT_DOUBLE_EQ(Unscheduled(options), 1.0 / 16);
  unsetenv("OMPI_COMM_WORLD_SIZE");
}

TEST_F(OptionsTest, BoundsAreChecked) {
  ContextOptions options;
  options.entropies = 100000;
  EXPECT_THAT(ToEngineOptions(options).status().message(), HasSubstr("entropies"));
  options = ContextOptions();
  options.impair = "theft=1%";
  EXPECT_THAT(ToLaneOptions(options).status().message(), HasSubstr("theft"));
  options.impair.clear();
  for (const double rtt : {0.5, 2e6, -1.0, std::nan("")}) {
    options.base_rtt_us = rtt;
    EXPECT_THAT(ToEngineOptions(options).status().message(), HasSubstr("1 to 1000000")) << rtt;
  }
  options.base_rtt_us = 0;
  for (const double gbps : {1e-300, 2e6, std::numeric_limits<double>::infinity(), -1.0, std::nan("")}) {
    options.link_gbps = gbps;
    EXPECT_THAT(ToLaneOptions(options).status().message(), HasSubstr("0.001 to 1000000")) << gbps;
  }
}

TEST_F(OptionsTest, SecretsAndSeedsAreRandomUnlessGiven) {
  const auto one = ToEngineOptions(ContextOptions()), two = ToEngineOptions(ContextOptions());
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->endpoint.seed, two->endpoint.seed);
  EXPECT_NE(one->endpoint.cookie_secret, two->endpoint.cookie_secret);
  ContextOptions given;
  given.seed = 5;
  EXPECT_EQ(ToEngineOptions(given)->endpoint.seed, 5u);
}

TEST_F(OptionsTest, KeysAreReadAndSeedsAreRandom) {
  const std::string path = testing::TempDir() + "options_test_key";
  std::ofstream(path) << std::string(64, '7') << "\n";
  chmod(path.c_str(), 0600);
  setenv("PACELINE_KEY_FILE", path.c_str(), 1);
  setenv("PACELINE_ENCRYPT", "1", 1);
  const auto options = ContextOptions::FromEnvironment();
  ASSERT_TRUE(options.ok());
  const auto one = ToEngineOptions(*options), two = ToEngineOptions(*options);
  ASSERT_TRUE(one.ok()) << one.status().message();
  ASSERT_TRUE(one->endpoint.cluster_key.has_value());
  EXPECT_EQ(one->endpoint.cluster_key->back(), 0x77);
  EXPECT_TRUE(one->endpoint.encrypt);
  EXPECT_NE(one->endpoint.key_seed, two->endpoint.key_seed);
  chmod(path.c_str(), 0644);
  EXPECT_THAT(ToEngineOptions(*options).status().message(), HasSubstr("chmod 600"));
  remove(path.c_str());
}

TEST_F(OptionsTest, WithoutAKeyThereIsNothingToEncryptWith) {
  for (const char* file : {"", "none"}) {
    ContextOptions options;
    options.key_file = file;
    EXPECT_FALSE(ToEngineOptions(options)->endpoint.cluster_key.has_value());
    options.encrypt = true;
    EXPECT_THAT(ToEngineOptions(options).status().message(), HasSubstr("PACELINE_KEY_FILE"));
  }
}

TEST_F(OptionsTest, AnEmptyVariableTakesNoKeyAway) {
  ContextOptions asked;
  asked.key_file = "the program's";
  setenv("PACELINE_KEY_FILE", "", 1);
  EXPECT_EQ(ContextOptions::FromEnvironment(asked)->key_file, "the program's");
  setenv("PACELINE_KEY_FILE", "none", 1);
  EXPECT_EQ(ContextOptions::FromEnvironment(asked)->key_file, "none");
}

TEST_F(OptionsTest, AProgressThreadCountsTwice) {
  ContextOptions options;
  options.local_ranks = 3;
  EXPECT_EQ(ToWaitOptions(options).local_ranks, 3u);
  options.progress = ProgressMode::kThread;
  EXPECT_EQ(ToWaitOptions(options).local_ranks, 6u);
  options.engines = 4;  // each has one
  EXPECT_EQ(ToWaitOptions(options).local_ranks, 15u);
}

TEST_F(OptionsTest, EnginesDifferInWhatTheyMayNotShare) {
  ContextOptions options;
  EXPECT_EQ(ToEngineOptions(options)->endpoint.id_prefix_bits, 0u);
  EXPECT_FALSE(ToLaneOptions(options)->any_udp_port);
  options.engines = 5;
  const auto first = ToEngineOptions(options, 0), last = ToEngineOptions(options, 4);
  EXPECT_EQ(last->endpoint.id_prefix_bits, 3u);
  EXPECT_EQ(last->endpoint.id_prefix, 4u);
  EXPECT_NE(first->endpoint.key_seed, last->endpoint.key_seed);
  EXPECT_FALSE(ToLaneOptions(options, 0)->any_udp_port);
  EXPECT_TRUE(ToLaneOptions(options, 4)->any_udp_port);
}

TEST_F(OptionsTest, ParametersGetTheTypeThatTheAlgorithmWants) {
  for (const AlgorithmInfo& algorithm : CongestionControlAlgorithms()) {
    for (const ParameterSpec& spec : algorithm.parameters) {
      if (!std::holds_alternative<double>(spec.default_value)) continue;
      const auto right = ToParameters(algorithm.name, {{spec.name, std::to_string(spec.min)}});
      ASSERT_TRUE(right.ok());
      EXPECT_TRUE(std::holds_alternative<double>(right->at(spec.name)));
      const auto wrong = ToParameters(algorithm.name, {{spec.name, "plenty"}});
      EXPECT_THAT(wrong.status().message(), HasSubstr(spec.name));
    }
  }
}

// Else its calls from several threads would meet nobody who keeps them apart.
TEST_F(OptionsTest, AProgramThatAsksForAThreadHasOne) {
  setenv("PACELINE_PROGRESS", "manual", 1);
  ContextOptions options;
  options.progress = ProgressMode::kThread;
  const auto resolved = ContextOptions::FromEnvironment(options);
  unsetenv("PACELINE_PROGRESS");
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(resolved->progress, ProgressMode::kThread);
}

}  // namespace
}  // namespace paceline::api
