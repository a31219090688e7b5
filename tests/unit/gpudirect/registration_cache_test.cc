#include "gpudirect/registration_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace paceline::gpudirect {
namespace {

class RegistrationCacheTest : public ::testing::Test {
 protected:
  RegistrationCache MakeCache(size_t max_unused) {
    return RegistrationCache(
        [this](uintptr_t, size_t) -> absl::StatusOr<uint64_t> {
          if (refuse_) return absl::ResourceExhaustedError("no more");
          live_.insert(++made_);
          return made_;
        },
        [this](uint64_t registration) { EXPECT_EQ(live_.erase(registration), 1u) << "dropped twice"; }, max_unused);
  }

  std::set<uint64_t> live_;
  uint64_t made_ = 0;
  bool refuse_ = false;
};

TEST_F(RegistrationCacheTest, WhatIsHeldIsFoundAgain) {
  {
    RegistrationCache cache = MakeCache(8);
    auto* whole = *cache.Acquire(1000, 500, 7);
    EXPECT_EQ(*cache.Acquire(1100, 400, 7), whole);
    EXPECT_EQ(*cache.Acquire(1000, 500, 7), whole);
    EXPECT_NE(*cache.Acquire(1100, 401, 7), whole) << "one byte too far";
    EXPECT_NE(*cache.Acquire(999, 10, 7), whole);
    EXPECT_EQ(cache.hits(), 2u);
    EXPECT_EQ(cache.misses(), 3u);
    for (int i = 0; i < 3; ++i) cache.Release(whole);
    EXPECT_EQ(*cache.Acquire(1200, 1, 7), whole) << "kept when nobody uses it";
  }
  EXPECT_TRUE(live_.empty());
}

TEST_F(RegistrationCacheTest, MemoryAllocatedAnewIsRegisteredAnew) {
  RegistrationCache cache = MakeCache(8);
  auto* old = *cache.Acquire(1000, 500, 7);
  const uint64_t old_registration = old->registration;
  cache.Release(old);
  auto* fresh = *cache.Acquire(1000, 500, 8);
  EXPECT_NE(fresh->registration, old_registration);
  EXPECT_FALSE(live_.contains(old_registration));
  EXPECT_EQ(cache.size(), 1u);
}

TEST_F(RegistrationCacheTest, InvalidatedEntriesGoWithTheirLastUser) {
  RegistrationCache cache = MakeCache(8);
  auto* used = *cache.Acquire(1000, 500, 7);
  auto* unused = *cache.Acquire(3000, 500, 7);
  auto* elsewhere = *cache.Acquire(9000, 500, 7);
  const uint64_t used_registration = used->registration, unused_registration = unused->registration;
  cache.Release(unused);
  cache.Invalidate(1499, 1502);  // the last byte of one and the first of the next
  EXPECT_TRUE(live_.contains(used_registration));
  EXPECT_FALSE(live_.contains(unused_registration));
  EXPECT_NE((*cache.Acquire(1000, 500, 7))->registration, used_registration);
  cache.Release(used);
  EXPECT_FALSE(live_.contains(used_registration));
  EXPECT_EQ(*cache.Acquire(9000, 500, 7), elsewhere);
}

TEST_F(RegistrationCacheTest, UnusedEntriesAreBoundedOldestFirst) {
  RegistrationCache cache = MakeCache(2);
  RegistrationCache::Entry* entries[3];
  for (size_t i = 0; i < 3; ++i) entries[i] = *cache.Acquire(1000 * (i + 1), 10, 0);
  for (auto* entry : entries) cache.Release(entry);
  EXPECT_THAT(live_, ::testing::ElementsAre(2, 3));
}

TEST_F(RegistrationCacheTest, ARefusalIsPassedOnAndForgotten) {
  RegistrationCache cache = MakeCache(2);
  refuse_ = true;
  EXPECT_FALSE(cache.Acquire(1000, 10, 0).ok());
  refuse_ = false;
  EXPECT_TRUE(cache.Acquire(1000, 10, 0).ok());
}

}  // namespace
}  // namespace paceline::gpudirect
