// Flows ordered by a time, each at most once, with removal from the middle: a binary heap that knows where each flow
// stands. O(log n); equal times leave in the order of the flow numbers, so the order never depends on history.
//
// Thread rule: one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/base/time.h"

namespace paceline {

class FlowHeap {
 public:
  void Reserve(size_t flows) {
    if (positions_.size() < flows) positions_.resize(flows, kAbsent);
  }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  uint32_t front() const { return entries_.front().flow; }
  Time front_time() const { return entries_.empty() ? Time::Never() : entries_.front().time; }
  bool Contains(uint32_t flow) const { return positions_[flow] != kAbsent; }

  // `flow` must not be in the heap.
  void Push(uint32_t flow, Time time) {
    entries_.push_back({time, flow});
    SiftUp(entries_.size() - 1);
  }

  // Does nothing when `flow` is not in the heap.
  void Remove(uint32_t flow) {
    const uint32_t position = positions_[flow];
    if (position == kAbsent) return;
    positions_[flow] = kAbsent;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (position == entries_.size()) return;
    entries_[position] = last;
    positions_[last.flow] = position;
    SiftUp(position);
    SiftDown(positions_[last.flow]);
  }

 private:
  struct Entry {
    Time time;
    uint32_t flow;
    bool operator<(const Entry& other) const { return time < other.time || (time == other.time && flow < other.flow); }
  };
  static constexpr uint32_t kAbsent = UINT32_MAX;

  void Put(size_t position, const Entry& entry) {
    entries_[position] = entry;
    positions_[entry.flow] = static_cast<uint32_t>(position);
  }
  void SiftUp(size_t position) {
    const Entry entry = entries_[position];
    while (position > 0) {
      const size_t parent = (position - 1) / 2;
      if (!(entry < entries_[parent])) break;
      Put(position, entries_[parent]);
      position = parent;
    }
    Put(position, entry);
  }
  void SiftDown(size_t position) {
    const Entry entry = entries_[position];
    for (;;) {
      size_t child = 2 * position + 1;
      if (child >= entries_.size()) break;
      if (child + 1 < entries_.size() && entries_[child + 1] < entries_[child]) ++child;
      if (!(entries_[child] < entry)) break;
      Put(position, entries_[child]);
      position = child;
    }
    Put(position, entry);
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> positions_;
};

}  // namespace paceline
