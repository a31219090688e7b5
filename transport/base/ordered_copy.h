// A copy for memory that somebody watches while it is written, as a GPU does that polls flags inside its data: eight
// aligned bytes become visible at once, and within each aligned line of 128 bytes the last eight bytes come last.
// memcpy promises neither; glibc's stores the first bytes of a block after all others.
//
// On x86-64 stores become visible in the order in which they are made, and aligned ones of 16 bytes at once on whatever
// has AVX (Intel SDM volume 3, "Memory Ordering" and "Guaranteed Atomic Operations"; AMD APM volume 2, "Memory
// System").
//
// Thread rule: one writer; readers may be anywhere, and load the last eight bytes of a line with acquire.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace paceline {

inline constexpr size_t kOrderedLineBytes = 128;

// How the words of a copy are stored.
struct OrderedStores {
  static constexpr size_t kWordBytes = sizeof(uint64_t);

  static void Word(uint8_t* to, const uint8_t* from) { Store(to, from, std::memory_order_relaxed); }
  // The last word of a line, after all others.
  static void LastWord(uint8_t* to, const uint8_t* from) { Store(to, from, std::memory_order_release); }
  // All of a line but its last word.
  static void LineBeforeLastWord(uint8_t* to, const uint8_t* from) {
    size_t at = 0;
#ifdef __x86_64__
    for (; at + sizeof(__m128i) < kOrderedLineBytes; at += sizeof(__m128i)) {
      _mm_store_si128(reinterpret_cast<__m128i*>(to + at),
                      _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
    }
#endif
    for (; at + kWordBytes < kOrderedLineBytes; at += kWordBytes) Word(to + at, from + at);
  }

 private:
  // The order has to be known to the compiler: it makes a sequentially consistent exchange of one that is not.
  [[gnu::always_inline]] static void Store(uint8_t* to, const uint8_t* from, std::memory_order order) {
    uint64_t word;
    std::memcpy(&word, from, kWordBytes);
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(to)).store(word, order);
  }
};

// One word of a copy, the last of its line or not.
template <typename Stores>
void OrderedWord(uint8_t* to, const uint8_t* from) {
  constexpr size_t kLast = kOrderedLineBytes - Stores::kWordBytes;
  if (reinterpret_cast<uintptr_t>(to) % kOrderedLineBytes == kLast) {
    Stores::LastWord(to, from);
  } else {
    Stores::Word(to, from);
  }
}

// What is less than a word at both ends is just copied.
template <typename Stores = OrderedStores>
void OrderedCopy(uint8_t* to, const uint8_t* from, size_t bytes) {
  constexpr size_t kWord = Stores::kWordBytes, kLine = kOrderedLineBytes, kLast = kLine - kWord;
  const auto before = [to](size_t unit) { return (unit - reinterpret_cast<uintptr_t>(to) % unit) % unit; };
  const size_t head = before(kWord);
  if (head >= bytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  const size_t words_end = head + (bytes - head) / kWord * kWord;
  const size_t first_line = std::min(before(kLine), words_end);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at < first_line; at += kWord) OrderedWord<Stores>(to + at, from + at);
  for (; at + kLine <= words_end; at += kLine) {
    Stores::LineBeforeLastWord(to + at, from + at);
    Stores::LastWord(to + at + kLast, from + at + kLast);
  }
  for (; at < words_end; at += kWord) OrderedWord<Stores>(to + at, from + at);
  std::memcpy(to + at, from + at, bytes - at);
}

}  // namespace paceline
