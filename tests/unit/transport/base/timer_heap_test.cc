#include "transport/base/timer_heap.h"

#include <gtest/gtest.h>

#include <map>

#include "transport/base/random.h"

namespace paceline {
namespace {

Time At(int64_t nanos) { return Time::FromNanos(nanos); }

TEST(TimerHeapTest, ComesUpInOrder) {
  TimerHeap heap;
  EXPECT_TRUE(heap.next().is_never());
  heap.Schedule(3, At(30));
  heap.Schedule(1, At(10));
  heap.Schedule(2, At(10));
  heap.Schedule(4, Time::Never());
  EXPECT_EQ(heap.next(), At(10));
  uint32_t owner = 0;
  EXPECT_FALSE(heap.PopDue(At(9), &owner));
  ASSERT_TRUE(heap.PopDue(At(10), &owner));
  EXPECT_EQ(owner, 1u);
  ASSERT_TRUE(heap.PopDue(At(10), &owner));
  EXPECT_EQ(owner, 2u);
  EXPECT_FALSE(heap.PopDue(At(10), &owner));
  EXPECT_EQ(heap.next(), At(30));
}

TEST(TimerHeapTest, OneEntryPerOwnerHoweverOftenItMoves) {
  TimerHeap heap;
  uint32_t owner = 0;
  for (int64_t round = 0; round < 10'000; ++round) {
    heap.Schedule(0, At(1'000'000'000 + round));  // a far deadline
    heap.Schedule(0, At(round));                  // and a near one
    ASSERT_TRUE(heap.PopDue(At(round), &owner));
    heap.Schedule(0, At(1'000'000'000 + round));
    ASSERT_LE(heap.size(), 1u);
  }
}

// Against a map from owner to its earliest deadline.
TEST(TimerHeapTest, BehavesAsAMapOfEarliestDeadlines) {
  Random random(5);
  TimerHeap heap;
  std::map<uint32_t, Time> model;
  int64_t now = 0;
  for (int step = 0; step < 50'000; ++step) {
    if (random.Chance(0.6)) {
      const auto owner = static_cast<uint32_t>(random.Below(50));
      const Time at = At(now + static_cast<int64_t>(random.Below(1000)));
      heap.Schedule(owner, at);
      const auto [entry, added] = model.emplace(owner, at);
      if (!added) entry->second = std::min(entry->second, at);
    } else {
      now += static_cast<int64_t>(random.Below(50));
      uint32_t owner = 0;
      Time last = At(0);
      while (heap.PopDue(At(now), &owner)) {
        ASSERT_TRUE(model.contains(owner));
        ASSERT_LE(last, model[owner]);
        last = model[owner];
        model.erase(owner);
      }
      for (const auto& [left, at] : model) ASSERT_GT(at, At(now)) << left;
    }
    ASSERT_EQ(heap.size(), model.size());
  }
}

}  // namespace
}  // namespace paceline
