#include "gpudirect/registration_cache.h"

#include <gtest/gtest.h>

#include <set>

namespace paceline::gpudirect {
namespace {

class RegistrationCacheTest : public ::testing::Test {
 protected:
  RegistrationCache MakeCache() {
    return RegistrationCache(
        [this](uint64_t registration) { EXPECT_EQ(live_.erase(registration), 1u) << "dropped twice"; });
  }
  uint64_t Register() {
    live_.insert(++made_);
    return made_;
  }

  std::set<uint64_t> live_;
  uint64_t made_ = 0;
};

TEST_F(RegistrationCacheTest, WhatHoldsTheMemoryIsShared) {
  RegistrationCache cache = MakeCache();
  EXPECT_EQ(cache.Find(1000, 500, 7), nullptr);
  auto* whole = cache.Add(1000, 500, 7, Register());
  EXPECT_EQ(cache.Find(1000, 500, 7), whole);
  EXPECT_EQ(cache.Find(1100, 400, 7), whole);
  EXPECT_EQ(cache.Find(1100, 401, 7), nullptr) << "one byte too far";
  EXPECT_EQ(cache.Find(999, 10, 7), nullptr);
  EXPECT_EQ(cache.Find(1500, 1, 7), nullptr);
  auto* longer = cache.Add(1000, 600, 7, Register());
  EXPECT_EQ(cache.Find(1100, 401, 7), longer);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(live_.contains(1));
    cache.Release(whole);
  }
  EXPECT_FALSE(live_.contains(1));
  EXPECT_EQ(cache.Find(1000, 500, 7), longer);
}

TEST_F(RegistrationCacheTest, MemoryAllocatedAnewIsRegisteredAnew) {
  RegistrationCache cache = MakeCache();
  auto* old = cache.Add(1000, 500, 7, Register());
  EXPECT_EQ(cache.Find(1000, 500, 8), nullptr);
  EXPECT_TRUE(live_.contains(1)) << "its user goes on";
  auto* fresh = cache.Add(1000, 500, 8, Register());
  EXPECT_EQ(cache.Find(1200, 100, 8), fresh);
  EXPECT_EQ(cache.Find(1000, 500, 7), nullptr);
  cache.Release(old);
  EXPECT_FALSE(live_.contains(1));
  EXPECT_TRUE(live_.contains(2));
}

TEST_F(RegistrationCacheTest, WhatIsLeftGoesWithTheCache) {
  {
    RegistrationCache cache = MakeCache();
    cache.Add(1000, 500, 7, Register());
    cache.Add(1000, 500, 8, Register());
    EXPECT_EQ(cache.size(), 2u);
  }
  EXPECT_TRUE(live_.empty());
}

}  // namespace
}  // namespace paceline::gpudirect
