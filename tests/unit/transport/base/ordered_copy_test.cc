#include "transport/base/ordered_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <thread>
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
struct RecordedStores {
  static constexpr size_t kWordBytes = OrderedStores::kWordBytes;
  static inline uint8_t* base = nullptr;
  static inline std::vector<std::string> made;

  static void Record(const char* what, const uint8_t* to) { made.push_back(what + std::to_string(to - base)); }
  static void Word(uint8_t* to, const uint8_t* from) {
    Record("word ", to);
    OrderedStores::Word(to, from);
  }
  static void LastWord(uint8_t* to, const uint8_t* from) {
    Record("last ", to);
    OrderedStores::LastWord(to, from);
  }
  static void LineBeforeLastWord(uint8_t* to, const uint8_t* from) {
    Record("line ", to);
    OrderedStores::LineBeforeLastWord(to, from);
  }
};

TEST(OrderedCopyTest, TheLastWordOfEachLineIsStoredAfterTheOthers) {
  alignas(kOrderedLineBytes) uint8_t to[4 * kOrderedLineBytes] = {};
  std::vector<uint8_t> from(sizeof(to));
  std::iota(from.begin(), from.end(), uint8_t{1});
  constexpr size_t kShift = 100;  // begins in the middle of a word
  constexpr size_t kBytes = 2 * kOrderedLineBytes + 46;
  RecordedStores::base = to;
  RecordedStores::made.clear();
  OrderedCopy<RecordedStores>(to + kShift, from.data(), kBytes);
  EXPECT_EQ(RecordedStores::made, (std::vector<std::string>{"word 104", "word 112", "last 120", "line 128", "last 248",
                                                            "line 256", "last 376", "word 384", "word 392"}));
  EXPECT_TRUE(std::equal(from.begin(), from.begin() + kBytes, to + kShift));
}

TEST(OrderedCopyTest, ALineBeforeItsLastWordLeavesThatAsItIs) {
  alignas(kOrderedLineBytes) uint8_t to[kOrderedLineBytes] = {};
  const std::vector<uint8_t> from(kOrderedLineBytes + 1, 7);
  OrderedStores::LineBeforeLastWord(to, from.data() + 1);
  EXPECT_EQ(std::count(to, to + kOrderedLineBytes, 7), 120);
  EXPECT_EQ(std::count(to + 120, to + kOrderedLineBytes, 0), 8);
}

// Somebody who polls flags sees a whole line with each: what the copy is for, by another thread.
TEST(OrderedCopyTest, AReaderThatSeesTheFlagSeesTheLine) {
  constexpr size_t kLines = 64, kWords = kOrderedLineBytes / sizeof(uint64_t);
  constexpr uint64_t kRounds = 2'000;
  struct alignas(kOrderedLineBytes) Line {
    uint64_t words[kWords];
  };
  std::vector<Line> from(kLines), to(kLines);
  std::atomic<uint64_t> read{0};  // rounds that the reader is done with
  std::thread reader([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      for (Line& line : to) {
        while (std::atomic_ref<uint64_t>(line.words[kWords - 1]).load(std::memory_order_acquire) != round) {
          std::this_thread::yield();
        }
        for (uint64_t& word : line.words) {
          EXPECT_EQ(std::atomic_ref<uint64_t>(word).load(std::memory_order_relaxed), round);
        }
      }
      read = round;
    }
  });
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (Line& line : from) std::fill(line.words, line.words + kWords, round);
    OrderedCopy(reinterpret_cast<uint8_t*>(to.data()), reinterpret_cast<const uint8_t*>(from.data()),
                kLines * sizeof(Line));
    while (read != round) std::this_thread::yield();
  }
  reader.join();
}

}  // namespace
}  // namespace paceline
