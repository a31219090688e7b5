// A copy for memory that somebody watches while it is written, as a GPU does that polls flags inside its data: eight
// aligned bytes become visible at once, and within each aligned line of 128 bytes the last eight bytes come last.
// memcpy promises neither; glibc's stores the first bytes of a block after all others.
//
// Thread rule: one writer; readers may be anywhere, and load the last eight bytes of a line with acquire.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace paceline {

inline constexpr size_t kOrderedLineBytes = 128;

// `store(address, word, ends_line)` is called for each aligned word, in order; what is left at both ends is copied.
template <typename Store>
void OrderedCopyBy(uint8_t* to, const uint8_t* from, size_t bytes, Store&& store) {
  constexpr size_t kWord = sizeof(uint64_t);
  const size_t head = (kWord - reinterpret_cast<uintptr_t>(to) % kWord) % kWord;
  if (head >= bytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  for (; bytes >= kWord; to += kWord, from += kWord, bytes -= kWord) {
    uint64_t word;
    std::memcpy(&word, from, kWord);
    store(reinterpret_cast<uint64_t*>(to), word, (reinterpret_cast<uintptr_t>(to) + kWord) % kOrderedLineBytes == 0);
  }
  std::memcpy(to, from, bytes);
}

inline void OrderedCopy(uint8_t* to, const uint8_t* from, size_t bytes) {
  OrderedCopyBy(to, from, bytes, [](uint64_t* address, uint64_t word, bool ends_line) {
    std::atomic_ref<uint64_t>(*address).store(word, ends_line ? std::memory_order_release : std::memory_order_relaxed);
  });
}

}  // namespace paceline
