#include "transport/core/path/payload_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace paceline {
namespace {

constexpr uint32_t kSegment = 9076, kLeast = 416;

Time At(int64_t millis) { return Time() + Duration::Millis(millis); }

std::vector<uint32_t> Asked(PayloadLimit& limit) {
  std::vector<uint32_t> sizes;
  for (; limit.next() > 0; limit.Next()) sizes.push_back(limit.next());
  return sizes;
}

constexpr Duration kPatience = Duration::Micros(400);

// Smaller sizes are probed; those of at most `passes` bytes arrive.
void Narrow(PayloadLimit& limit, uint32_t passes, Time now) {
  limit.TrySmaller(true, kPatience, now);
  for (const uint32_t bytes : Asked(limit)) {
    if (bytes <= std::max(passes, kLeast)) limit.OnArrived(bytes, true, now);
  }
  limit.Lower(now + kPatience);
}

TEST(PayloadLimitTest, IsASegmentUntilSomethingElseIsProven) {
  PayloadLimit limit(kSegment, kLeast);
  EXPECT_EQ(limit.bytes(), kSegment);
  EXPECT_EQ(limit.next(), 0u);
  limit.OnArrived(1000, false, At(1));
  limit.OnArrived(1000, true, At(1));
  EXPECT_FALSE(limit.Lower(At(100)));
  EXPECT_EQ(limit.bytes(), kSegment);
}

TEST(PayloadLimitTest, AsksForEighthsAndTheLeast) {
  PayloadLimit limit(kSegment, kLeast);
  limit.TrySmaller(true, kPatience, At(1));
  const std::vector<uint32_t> sizes = Asked(limit);
  ASSERT_EQ(sizes.size(), 9u);
  EXPECT_EQ(sizes.front(), kSegment);
  EXPECT_LE(sizes.back(), kLeast);
  for (size_t i = 1; i < sizes.size(); ++i) {
    EXPECT_EQ(sizes[i] % FragmentUnit(kSegment), 0u);
    EXPECT_LT(sizes[i], sizes[i - 1]);
    EXPECT_GT(sizes[i] + kSegment / 8 + FragmentUnit(kSegment), sizes[i - 1]);
  }
}

TEST(PayloadLimitTest, TheLargestThatArrivesCounts) {
  for (const uint32_t passes : {8000u, 5000u, 1376u, 500u}) {
    PayloadLimit limit(kSegment, kLeast);
    Narrow(limit, passes, At(1));
    EXPECT_LE(limit.bytes(), passes);
    EXPECT_GT(limit.bytes() + kSegment / 8 + FragmentUnit(kSegment), passes);
    Narrow(limit, limit.bytes() / 2, At(2));  // narrower still
    EXPECT_LE(limit.bytes(), std::max(passes / 2, kLeast));
  }
}

// Long packets may wait in a queue that short ones pass by. Those that arrive were perhaps sent before the question.
TEST(PayloadLimitTest, LongPacketsAreGivenTime) {
  PayloadLimit limit(kSegment, kLeast);
  limit.TrySmaller(true, kPatience, At(1));
  limit.OnArrived(960, true, At(1));
  EXPECT_FALSE(limit.Lower(At(1)));
  limit.OnArrived(kSegment, false, At(0));
  EXPECT_FALSE(limit.Lower(At(2)));
  limit.TrySmaller(true, kPatience, At(3));
  limit.OnArrived(960, true, At(3));
  EXPECT_TRUE(limit.Lower(At(4)));
  EXPECT_EQ(limit.bytes(), 960u);
  limit.OnArrived(kSegment, false, At(0));
  EXPECT_EQ(limit.bytes(), kSegment) << "it has arrived after all";
}

TEST(PayloadLimitTest, DataWaitsForTheFirstAnswer) {
  PayloadLimit limit(kSegment, kLeast);
  EXPECT_FALSE(limit.in_doubt(At(0)));
  limit.TrySmaller(true, kPatience, At(1));
  EXPECT_TRUE(limit.in_doubt(At(1)));
  EXPECT_FALSE(limit.in_doubt(At(1) + kPatience)) << "nothing arrives, of whatever size";
  limit.OnArrived(960, true, At(1));
  EXPECT_TRUE(limit.in_doubt(At(1) + kPatience)) << "only smaller ones arrive";
  limit.OnArrived(kSegment, false, At(1));
  EXPECT_FALSE(limit.in_doubt(At(1)));
  limit.TrySmaller(true, kPatience, At(3));
  limit.OnArrived(960, true, At(3));
  EXPECT_TRUE(limit.Lower(At(3) + kPatience));
  EXPECT_FALSE(limit.in_doubt(At(3) + kPatience)) << "smaller packets go";
}

TEST(PayloadLimitTest, ManyLossesWithoutAnArrivalAreSuspicious) {
  PayloadLimit limit(kSegment, kLeast);
  const auto lose = [&limit](int packets, uint32_t bytes, Time now) {
    for (int i = 0; i < packets; ++i) limit.OnLost(bytes, kPatience, now);
    return Asked(limit);
  };
  EXPECT_TRUE(lose(31, 5000, At(1)).empty());
  limit.OnArrived(4999, false, At(2));
  limit.OnArrived(5000, false, At(0));  // sent before those were lost
  const std::vector<uint32_t> longer = lose(1, kSegment, At(4));
  ASSERT_FALSE(longer.empty());
  EXPECT_GT(longer.back(), kSegment / 2) << "short packets may overtake long ones";
  EXPECT_TRUE(lose(31, 5000, At(5)).empty());
  limit.OnArrived(5000, false, At(5));
  EXPECT_TRUE(lose(31, kSegment, At(7)).empty());
  EXPECT_LE(lose(1, 1000, At(8)).back(), kLeast) << "short ones are lost, too";
}

TEST(PayloadLimitTest, NeverLessThanWhatPassesEverywhere) {
  PayloadLimit limit(kSegment, kLeast);
  limit.TrySmaller(true, kPatience, At(1));
  for (const uint32_t bytes : {0u, 1u, 100u, 300u}) limit.OnArrived(bytes, true, At(1));
  EXPECT_FALSE(limit.Lower(At(2)));
  EXPECT_EQ(limit.bytes(), kSegment);
}

// The last packet of a message may have any length.
TEST(PayloadLimitTest, IsAWholeNumberOfUnits) {
  PayloadLimit limit(kSegment, kLeast);
  Narrow(limit, 5000, At(0));
  limit.OnArrived(6001, false, At(1));
  EXPECT_EQ(limit.bytes(), 6001 / FragmentUnit(kSegment) * FragmentUnit(kSegment));
}

TEST(PayloadLimitTest, LargerOnesAreTriedEverMoreSeldom) {
  PayloadLimit limit(kSegment, kLeast);
  Narrow(limit, 5000, At(0));
  const uint32_t narrow = limit.bytes();
  std::vector<int64_t> tried;
  for (int64_t millis = 1; millis < 400'000; ++millis) {
    limit.TryLarger(At(millis));
    const std::vector<uint32_t> sizes = Asked(limit);
    if (sizes.empty()) continue;
    EXPECT_EQ(sizes.front(), kSegment);
    EXPECT_GT(sizes.back(), narrow);
    tried.push_back(millis);
  }
  for (size_t i = 1; i < tried.size(); ++i) {
    EXPECT_EQ(tried[i] - tried[i - 1], std::min(int64_t{10} << i, int64_t{64'000})) << i;
  }
  limit.OnArrived(kSegment, true, At(400'000));
  EXPECT_EQ(limit.bytes(), kSegment);
  limit.TryLarger(At(1'000'000));
  EXPECT_EQ(limit.next(), 0u);
}

}  // namespace
}  // namespace paceline
