#include "transport/core/rx/fragment_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "transport/base/random.h"

namespace paceline {
namespace {

using Result = FragmentTracker::Result;

TEST(FragmentTrackerTest, ASegmentHasAtMost64Units) {
  for (const uint32_t segment : {64u, 1376u, 4096u, 4097u, 9076u, 65'411u}) {
    const uint32_t unit = FragmentUnit(segment);
    EXPECT_EQ(unit % 64, 0u) << segment;
    EXPECT_LE((segment + unit - 1) / unit, 64u) << segment;
  }
}

TEST(FragmentTrackerTest, OnlyWholeUnitsWithinOneSegmentAreFragments) {
  const auto is_fragment = [](uint64_t offset, uint32_t bytes) {
    return FragmentTracker::IsFragment(1376, offset, bytes, 3000);  // units of 64; segments end at 1376, 2752, 3000
  };
  EXPECT_TRUE(is_fragment(0, 64));
  EXPECT_TRUE(is_fragment(832, 544));
  EXPECT_TRUE(is_fragment(1376 + 64, 1312));
  EXPECT_TRUE(is_fragment(2752 + 64, 184));
  EXPECT_FALSE(is_fragment(0, 0));
  EXPECT_FALSE(is_fragment(0, 65));
  EXPECT_FALSE(is_fragment(32, 64));
  EXPECT_FALSE(is_fragment(32, 32));
  EXPECT_FALSE(is_fragment(1344, 64)) << "in two segments";
  EXPECT_FALSE(is_fragment(2752, 64 * 5)) << "behind the end";
  EXPECT_FALSE(is_fragment(3008, 64));
  EXPECT_FALSE(is_fragment(uint64_t{1} << 47, 64));
}

// Fragments of any cut, in any order, with copies, against a plain set of bytes.
TEST(FragmentTrackerTest, ASegmentIsWholeWithItsLastByte) {
  for (const uint32_t segment_bytes : {1376u, 4096u, 9076u}) {
    const uint64_t payload = uint64_t{segment_bytes} * 3 + 100;
    const uint32_t unit = FragmentUnit(segment_bytes);
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      FragmentTracker tracker(segment_bytes);
      for (uint64_t segment = 0; segment < 4; ++segment) {
        const uint64_t begin = segment * segment_bytes, end = std::min(payload, begin + segment_bytes);
        const uint64_t units = (end - begin + unit - 1) / unit;
        std::set<uint64_t> arrived;
        for (bool whole = false; !whole;) {
          const uint64_t first = random.Below(units), count = 1 + random.Below(units - first);
          const uint64_t offset = begin + first * unit, last = std::min(end, offset + count * unit);
          bool is_new = false;
          for (uint64_t i = first; i < first + count; ++i) is_new |= arrived.insert(i).second;
          whole = arrived.size() == units;
          ASSERT_EQ(tracker.Add(offset, static_cast<uint32_t>(last - offset), payload, 1), whole ? Result::kWhole
                                                                                           : is_new
                                                                                               ? Result::kNew
                                                                                               : Result::kDuplicate);
          ASSERT_EQ(tracker.size(), whole ? 0u : 1u);
        }
      }
    }
  }
}

TEST(FragmentTrackerTest, AFullOneStillTakesTheRestOfWhatItHas) {
  FragmentTracker tracker(128);
  constexpr uint64_t kPayload = 128 * 10;
  EXPECT_EQ(tracker.Add(0, 64, kPayload, 2), Result::kNew);
  EXPECT_EQ(tracker.Add(128, 64, kPayload, 2), Result::kNew);
  EXPECT_EQ(tracker.Add(256, 64, kPayload, 2), Result::kFull);
  EXPECT_EQ(tracker.Add(64, 64, kPayload, 2), Result::kWhole);
  EXPECT_EQ(tracker.Add(256, 64, kPayload, 2), Result::kNew);
  tracker.Forget(1, 5);
  EXPECT_EQ(tracker.size(), 0u);
}

}  // namespace
}  // namespace paceline
