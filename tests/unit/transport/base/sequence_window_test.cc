#include "transport/base/sequence_window.h"

#include <gtest/gtest.h>

#include <map>

#include "transport/base/random.h"

namespace paceline {
namespace {

TEST(SequenceWindowTest, HoldsValuesByNumber) {
  SequenceWindow<int> window(16, 100);
  EXPECT_TRUE(window.empty());
  window.PushBack() = 7;
  window.Extend(103);
  EXPECT_EQ(window.size(), 4u);
  EXPECT_EQ(window[100], 7);
  EXPECT_EQ(window[102], 0);
  EXPECT_TRUE(window.Contains(103));
  EXPECT_FALSE(window.Contains(104));
  EXPECT_TRUE(window.Reaches(115));
  EXPECT_FALSE(window.Reaches(116));
  EXPECT_FALSE(window.Reaches(99));
}

TEST(SequenceWindowTest, AppendsSeveralAtOnce) {
  SequenceWindow<int> window(64, 5);
  for (uint64_t count : {1, 7, 20, 36}) {
    const uint64_t first = window.Append(count);
    EXPECT_EQ(first + count, window.end());
    for (uint64_t n = first; n < window.end(); ++n) window[n] = static_cast<int>(n);
  }
  EXPECT_EQ(window.size(), 64u);
  for (uint64_t n = window.begin(); n < window.end(); ++n) EXPECT_EQ(window[n], static_cast<int>(n));
}

TEST(SequenceWindowTest, ReleaseGivesMemoryBack) {
  SequenceWindow<int> window(1024);
  for (int i = 0; i < 500; ++i) window.PushBack() = i;
  window.AdvanceTo(500);
  EXPECT_GT(window.memory_bytes(), 0u);
  window.Release();
  EXPECT_EQ(window.memory_bytes(), 0u);
  window.PushBack() = 5;
  EXPECT_EQ(window[500], 5);
}

TEST(SequenceWindowTest, BehavesAsAMap) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    SequenceWindow<uint64_t> window(256, random.Below(500));
    std::map<uint64_t, uint64_t> model;
    for (int step = 0; step < 5000; ++step) {
      switch (random.Below(4)) {
        case 0: {
          const uint64_t n = window.begin() + random.Below(256);
          for (uint64_t i = window.end(); i <= n; ++i) model[i] = 0;
          window.Extend(n);
          break;
        }
        case 1: {
          const uint64_t to = window.begin() + random.Below(window.size() + (random.Chance(0.1) ? 300 : 1));
          window.AdvanceTo(to);
          model.erase(model.begin(), model.lower_bound(to));
          break;
        }
        default:
          if (!window.empty()) {
            const uint64_t n = window.begin() + random.Below(window.size());
            ASSERT_EQ(window[n], model.at(n));
            window[n] = model[n] = random.Next();
          }
      }
      ASSERT_EQ(window.size(), model.size());
    }
  }
}

}  // namespace
}  // namespace paceline
