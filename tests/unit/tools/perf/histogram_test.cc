#include "tools/perf/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "transport/base/random.h"

namespace paceline::tools {
namespace {

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (int i = 1; i <= 50; ++i) histogram.Add(i);
  EXPECT_EQ(histogram.count(), 50u);
  EXPECT_DOUBLE_EQ(histogram.Quantile(0.5), 25);
  EXPECT_DOUBLE_EQ(histogram.Quantile(1), 50);
  EXPECT_DOUBLE_EQ(histogram.Quantile(0), 1);
  EXPECT_DOUBLE_EQ(histogram.mean(), 25.5);
  EXPECT_DOUBLE_EQ(histogram.min(), 1);
  EXPECT_DOUBLE_EQ(histogram.max(), 50);
}

TEST(Histogram, QuantilesAreWithinTheirErrorOverTheWholeRange) {
  Random random(7);
  for (const uint64_t scale : {100ull, 100'000ull, 100'000'000ull, 1ull << 40}) {
    Histogram histogram;
    std::vector<int64_t> values;
    for (int i = 0; i < 10001; ++i) {
      values.push_back(static_cast<int64_t>(random.Below(scale)));
      histogram.Add(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999}) {
      const auto exact = static_cast<double>(values[static_cast<size_t>(fraction * 10000)]);
      EXPECT_NEAR(histogram.Quantile(fraction), exact, exact / 64 + static_cast<double>(scale) * 0.001 + 1);
    }
    EXPECT_DOUBLE_EQ(histogram.max(), static_cast<double>(values.back()));
  }
}

// A bucket's end, for instance, would be too much by half of its width on average.
TEST(Histogram, QuantilesOfOneBucketAreSpreadOverIt) {
  Histogram histogram;
  for (int i = 8192; i < 8320; ++i) histogram.Add(i);
  EXPECT_NEAR(histogram.Quantile(0.5), 8255, 1);
  EXPECT_NEAR(histogram.Quantile(0.25), 8223, 1);
  EXPECT_NEAR(histogram.Quantile(1), 8319, 1);
}

TEST(Histogram, EmptyAndNegativeAreHarmless) {
  Histogram histogram;
  EXPECT_DOUBLE_EQ(histogram.Quantile(0.5), 0);
  EXPECT_DOUBLE_EQ(histogram.min(), 0);
  histogram.Add(-5);
  EXPECT_DOUBLE_EQ(histogram.max(), 0);
}

TEST(Histogram, MergesAndTravels) {
  Histogram a, b;
  for (int i = 0; i < 1000; ++i) a.Add(i);
  for (int i = 1000; i < 2000; ++i) b.Add(i);
  a.Merge(Histogram::FromJson(b.ToJson()));
  EXPECT_EQ(a.count(), 2000u);
  EXPECT_NEAR(a.Quantile(0.5), 1000, 20);
  EXPECT_DOUBLE_EQ(a.max(), 1999);
  EXPECT_DOUBLE_EQ(a.mean(), 999.5);
  EXPECT_EQ(Histogram::FromJson(Histogram().ToJson()).count(), 0u);
}

TEST(Histogram, SummaryIsScaled) {
  Histogram histogram;
  histogram.Add(2000);
  const auto summary = histogram.Summary(0.0005);
  EXPECT_DOUBLE_EQ(summary["p50"].get<double>(), 1);
  EXPECT_DOUBLE_EQ(summary["max"].get<double>(), 1);
  EXPECT_EQ(summary["samples"].get<int>(), 1);
}

}  // namespace
}  // namespace paceline::tools
