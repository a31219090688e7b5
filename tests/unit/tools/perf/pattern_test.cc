#include "tools/perf/pattern.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::tools {
namespace {

TEST(Pattern, EveryChangedByteIsFound) {
  for (const size_t size : {1u, 7u, 8u, 9u, 64u, 1001u}) {
    std::vector<uint8_t> data(size + 1, 0xee);
    FillPattern(data.data(), size, 42);
    EXPECT_EQ(data[size], 0xee);
    EXPECT_TRUE(CheckPattern(data.data(), size, 42));
    for (size_t at = 0; at < size; ++at) {
      data[at] ^= 0x10;
      EXPECT_FALSE(CheckPattern(data.data(), size, 42));
      data[at] ^= 0x10;
    }
  }
}

TEST(Pattern, OtherMessagesLookDifferent) {
  std::vector<uint8_t> data(4096);
  FillPattern(data.data(), data.size(), PatternStream(1, 2, 3));
  EXPECT_FALSE(CheckPattern(data.data(), data.size(), PatternStream(2, 1, 3)));
  EXPECT_FALSE(CheckPattern(data.data(), data.size(), PatternStream(1, 2, 4)));
  // Nor does a shifted copy pass.
  EXPECT_FALSE(CheckPattern(data.data() + 8, data.size() - 8, PatternStream(1, 2, 3)));
}

}  // namespace
}  // namespace paceline::tools
