#include "cc/algorithms/water_filling.h"

#include <algorithm>
#include <limits>

#include "gtest/gtest.h"
#include "transport/base/random.h"

namespace paceline {
namespace {

double Filled(const std::vector<double>& bounds, double level) {
  double sum = 0;
  for (const double bound : bounds) sum += std::min(std::max(bound, 0.0), level);
  return sum;
}

// The level by bisection: slow and obvious.
double BruteForce(double capacity, const std::vector<double>& bounds) {
  double low = 0, high = capacity;
  if (Filled(bounds, high) < capacity) return std::numeric_limits<double>::infinity();
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (Filled(bounds, middle) < capacity ? low : high) = middle;
  }
  return high;
}

TEST(WaterLevel, MatchesBruteForce) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> bounds(1 + random.Below(20));
    for (double& bound : bounds) {
      bound = random.Chance(0.1)   ? std::numeric_limits<double>::infinity()
              : random.Chance(0.1) ? 0
                                   : random.Unit() * 30;
    }
    const std::vector<double> original = bounds;
    const double expected = BruteForce(100, original);
    const double level = WaterLevel(100, bounds);
    if (expected == std::numeric_limits<double>::infinity()) {
      // All are satisfied; at the very edge a finite level that satisfies all is as good.
      EXPECT_GE(level * 1.0000001, *std::max_element(original.begin(), original.end()));
    } else {
      EXPECT_NEAR(level, expected, 1e-6);
      EXPECT_NEAR(Filled(original, level), 100, 1e-6);
    }
  }
}

TEST(WaterLevel, Edges) {
  std::vector<double> none;
  EXPECT_EQ(WaterLevel(10, none), std::numeric_limits<double>::infinity());
  std::vector<double> equal{10, 10, 10, 10};
  EXPECT_DOUBLE_EQ(WaterLevel(10, equal), 2.5);
  std::vector<double> one_small{1, 100, 100};
  EXPECT_DOUBLE_EQ(WaterLevel(10, one_small), 4.5);
  std::vector<double> negative{-5, 100};
  EXPECT_DOUBLE_EQ(WaterLevel(10, negative), 10);
}

}  // namespace
}  // namespace paceline
