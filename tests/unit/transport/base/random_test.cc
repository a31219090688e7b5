#include "transport/base/random.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(RandomTest, SameSeedSameNumbers) {
  Random a(42), b(42), c(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = a.Next();
    EXPECT_EQ(value, b.Next());
    differs |= value != c.Next();
  }
  EXPECT_TRUE(differs);
}

// First numbers of xoshiro256** seeded with splitmix64(0), as the authors' code gives them.
TEST(RandomTest, IsTheGeneratorItSaysItIs) {
  Random random(0);
  EXPECT_EQ(random.Next(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(random.Next(), 0xbf6e1f784956452au);
}

TEST(RandomTest, BelowAndUnitStayInRangeAndAreSpread) {
  Random random(7);
  int buckets[10] = {};
  for (int i = 0; i < 100'000; ++i) {
    ++buckets[random.Below(10)];
    const double unit = random.Unit();
    ASSERT_GE(unit, 0.0);
    ASSERT_LT(unit, 1.0);
  }
  for (int count : buckets) EXPECT_NEAR(count, 10'000, 600);
  EXPECT_EQ(random.Below(1), 0u);
  EXPECT_FALSE(random.Chance(0));
  EXPECT_TRUE(random.Chance(1));
}

}  // namespace
}  // namespace paceline
