#include "transport/base/bit_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "transport/base/random.h"

namespace paceline {
namespace {

TEST(BitWindowTest, SetTellsWhetherItWasNew) {
  BitWindow window(1024, 1000);
  EXPECT_FALSE(window.Test(1005));
  EXPECT_TRUE(window.Set(1005));
  EXPECT_FALSE(window.Set(1005));
  EXPECT_TRUE(window.Test(1005));
  EXPECT_FALSE(window.Test(1004));
  EXPECT_EQ(window.end(), 1006u);
}

TEST(BitWindowTest, ReachStaysWithinTheBound) {
  BitWindow window(128, 10);
  EXPECT_FALSE(window.Reaches(9));
  EXPECT_TRUE(window.Reaches(10));
  EXPECT_TRUE(window.Reaches(73));
  EXPECT_FALSE(window.Reaches(74));
}

TEST(BitWindowTest, WordsShowOnlyWhatIsInTheWindow) {
  BitWindow window(1024, 0);
  for (uint64_t n = 0; n < 130; ++n) window.Set(n);
  window.AdvanceTo(70);
  EXPECT_EQ(window.Word(0), 0u);
  EXPECT_EQ(window.Word(64), ~uint64_t{0} << 6);
  EXPECT_EQ(window.Word(128), 3u);
  EXPECT_EQ(window.Word(192), 0u);
}

TEST(BitWindowTest, ReleaseForgetsEverythingAndStaysUsable) {
  BitWindow window(1024, 0);
  for (uint64_t n = 0; n < 500; ++n) window.Set(n);
  window.AdvanceTo(500);
  EXPECT_GT(window.memory_bytes(), 0u);
  window.Release();
  EXPECT_EQ(window.memory_bytes(), 0u);
  EXPECT_FALSE(window.Test(500));
  EXPECT_EQ(window.FirstClear(0), 500u);
  EXPECT_TRUE(window.Set(510));
  EXPECT_EQ(window.FirstClear(510), 511u);
}

// Against a plain set, for many random steps.
TEST(BitWindowTest, BehavesAsASetOfNumbers) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const uint64_t first = random.Below(1000);
    BitWindow window(512, first);
    std::set<uint64_t> model;
    uint64_t begin = first;
    for (int step = 0; step < 5000; ++step) {
      const uint64_t n = begin + random.Below(512 - 64);
      switch (random.Below(8)) {
        case 0: {
          const uint64_t to = begin + random.Below(random.Chance(0.1) ? 700 : 40);
          window.AdvanceTo(to);
          begin = to;
          model.erase(model.begin(), model.lower_bound(begin));
          break;
        }
        case 1:
          window.Clear(n);
          model.erase(n);
          break;
        case 2: {
          const uint64_t count = 1 + random.Below(std::min<uint64_t>(200, begin + 512 - 64 - n));
          ASSERT_EQ(window.AnyIn(n, count), model.lower_bound(n) != model.lower_bound(n + count));
          if (!random.Chance(0.1)) break;  // else soon all are set
          window.SetRange(n, count);
          for (uint64_t i = 0; i < count; ++i) model.insert(n + i);
          break;
        }
        case 3: {
          const uint64_t at = n & ~uint64_t{63}, bits = window.Word(at) & random.Next();
          window.ClearInWord(at, bits);
          for (uint64_t bit = 0; bit < 64; ++bit) {
            if (bits >> bit & 1) model.erase(at + bit);
          }
          break;
        }
        default:
          ASSERT_EQ(window.Set(n), model.insert(n).second);
      }
      ASSERT_EQ(window.begin(), begin);
      const uint64_t probe = begin + random.Below(600);
      ASSERT_EQ(window.Test(probe), model.contains(probe));
      uint64_t clear = probe;
      while (model.contains(clear)) ++clear;
      ASSERT_EQ(window.FirstClear(probe), clear);
      const uint64_t base = probe & ~uint64_t{63};
      uint64_t word = 0;
      for (uint64_t bit = 0; bit < 64; ++bit) word |= uint64_t{model.contains(base + bit)} << bit;
      ASSERT_EQ(window.Word(base), word) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace paceline
