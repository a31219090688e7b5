#include "tools/study/recovery.h"

#include <gtest/gtest.h>

namespace paceline::tools {
namespace {

// 1 us intervals from time 0, windows of 2 us: 100 bytes each, with what `dip` says.
std::vector<uint64_t> Steady(size_t intervals) { return std::vector<uint64_t>(intervals, 100); }

double RecoveryOf(const std::vector<uint64_t>& delivered, int64_t at_us) {
  const auto found = MeasureRecoveries(delivered, 1000, 0, 2000, {at_us * 1000});
  EXPECT_EQ(found.size(), 1u);
  return found[0].recovery_us.value_or(-1);
}

TEST(RecoveryTest, ADipLastsUntilTheRateIsBack) {
  std::vector<uint64_t> delivered = Steady(200);
  for (size_t i = 50; i < 65; ++i) delivered[i] = 10;
  EXPECT_EQ(RecoveryOf(delivered, 50), 15);
  EXPECT_EQ(RecoveryOf(delivered, 48), 17);  // what was on its way still arrives
}

TEST(RecoveryTest, WithoutADipItIsNothing) {
  EXPECT_EQ(RecoveryOf(Steady(200), 50), 0);
  std::vector<uint64_t> delivered = Steady(200);
  delivered[100] = 0;  // long after: another matter
  EXPECT_EQ(RecoveryOf(delivered, 50), 0);
}

TEST(RecoveryTest, TheSettledRateMayBeLower) {
  std::vector<uint64_t> delivered = Steady(300);
  for (size_t i = 50; i < 60; ++i) delivered[i] = 20;
  for (size_t i = 60; i < 300; ++i) delivered[i] = 70;
  EXPECT_EQ(RecoveryOf(delivered, 50), 10);
}

TEST(RecoveryTest, TooLittleTimeOrNoReturnIsSaid) {
  EXPECT_EQ(RecoveryOf(Steady(60), 45), -1);  // 90 % have come at 54 us
  std::vector<uint64_t> delivered = Steady(200);
  for (size_t i = 50; i < 60; ++i) delivered[i] = 0;
  // The next change comes before the rate is back.
  const auto found = MeasureRecoveries(delivered, 1000, 0, 2000, {50'000, 58'000, 70'000});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(found[0].recovery_us.has_value());
  EXPECT_EQ(found[0].at_us, 50);
  EXPECT_FALSE(found[1].recovery_us.has_value());  // 12 us: six windows
  EXPECT_EQ(found[2].recovery_us.value(), 0);
}

TEST(RecoveryTest, TimesBeforeTheRunCount) {
  std::vector<uint64_t> delivered = Steady(200);
  for (size_t i = 50; i < 65; ++i) delivered[i] = 10;
  const auto found = MeasureRecoveries(delivered, 1000, -10'000, 2000, {40'000});
  EXPECT_EQ(found[0].recovery_us.value(), 15);
}

}  // namespace
}  // namespace paceline::tools
