#include "tools/study/report/downsample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace paceline::tools {
namespace {

TimeSeries Ramp(int points) {
  TimeSeries series;
  for (int i = 0; i < points; ++i) {
    series.times_us.push_back(i);
    series.values.push_back(i % 10);
  }
  return series;
}

TEST(KeepPeaks, KeepsShortSeriesAsTheyAre) {
  const TimeSeries kept = KeepPeaks(Ramp(50), 100);
  EXPECT_EQ(kept.values, Ramp(50).values);
  EXPECT_EQ(kept.times_us, Ramp(50).times_us);
}

TEST(KeepPeaks, KeepsEverySinglePeakAndDip) {
  TimeSeries series = Ramp(10000);
  std::fill(series.values.begin(), series.values.end(), 5);
  series.values[4321] = 99;
  series.values[4322] = -7;
  const TimeSeries kept = KeepPeaks(series, 100);
  EXPECT_LE(kept.values.size(), 100U);
  EXPECT_TRUE(std::is_sorted(kept.times_us.begin(), kept.times_us.end()));
  EXPECT_EQ(kept.times_us.front(), 0);
  EXPECT_EQ(kept.times_us.back(), 9999);
  EXPECT_EQ(
      kept.times_us[static_cast<size_t>(std::find(kept.values.begin(), kept.values.end(), 99) - kept.values.begin())],
      4321);
  EXPECT_THAT(kept.values, testing::Contains(-7));
}

TEST(KeepPeaks, LeavesOutWhatIsNotFinite) {
  TimeSeries series = Ramp(4);
  series.values[1] = std::numeric_limits<double>::quiet_NaN();
  series.times_us[2] = std::numeric_limits<double>::infinity();
  series.times_us.push_back(9);  // without a value
  EXPECT_THAT(KeepPeaks(series, 100).values, testing::ElementsAre(0, 3));
}

TEST(KeepMeans, KeepsTheMean) {
  const TimeSeries kept = KeepMeans(Ramp(10000), 100);
  ASSERT_EQ(kept.values.size(), 100U);
  for (const double value : kept.values) EXPECT_DOUBLE_EQ(value, 4.5);
  EXPECT_TRUE(std::is_sorted(kept.times_us.begin(), kept.times_us.end()));
}

TEST(MakeDistribution, TellsTheShareAtOrBelow) {
  const Distribution found = MakeDistribution({3, 1, 2, 2}, 100);
  EXPECT_THAT(found.values, testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(found.fractions, testing::ElementsAre(0.25, 0.75, 1));
  EXPECT_EQ(found.count, 4U);
}

TEST(MakeDistribution, OfNothingIsEmpty) {
  const Distribution found = MakeDistribution({std::numeric_limits<double>::quiet_NaN()}, 100);
  EXPECT_TRUE(found.values.empty());
  EXPECT_EQ(found.count, 0U);
}

TEST(MakeDistribution, KeepsTheTailOfManyValues) {
  std::vector<double> values;
  for (int i = 1; i <= 100000; ++i) values.push_back(i);
  const Distribution found = MakeDistribution(values, 400);
  EXPECT_LE(found.values.size(), 400U);
  EXPECT_EQ(found.values.front(), 1);
  EXPECT_EQ(found.values.back(), 100000);
  EXPECT_EQ(found.fractions.back(), 1);
  for (size_t i = 0; i < found.values.size(); ++i) EXPECT_DOUBLE_EQ(found.fractions[i], found.values[i] / 100000);
  const auto above = [&](double fraction) {
    return std::count_if(found.fractions.begin(), found.fractions.end(), [&](double f) { return f >= fraction; });
  };
  EXPECT_GE(above(0.999), 40);
}

TEST(Quantile, IsTheNearestRank) {
  EXPECT_EQ(Quantile({}, 0.5), 0);
  EXPECT_EQ(Quantile({1, 2, 3, 4}, 0.5), 2);
  EXPECT_EQ(Quantile({1, 2, 3, 4}, 0.99), 4);
  EXPECT_EQ(Quantile({1, 2, 3, 4}, 0), 1);
}

}  // namespace
}  // namespace paceline::tools
