#include "transport/lane/shm/streaming_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace paceline {
namespace {

TEST(StreamingCopyTest, CopiesEveryLengthFromEveryAlignment) {
  std::vector<uint8_t> from(600);
  alignas(kStreamedLineBytes) std::array<uint8_t, 640> to;
  std::iota(from.begin(), from.end(), uint8_t{1});
  for (size_t shift = 0; shift < 17; ++shift) {
    for (size_t bytes = 0; bytes < 300; ++bytes) {
      to.fill(0);
      StreamingCopy(to.data() + kStreamedLineBytes, from.data() + shift, bytes);
      const auto* begin = to.data() + kStreamedLineBytes;
      ASSERT_TRUE(std::equal(begin, begin + bytes, from.begin() + static_cast<ptrdiff_t>(shift)));
      ASSERT_EQ(begin[-1], 0);
      ASSERT_EQ(begin[bytes], 0);
    }
  }
}

// Without the fence half of the copies were seen late.
TEST(StreamingCopyTest, WhoSeesWhatIsStoredAfterItSeesIt) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor sees its own stores in order";
  constexpr size_t kSlots = 2, kBytes = 4096, kWords = kBytes / sizeof(uint64_t);
  constexpr uint64_t kRounds = 200'000;
  struct alignas(kStreamedLineBytes) Slot {
    std::array<uint64_t, kWords> words{};
  };
  std::array<Slot, kSlots> slots;
  alignas(128) std::atomic<uint64_t> written{0};
  alignas(128) std::atomic<uint64_t> read{0};
  const auto wait_for = [](const std::atomic<uint64_t>& what, uint64_t least) {
    for (uint32_t looks = 1; what.load(std::memory_order_acquire) < least; ++looks) {
      if (looks % 4096 == 0) std::this_thread::yield();  // the other may wait for a processor
    }
  };
  uint64_t late = 0;
  std::thread reader([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      // Looked at in the very next moment.
      const volatile uint64_t* const last = &slots[round % kSlots].words.back();
      wait_for(written, round);
      late += *last != round ? 1 : 0;
      read.store(round, std::memory_order_release);
    }
  });
  Slot contents;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    contents.words.back() = round;
    if (round > kSlots) wait_for(read, round - kSlots);
    StreamingCopy(reinterpret_cast<uint8_t*>(slots[round % kSlots].words.data()),
                  reinterpret_cast<const uint8_t*>(contents.words.data()), kBytes);
    written.store(round, std::memory_order_release);
  }
  reader.join();
  EXPECT_EQ(late, 0u);
}

}  // namespace
}  // namespace paceline
