// The open messages of one direction by number: a window of limits::kMaxOpenMessages numbers, and beside it those that
// the window has passed because they are likely to wait for long (announced, and waiting for a receive). These are
// *parked*: they keep their number and are found by it as before, but hold up no later one. There are at most
// limits::kMaxParkedMessages. Numbers travel as 32 bits, which tell a parked one from newer ones as long as these are
// fewer than `kReach`: then the numbers are used up until the oldest that is parked is over.
//
// `IsOver`: what becomes of a number that needs its place no longer. Thread rule: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/sequence_window.h"

namespace paceline {

template <typename T, bool (*IsOver)(const T&),
          uint64_t kReach = (uint64_t{1} << 31) - 2 * uint64_t{limits::kMaxOpenMessages}>
class MessageWindow {
 public:
  explicit MessageWindow(uint64_t first = 0) : window_(limits::kMaxOpenMessages, first) {}

  // Of the window: all numbers below begin() that are not parked are over.
  uint64_t begin() const { return window_.begin(); }
  uint64_t end() const { return window_.end(); }
  uint64_t size() const { return window_.size(); }
  uint32_t bound() const { return window_.bound(); }
  bool Reaches(uint64_t n) const { return window_.Reaches(n); }
  bool used_up() const { return window_.end() >= numbers_end_; }
  void Extend(uint64_t n) { window_.Extend(n); }
  T& PushBack() { return window_.PushBack(); }

  bool empty() const { return window_.empty() && (parked_ == nullptr || parked_->empty()); }
  bool Contains(uint64_t n) const { return window_.Contains(n) || (parked_ != nullptr && parked_->contains(n)); }
  // Only what it contains.
  T& operator[](uint64_t n) { return n >= window_.begin() ? window_[n] : parked_->find(n)->second; }
  const T& operator[](uint64_t n) const { return n >= window_.begin() ? window_[n] : parked_->find(n)->second; }

  // Parks the oldest of the window, which must not be empty. False: so many are parked already.
  [[gnu::cold]] bool ParkOldest() {
    if (parked_ == nullptr) parked_ = std::make_unique<std::map<uint64_t, T>>();
    if (parked_->size() >= limits::kMaxParkedMessages) return false;
    parked_->emplace(window_.begin(), std::move(window_[window_.begin()]));
    window_.PopFront();
    PassWhatIsOver();
    SetNumbersEnd();
    return true;
  }
  // What stands at `n`, which it contains, is over now.
  void Ended(uint64_t n) {
    if (n < window_.begin()) {
      parked_->erase(n);
      SetNumbersEnd();
    } else {
      PassWhatIsOver();
    }
  }
  // In the order of their numbers. `function` may end what it is given.
  template <typename Function>
  void ForEach(Function function) const {
    if (parked_ != nullptr) {
      for (auto next = parked_->begin(); next != parked_->end();) function((next++)->second);
    }
    for (uint64_t n = window_.begin(); n < window_.end(); ++n) function(window_[n]);
  }
  void Clear() {
    if (parked_ != nullptr) parked_->clear();
    SetNumbersEnd();
    window_.AdvanceTo(window_.end());
  }
  // Gives memory back. Only when it is empty.
  void Release() {
    window_.Release();
    parked_.reset();
  }
  size_t memory_bytes() const {
    return window_.memory_bytes() + (parked_ == nullptr ? 0 : sizeof(*parked_) + parked_->size() * 64);
  }

 private:
  void PassWhatIsOver() {
    while (!window_.empty() && IsOver(window_[window_.begin()])) window_.PopFront();
  }
  void SetNumbersEnd() {
    numbers_end_ = parked_ == nullptr || parked_->empty() ? UINT64_MAX : parked_->begin()->first + kReach;
  }

  SequenceWindow<T> window_;
  uint64_t numbers_end_ = UINT64_MAX;              // so far they can be told from what is parked
  std::unique_ptr<std::map<uint64_t, T>> parked_;  // nullptr until one is
};

}  // namespace paceline
