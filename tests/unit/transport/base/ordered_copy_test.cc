#include "transport/base/ordered_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace paceline {
namespace {

TEST(OrderedCopyTest, CopiesEveryLengthFromAndToEveryAlignment) {
  std::vector<uint8_t> from(600), to(600);
  std::iota(from.begin(), from.end(), uint8_t{1});
  for (size_t shift = 0; shift < 9; ++shift) {
    for (size_t bytes = 0; bytes < 300; ++bytes) {
      std::fill(to.begin(), to.end(), uint8_t{0});
      OrderedCopy(to.data() + 1 + shift, from.data() + (shift * 3) % 8, bytes);
      ASSERT_TRUE(std::equal(to.begin() + 1 + shift, to.begin() + 1 + shift + bytes, from.begin() + (shift * 3) % 8));
      ASSERT_EQ(to[shift], 0);
      ASSERT_EQ(to[1 + shift + bytes], 0);
    }
  }
}

// In what order a processor makes stores visible cannot be asserted from here; in what order they are made can.
TEST(OrderedCopyTest, WordsGoOneByOneAndTheEndOfEachLineIsMarked) {
  alignas(kOrderedLineBytes) uint8_t to[4 * kOrderedLineBytes] = {};
  std::vector<uint8_t> from(sizeof(to));
  std::iota(from.begin(), from.end(), uint8_t{1});
  constexpr size_t kShift = 12;  // begins in the middle of a word
  std::vector<size_t> offsets, ends;
  OrderedCopyBy(to + kShift, from.data(), 2 * kOrderedLineBytes, [&](uint64_t* address, uint64_t word, bool ends_line) {
    *address = word;
    offsets.push_back(static_cast<size_t>(reinterpret_cast<uint8_t*>(address) - to));
    if (ends_line) ends.push_back(offsets.back());
  });
  ASSERT_EQ(offsets.size(), 31u);
  for (size_t i = 0; i < offsets.size(); ++i) EXPECT_EQ(offsets[i], 16 + 8 * i);
  EXPECT_EQ(ends, (std::vector<size_t>{120, 248}));
  EXPECT_TRUE(std::equal(from.begin(), from.begin() + 2 * kOrderedLineBytes, to + kShift));
}

}  // namespace
}  // namespace paceline
