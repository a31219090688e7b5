// Deadlines of many owners (numbered 0, 1, ...), the earliest first. Moving a deadline later costs nothing until the
// old one comes up: the heap keeps the earlier entry and the owner is asked again then. Idle owners are in no list that
// anybody scans. There is at most one entry per owner, so memory is bounded by the number of owners.
//
// A binary heap that knows where each owner's entry stands. Among equal deadlines the smaller number comes first.
//
// Thread rule: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/base/time.h"

namespace paceline {

class TimerHeap {
 public:
  // Makes sure that `owner` comes up at `deadline` or earlier; earlier ones ask the owner again. Time::Never(): no
  // need.
  void Schedule(uint32_t owner, Time deadline) {
    if (deadline.is_never()) return;
    if (owner >= position_.size()) position_.resize(owner + 1, kAbsent);
    uint32_t at = position_[owner];
    if (at == kAbsent) {
      at = static_cast<uint32_t>(heap_.size());
      heap_.push_back({deadline, owner});
      position_[owner] = at;
    } else if (heap_[at].at <= deadline) {
      return;  // an earlier entry is on its way
    }
    heap_[at].at = deadline;
    SiftUp(at);
  }

  // When the first entry comes up.
  Time next() const { return heap_.empty() ? Time::Never() : heap_.front().at; }

  // Takes one owner whose entry is due at `now`; false when there is none. The owner schedules itself again if need be.
  bool PopDue(Time now, uint32_t* owner) {
    if (heap_.empty() || heap_.front().at > now) return false;
    *owner = heap_.front().owner;
    position_[*owner] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      Put(0, last);
      SiftDown(0);
    }
    return true;
  }

  size_t size() const { return heap_.size(); }

 private:
  struct Entry {
    Time at;
    uint32_t owner;
    bool Before(const Entry& other) const { return at != other.at ? at < other.at : owner < other.owner; }
  };
  static constexpr uint32_t kAbsent = ~0u;

  void Put(uint32_t at, const Entry& entry) {
    heap_[at] = entry;
    position_[entry.owner] = at;
  }
  void SiftUp(uint32_t at) {
    const Entry entry = heap_[at];
    while (at > 0 && entry.Before(heap_[(at - 1) / 2])) {
      Put(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    Put(at, entry);
  }
  void SiftDown(uint32_t at) {
    const Entry entry = heap_[at];
    const auto size = static_cast<uint32_t>(heap_.size());
    for (uint32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && heap_[child + 1].Before(heap_[child])) ++child;
      if (!heap_[child].Before(entry)) break;
      Put(at, heap_[child]);
      at = child;
    }
    Put(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<uint32_t> position_;  // by owner: where its entry stands
};

}  // namespace paceline
