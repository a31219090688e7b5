// A window over a sequence: values for the numbers in [begin, end), kept in a ring of a power of two of slots that
// grows up to a bound. Memory is given back by Release. Used for packets outstanding, open messages and the like.
//
// Thread rule: one owner. Growing allocates; a window that has reached its working size no longer does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace paceline {

template <typename T>
class SequenceWindow {
 public:
  // `bound`: most numbers in the window at a time; a power of two.
  explicit SequenceWindow(uint32_t bound, uint64_t first = 0) : bound_(bound), begin_(first), end_(first) {}

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  bool empty() const { return begin_ == end_; }
  uint64_t size() const { return end_ - begin_; }
  uint32_t bound() const { return bound_; }
  bool Contains(uint64_t n) const { return n >= begin_ && n < end_; }
  // Could `n` be made part of the window by Extend?
  bool Reaches(uint64_t n) const { return n >= begin_ && n - begin_ < bound_; }

  // `n` must be in [begin, end).
  T& operator[](uint64_t n) { return slots_[Index(n)]; }
  const T& operator[](uint64_t n) const { return slots_[Index(n)]; }

  // Makes end() at least n + 1; new slots hold T{}. `n` must be within reach.
  void Extend(uint64_t n) {
    if (n < end_) return;
    const uint64_t wanted = n - begin_ + 1;
    if (wanted > capacity()) Grow(wanted);
    while (end_ <= n) slots_[Index(end_++)] = T{};
  }
  T& PushBack() {
    Extend(end_);
    return slots_[Index(end_ - 1)];
  }
  // Adds `count` numbers at the end and returns the first; the caller gives their slots their values, which are old
  // ones until then.
  uint64_t Append(uint64_t count) {
    const uint64_t first = end_;
    if (first + count - begin_ > capacity()) Grow(first + count - begin_);
    end_ += count;
    return first;
  }
  // Drops the first number.
  void PopFront() { ++begin_; }
  // Drops everything below `n`.
  void AdvanceTo(uint64_t n) {
    if (n > begin_) begin_ = n;
    if (end_ < begin_) end_ = begin_;
  }

  // Gives the ring back. Only for an empty window.
  void Release() {
    slots_.reset();
    allocated_ = 0;
  }
  size_t memory_bytes() const { return allocated_ * sizeof(T); }  // NOLINT(bugprone-sizeof-expression): T may point

 private:
  uint64_t capacity() const { return allocated_; }
  size_t Index(uint64_t n) const { return n & (allocated_ - 1); }
  [[gnu::cold]] void Grow(uint64_t wanted) {
    uint32_t size = allocated_ == 0 ? 8 : allocated_;
    while (size < wanted) size *= 2;
    auto grown = std::make_unique<T[]>(size);
    for (uint64_t n = begin_; n < end_; ++n) grown[n & (size - 1)] = std::move(slots_[Index(n)]);
    slots_ = std::move(grown);
    allocated_ = size;
  }

  std::unique_ptr<T[]> slots_;
  uint32_t allocated_ = 0;
  uint32_t bound_;
  uint64_t begin_, end_;
};

}  // namespace paceline
