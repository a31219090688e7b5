#include "transport/base/pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace paceline {
namespace {

struct Thing {
  explicit Thing(int* count_of_live, int v = 0) : live(count_of_live), value(v) { ++*live; }
  ~Thing() { --*live; }
  int* live;
  int value;
};

TEST(PoolTest, ConstructsAndDestroys) {
  int live = 0;
  Pool<Thing, 4> pool;
  Thing* thing = pool.New(&live, 7);
  EXPECT_EQ(thing->value, 7);
  EXPECT_EQ(live, 1);
  EXPECT_EQ(pool.live(), 1u);
  pool.Delete(thing);
  EXPECT_EQ(live, 0);
  EXPECT_EQ(pool.live(), 0u);
}

TEST(PoolTest, UsesMemoryAgain) {
  int live = 0;
  Pool<Thing, 4> pool;
  std::vector<Thing*> things;
  for (int i = 0; i < 10; ++i) things.push_back(pool.New(&live, i));
  EXPECT_EQ(std::set<Thing*>(things.begin(), things.end()).size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(things[static_cast<size_t>(i)]->value, i);
  const size_t bytes = pool.memory_bytes();
  for (int round = 0; round < 100; ++round) {
    for (Thing* thing : things) pool.Delete(thing);
    for (Thing*& thing : things) thing = pool.New(&live);
  }
  EXPECT_EQ(pool.memory_bytes(), bytes);
  for (Thing* thing : things) pool.Delete(thing);
}

}  // namespace
}  // namespace paceline
