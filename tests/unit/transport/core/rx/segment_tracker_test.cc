#include "transport/core/rx/segment_tracker.h"

#include <gtest/gtest.h>

#include <set>

#include "transport/base/random.h"

namespace paceline {
namespace {

// Against a plain set: of messages in one word and of longer ones, one by one and several at once.
TEST(SegmentTrackerTest, KnowsWhatHasArrived) {
  for (const uint64_t segments : {1, 2, 63, 64, 65, 500}) {
    Random random(segments);
    SegmentTracker tracker;
    tracker.Reset(segments);
    std::set<uint64_t> model;
    while (model.size() < segments) {
      ASSERT_FALSE(tracker.complete());
      const uint64_t segment = random.Below(segments), count = 1 + random.Below(20);
      const bool some_came = model.lower_bound(segment) != model.lower_bound(segment + count);
      if (random.Chance(0.5)) {
        ASSERT_EQ(tracker.SetNew(segment, count), segment + count <= segments && !some_came);
        for (uint64_t i = 0; segment + count <= segments && !some_came && i < count; ++i) model.insert(segment + i);
      } else {
        const bool is_new = model.insert(segment).second;
        ASSERT_EQ(tracker.Set(segment), is_new ? SegmentTracker::Result::kNew : SegmentTracker::Result::kDuplicate);
      }
      for (uint64_t i = 0; i < segments; ++i) ASSERT_EQ(tracker.Test(i), model.contains(i));
    }
    EXPECT_TRUE(tracker.complete());
    EXPECT_FALSE(tracker.SetNew(0, 1));
    EXPECT_EQ(tracker.Set(segments), SegmentTracker::Result::kOutOfWindow);
  }
}

TEST(SegmentTrackerTest, TakesNoneOfWhatIsTooFarAhead) {
  SegmentTracker tracker;
  tracker.Reset(uint64_t{1} << 40);
  EXPECT_FALSE(tracker.SetNew(limits::kMaxSegmentsAhead - 70, 20));
  EXPECT_FALSE(tracker.Test(limits::kMaxSegmentsAhead - 70));
  EXPECT_TRUE(tracker.SetNew(limits::kMaxSegmentsAhead - 170, 20));
  EXPECT_TRUE(tracker.SetNew(0, 200)) << "the first move the window on";
  EXPECT_TRUE(tracker.SetNew(limits::kMaxSegmentsAhead - 70, 20));
}

}  // namespace
}  // namespace paceline
