#include "cc/algorithms/tita_budget.h"

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

TEST(TitaSizes, At100Gbps) {
  const TitaSizes sizes = TitaSizesFor({}, TestPort());
  EXPECT_EQ(sizes.grain, 4096u);
  EXPECT_EQ(sizes.bdp, 172'307u);
  EXPECT_EQ(sizes.budget_most, 258'460u);
  EXPECT_EQ(sizes.bucket, sizes.budget_most);
  EXPECT_EQ(sizes.WireBytes(4096), 4160u);
  EXPECT_EQ(sizes.WireBytes(4097), 4097u + 128);
}

TEST(TitaSizes, TheGrainFollowsRateAndLane) {
  PortInfo port = TestPort();
  port.link_rate = Rate::Gbps(400);
  EXPECT_EQ(TitaSizesFor({}, port).grain, 2 * 4096u);
  port.burst_segments = 16;
  EXPECT_EQ(TitaSizesFor({}, port).grain, 16 * 4096u);
  EXPECT_EQ(TitaSizesFor({.grain_segments = 3}, TestPort()).grain, 3 * 4096u);
}

TEST(TitaSizes, WhereALaneHandsOverBurstsATailGoesAlongAndTheClockMayLagByARoundTrip) {
  PortInfo port = TestPort();
  const TitaSizes one_by_one = TitaSizesFor({.grain_segments = 3}, port);
  EXPECT_EQ(one_by_one.tail, 0u);
  EXPECT_NEAR(static_cast<double>(one_by_one.lag.nanos()), 3 * 332.8, 1);
  port.burst_segments = 16;
  EXPECT_EQ(TitaSizesFor({}, port).tail, 4 * 4096u);
  EXPECT_EQ(TitaSizesFor({}, port).lag, TitaSizesFor({}, port).rtt);
}

TEST(TitaSizes, TheLaneBoundsTheBudget) {
  PortInfo port = TestPort();
  port.receive_buffer_bytes = 100'000;
  port.burst_segments = 46;
  const TitaSizes sizes = TitaSizesFor({}, port);
  EXPECT_EQ(sizes.budget_most, 100'000u);
  EXPECT_LE(sizes.budget_least, sizes.budget_most);
  EXPECT_LE(sizes.bucket, sizes.budget_most);
  EXPECT_LE(sizes.grain, 25'000u);
  port.receive_buffer_bytes = 1;
  EXPECT_EQ(TitaSizesFor({}, port).budget_most, 4096u);  // a segment, or nothing could ever move
}

TEST(TitaSizes, TheBudgetFollowsTheSendersCaps) {
  const TitaSizes sizes = TitaSizesFor({}, TestPort());
  EXPECT_EQ(sizes.Budget(0), sizes.budget_most);
  EXPECT_EQ(sizes.Budget(sizes.line_rate), sizes.budget_most);
  EXPECT_LT(sizes.Budget(2 * sizes.line_rate), sizes.budget_most);
  EXPECT_NEAR(static_cast<double>(sizes.Budget(1000 * sizes.line_rate)), static_cast<double>(sizes.budget_least), 100);
  EXPECT_GE(sizes.budget_least, sizes.bdp + sizes.grain);
}

TEST(TitaSizes, SurvivesAbsurdPorts) {
  PortInfo nothing;
  const TitaSizes least = TitaSizesFor({}, nothing);
  EXPECT_GE(least.grain, 1u);
  EXPECT_GE(least.budget_least, least.grain);
  PortInfo huge = TestPort();
  huge.link_rate = Rate::Gbps(1e12);
  huge.base_rtt = Duration::Infinite();
  const TitaSizes most = TitaSizesFor({.budget = 16}, huge);
  EXPECT_LE(most.budget_most, uint64_t{1} << 62);
}

}  // namespace
}  // namespace paceline
