#include "transport/core/message_window.h"

#include <gtest/gtest.h>

#include "transport/base/limits.h"

namespace paceline {
namespace {

bool IsZero(const int& value) { return value == 0; }

// Numbers travel as 32 bits: one that stays parked would be taken for a newer one in the end.
TEST(MessageWindowTest, NumbersAreUsedUpWhileAnOldOneIsParked) {
  constexpr uint64_t kReach = 100;
  MessageWindow<int, &IsZero, kReach> window(1000);
  const auto take = [&window] {
    const uint64_t number = window.end();
    window.PushBack() = 1;
    return number;
  };
  const auto end = [&window](uint64_t number) {
    window[number] = 0;
    window.Ended(number);
  };
  for (int i = 0; i < 500; ++i) end(take());
  EXPECT_FALSE(window.used_up());

  const uint64_t first = take(), second = take();
  ASSERT_TRUE(window.ParkOldest());
  for (int i = 0; i < 10; ++i) end(take());
  ASSERT_EQ(window.begin(), second);
  ASSERT_TRUE(window.ParkOldest());
  EXPECT_TRUE(window.Contains(first));
  EXPECT_TRUE(window.Contains(second));
  for (uint64_t i = 0; i < 2 * kReach && !window.used_up(); ++i) end(take());
  EXPECT_EQ(window.end(), first + kReach);
  end(first);
  EXPECT_FALSE(window.used_up());
  end(take());
  EXPECT_TRUE(window.used_up());
  end(second);
  for (int i = 0; i < 500; ++i) end(take());
  EXPECT_FALSE(window.used_up());
  EXPECT_TRUE(window.empty());
}

// Beyond that the oldest stays where it is, and holds up the others.
TEST(MessageWindowTest, SoManyAreParkedAndNoMore) {
  MessageWindow<int, &IsZero> window;
  for (uint64_t number = 0; number < limits::kMaxParkedMessages; ++number) {
    window.PushBack() = 1;
    ASSERT_TRUE(window.ParkOldest());
  }
  const uint64_t last = window.end();
  window.PushBack() = 1;
  EXPECT_FALSE(window.ParkOldest());
  EXPECT_EQ(window.begin(), last);
  window[7] = 0;
  window.Ended(7);
  EXPECT_TRUE(window.ParkOldest());
  EXPECT_TRUE(window.Contains(last));
}

}  // namespace
}  // namespace paceline
