#include "cc/registry.h"

#include <cmath>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

TEST(Registry, NamesAreUniqueAndSorted) {
  std::string last;
  for (const AlgorithmInfo& algorithm : CongestionControlAlgorithms()) {
    EXPECT_LT(last, algorithm.name);
    EXPECT_FALSE(algorithm.summary.empty());
    EXPECT_EQ(FindCongestionControl(algorithm.name), &algorithm);
    last = algorithm.name;
  }
  EXPECT_NE(FindCongestionControl("tita"), nullptr);
}

TEST(Registry, DefaultsAreWithinTheirOwnBounds) {
  for (const AlgorithmInfo& algorithm : CongestionControlAlgorithms()) {
    std::set<std::string> names;
    ParameterMap explicit_defaults;
    for (const ParameterSpec& spec : algorithm.parameters) {
      EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
      EXPECT_FALSE(spec.meaning.empty()) << spec.name;
      explicit_defaults[spec.name] = spec.default_value;
    }
    EXPECT_TRUE(ResolveParameters(algorithm, explicit_defaults).ok()) << algorithm.name;
    EXPECT_TRUE(CreateCongestionControl(algorithm.name, {}, 1).ok()) << algorithm.name;
  }
}

TEST(Registry, ExtremesOfEveryParameterCreate) {
  for (const AlgorithmInfo& algorithm : CongestionControlAlgorithms()) {
    for (const ParameterSpec& spec : algorithm.parameters) {
      if (!std::holds_alternative<double>(spec.default_value)) continue;
      EXPECT_TRUE(CreateCongestionControl(algorithm.name, {{spec.name, spec.min}}, 1).ok());
      EXPECT_TRUE(CreateCongestionControl(algorithm.name, {{spec.name, spec.max}}, 1).ok());
      EXPECT_FALSE(CreateCongestionControl(algorithm.name, {{spec.name, std::nan("")}}, 1).ok());
    }
  }
}

TEST(Registry, UnknownNameListsTheKnown) {
  const auto made = CreateCongestionControl("titanic", {}, 1);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(Text(made.status()), HasSubstr("'titanic'"));
  EXPECT_THAT(Text(made.status()), HasSubstr("dcqcn, eqds, fixed_window"));
}

TEST(Registry, BadParametersAreNamed) {
  EXPECT_THAT(Text(CreateCongestionControl("tita", {{"rhoo", 1.0}}, 1).status()), HasSubstr("'rhoo'"));
  EXPECT_THAT(Text(CreateCongestionControl("tita", {{"rho", 7.0}}, 1).status()), HasSubstr("'rho'"));
  EXPECT_THAT(Text(CreateCongestionControl("tita", {{"rho", true}}, 1).status()), HasSubstr("must be a number"));
  EXPECT_THAT(Text(CreateCongestionControl("dcqcn", {{"variant", std::string("new")}}, 1).status()),
              HasSubstr("paper, vendor"));
  EXPECT_THAT(Text(CreateCongestionControl("none", {{"x", 1.0}}, 1).status()), HasSubstr("it has none"));
}

TEST(Registry, ResolveFillsIn) {
  const AlgorithmInfo* algorithm = FindCongestionControl("fixed_window");
  const auto resolved = ResolveParameters(*algorithm, {});
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(std::get<double>(resolved->at("window_bdp")), 1.0);
}

}  // namespace
}  // namespace paceline
