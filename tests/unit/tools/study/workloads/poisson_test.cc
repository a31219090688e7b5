#include "tools/study/workloads/poisson.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/tools/study/workloads/workload_support.h"

namespace paceline::tools {
namespace {

TEST(PoissonTest, OffersTheLoadWithExponentialGaps) {
  const auto sizes = FlowSizes::Parse("1000 0\n9000 1\n", "sizes");
  Random random(7);
  const std::vector<Flow> flows =
      PoissonFlows({.load = 0.25, .most_flows = 40000}, *sizes, {.count = 16, .gbps = 100}, 5'000'000, random);
  ASSERT_EQ(flows.size(), 40000u);
  double bytes = 0, squares = 0, last = 5'000'000;
  std::vector<int> from(16), to(16);
  for (const Flow& flow : flows) {
    EXPECT_NE(flow.source, flow.destination);
    ++from[flow.source];
    ++to[flow.destination];
    bytes += static_cast<double>(flow.bytes);
    const double gap = static_cast<double>(flow.start) - last;
    EXPECT_GE(gap, -1);
    squares += gap * gap;
    last = static_cast<double>(flow.start);
  }
  const double span = last - 5'000'000, mean_gap = span / 40000;
  EXPECT_NEAR(bytes * 8000 / span, 0.25 * 1600, 0.02 * 400);                         // Gb/s of all hosts
  EXPECT_NEAR(squares / 40000, 2 * mean_gap * mean_gap, 0.1 * mean_gap * mean_gap);  // of an exponential
  for (int host = 0; host < 16; ++host) {
    EXPECT_NEAR(from[host], 2500, 250);
    EXPECT_NEAR(to[host], 2500, 250);
  }
}

TEST(PoissonTest, BackgroundComesAfterAllOtherFlowsAndChangesNoneOfThem) {
  const std::string main = "kind = 'alltoall'\nranks = 8\nwindow = 2\nstart_us = 3\n";
  const Workload alone = Build(main, 16);
  const Workload both =
      Build(main + "background_load = 0.5\nbackground_sizes = 'data_mining'\nbackground_us = 2000", 16);
  ASSERT_GT(both.flows.size(), alone.flows.size());
  for (size_t i = 0; i < both.flows.size(); ++i) {
    EXPECT_EQ(both.flows[i].background, i >= alone.flows.size());
    if (i >= alone.flows.size()) {
      EXPECT_EQ(both.flows[i].trigger, kNoTrigger);
      EXPECT_GE(both.flows[i].start, 3'000'000);
      EXPECT_LT(both.flows[i].start, 2003'000'000);
    } else {
      EXPECT_EQ(both.flows[i].destination, alone.flows[i].destination);
      EXPECT_EQ(both.flows[i].start, alone.flows[i].start);
    }
  }
  EXPECT_EQ(WithoutBackground(both).flows.size(), alone.flows.size());
  // 16 hosts at 50 % of 100 Gb/s for 2 ms are 200 MB, in flows of 7.47 MB in the mean.
  EXPECT_NEAR(both.flows.size() - alone.flows.size(), 200e6 / 7.47e6, 15);
}

TEST(PoissonTest, KindAndMistakes) {
  EXPECT_EQ(Build("kind = 'poisson'\nload = 0.3\nflows = 50", 8).flows.size(), 50u);
  const auto message = [](const std::string& toml) { return std::string(TryBuild(toml, 8).status().message()); };
  EXPECT_THAT(message("kind = 'poisson'\nload = 0"), ::testing::HasSubstr("workload.load"));
  EXPECT_THAT(message("kind = 'poisson'\nsizes = 'mail'"), ::testing::HasSubstr("workload.sizes = \"mail\""));
  EXPECT_THAT(message("background_load = 0.1\nbackground_sizes = 'mail'"),
              ::testing::HasSubstr("workload.background_sizes"));
}

}  // namespace
}  // namespace paceline::tools
