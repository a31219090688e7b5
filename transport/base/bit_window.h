// One bit for each number in a sliding window [begin, begin + bound): a ring of 64-bit words that grows up to its
// bound. Words are aligned to multiples of 64 of the sequence, so that whole words can be read and sent.
//
// Thread rule: one owner. Growing allocates.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace paceline {

// The lowest `count` bits, at most 64.
constexpr uint64_t LowBits(uint64_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

class BitWindow {
 public:
  // `bound`: a power of two, at least 128.
  explicit BitWindow(uint32_t bound, uint64_t first = 0) : bound_(bound), begin_(first), end_(first) {}

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }  // one past the highest bit ever set; at least begin() when any
  bool Reaches(uint64_t n) const { return n >= begin_ && n - begin_ < bound_ - 64; }

  bool Test(uint64_t n) const {
    if (n < begin_ || n >= end_) return false;
    return (words_[Index(n)] >> (n & 63)) & 1;
  }
  // `n` must be within reach. Returns false if it was set before.
  bool Set(uint64_t n) {
    Prepare(n);
    uint64_t& word = words_[Index(n)];
    const uint64_t bit = uint64_t{1} << (n & 63);
    if (word & bit) return false;
    word |= bit;
    return true;
  }
  // Is any of [n, n + count) set? All within reach, none below begin().
  bool AnyIn(uint64_t n, uint64_t count) const {
    const uint64_t last = n + count < end_ ? n + count : end_;
    while (n < last) {
      const uint64_t in_word = 64 - (n & 63), some = last - n < in_word ? last - n : in_word;
      if ((words_[Index(n)] >> (n & 63) & LowBits(some)) != 0) return true;
      n += some;
    }
    return false;
  }
  // Sets [n, n + count), `count` > 0, all within reach.
  void SetRange(uint64_t n, uint64_t count) {
    Prepare(n + count - 1);
    while (count > 0) {
      const uint64_t in_word = 64 - (n & 63), some = count < in_word ? count : in_word;
      words_[Index(n)] |= LowBits(some) << (n & 63);
      n += some;
      count -= some;
    }
  }
  // Takes those of `bits` out of the word at `base`, which Word has given.
  void ClearInWord(uint64_t base, uint64_t bits) {
    if (bits != 0) words_[Index(base)] &= ~bits;
  }
  void Clear(uint64_t n) {
    if (n >= begin_ && n < end_) words_[Index(n)] &= ~(uint64_t{1} << (n & 63));
  }
  // The word that holds bits [base, base + 64); base a multiple of 64. Bits outside the window are 0.
  uint64_t Word(uint64_t base) const {
    if (words_ == nullptr || base + 64 <= begin_ || base >= end_) return 0;
    uint64_t word = words_[Index(base)];
    if (base < begin_) word &= ~uint64_t{0} << (begin_ - base);
    return word;
  }
  // Forgets everything below `n`.
  void AdvanceTo(uint64_t n) {
    if (n <= begin_) return;
    if (n >= end_) {
      if (words_ != nullptr) {
        for (uint64_t base = begin_ & ~uint64_t{63}; base < end_; base += 64) words_[Index(base)] = 0;
      }
      begin_ = n;
      end_ = n;
      return;
    }
    for (uint64_t base = begin_ & ~uint64_t{63}; base + 64 <= n; base += 64) words_[Index(base)] = 0;
    begin_ = n;
    words_[Index(n)] &= ~uint64_t{0} << (n & 63);
  }
  // First number >= from (and >= begin) whose bit is not set.
  uint64_t FirstClear(uint64_t from) const {
    uint64_t n = from < begin_ ? begin_ : from;
    while (n < end_) {
      const uint64_t inverted = ~words_[Index(n)] >> (n & 63);
      if (inverted != 0) return n + static_cast<uint64_t>(std::countr_zero(inverted));
      n = (n | 63) + 1;
    }
    return n;
  }
  void Release() {
    words_.reset();
    size_ = 0;
    end_ = begin_;
  }
  size_t memory_bytes() const { return size_ * sizeof(uint64_t); }

 private:
  size_t Index(uint64_t n) const { return (n >> 6) & (size_ - 1); }
  void Prepare(uint64_t n) {
    const uint64_t first_word = begin_ >> 6;
    const uint64_t wanted = (n >> 6) - first_word + 1;
    if (wanted > size_) Grow(wanted);
    if (end_ < begin_) end_ = begin_;
    if (n >= end_) end_ = n + 1;
  }
  [[gnu::cold]] void Grow(uint64_t wanted) {
    uint32_t size = size_ == 0 ? 2 : size_;
    while (size < wanted) size *= 2;
    auto grown = std::make_unique<uint64_t[]>(size);
    if (words_ != nullptr) {
      for (uint64_t word = begin_ >> 6; word <= (end_ >> 6) && word < (begin_ >> 6) + size_; ++word) {
        grown[word & (size - 1)] = words_[word & (size_ - 1)];
      }
    }
    words_ = std::move(grown);
    size_ = size;
  }

  std::unique_ptr<uint64_t[]> words_;
  uint32_t size_ = 0;  // words, a power of two or 0
  uint32_t bound_;
  uint64_t begin_;
  uint64_t end_;
};

}  // namespace paceline
