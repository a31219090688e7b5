// What happens next in the simulated fabric: a queue of small events in order of time, equal times in the order in
// which they were scheduled.
//
// Nearly every event of a fabric lies one of a few constant delays ahead: a full packet or a header arrives one
// serialisation and one link delay after it started, a port is free one serialisation after. Events of one constant
// delay are born in the order in which they are due, so each such delay has a plain ring (a "line"), and finding the
// next event means comparing the heads of a dozen lines. Only what has a delay of its own (timers, odd packet sizes,
// damaged links) goes through a 4-ary heap.
//
// Thread rule: one owner. Times are picoseconds; scheduling before now() is a broken invariant and asserts.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/lane/sim/sim_time.h"

namespace paceline::sim {

// What an event means is the fabric's affair: `kind` and two numbers.
struct Event {
  Picos time = kNeverPicos;
  uint64_t sequence = 0;
  uint32_t kind_and_index = 0;
  uint32_t packet = 0;

  uint32_t kind() const { return kind_and_index >> 28; }
  uint32_t index() const { return kind_and_index & 0x0fffffff; }
};

class EventQueue {
 public:
  static constexpr size_t kMaxLines = 12;
  static constexpr uint8_t kNoLine = 0xff;

  // A line for events that are due `delay` after they are scheduled; the same line for the same delay. kNoLine when all
  // are taken: such events go through PushAt.
  uint8_t AddLine(Picos delay) {
    for (size_t i = 0; i < line_count_; ++i) {
      if (lines_[i].delay == delay) return static_cast<uint8_t>(i);
    }
    if (line_count_ == kMaxLines) return kNoLine;
    lines_[line_count_].delay = delay;
    return static_cast<uint8_t>(line_count_++);
  }

  void PushLine(uint8_t line_number, uint32_t kind, uint32_t index, uint32_t packet) {
    Line& line = lines_[line_number];
    const Picos time = now_ + line.delay;
    if (line.count == line.ring.size()) Grow(line);
    if (line.count == 0) heads_[line_number] = KeyOf(time, next_sequence_);
    line.ring[(line.first + line.count++) & (line.ring.size() - 1)] = {time, next_sequence_++, kind << 28 | index,
                                                                       packet};
    ++size_;
  }

  void PushAt(Picos time, uint32_t kind, uint32_t index, uint32_t packet) {
    assert(time >= now_);
    heap_.push_back({time, next_sequence_++, kind << 28 | index, packet});
    SiftUp(heap_.size() - 1);
    ++size_;
  }

  // Takes the next event and moves now() to it. The queue must not be empty.
  Event Pop() {
    assert(size_ > 0);
    --size_;
    size_t best = 0;
    Key least = heads_[0];
    for (size_t i = 1; i < line_count_; ++i) {
      best = heads_[i] < least ? i : best;
      least = heads_[i] < least ? heads_[i] : least;
    }
    if (!heap_.empty() && KeyOf(heap_[0]) < least) return PopHeap();
    Line& line = lines_[best];
    const Event event = line.ring[line.first];
    line.first = (line.first + 1) & (line.ring.size() - 1);
    heads_[best] = --line.count == 0 ? kNoKey : KeyOf(line.ring[line.first]);
    now_ = event.time;
    return event;
  }

  Picos line_delay(uint8_t line_number) const { return lines_[line_number].delay; }

  // Time of the next event; kNeverPicos when there is none.
  Picos next_time() const {
    Picos next = heap_.empty() ? kNeverPicos : heap_[0].time;
    for (size_t i = 0; i < line_count_; ++i) {
      const Line& line = lines_[i];
      if (line.count > 0) next = std::min(next, line.ring[line.first].time);
    }
    return next;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  Picos now() const { return now_; }
  uint64_t scheduled() const { return next_sequence_; }  // events ever scheduled

 private:
  // Time and sequence as one number, which compares without a branch.
  __extension__ using Key = unsigned __int128;
  static constexpr Key kNoKey = ~Key{0};
  static Key KeyOf(Picos time, uint64_t sequence) { return Key{static_cast<uint64_t>(time)} << 64 | sequence; }
  static Key KeyOf(const Event& event) { return KeyOf(event.time, event.sequence); }
  struct Line {
    Picos delay = 0;
    size_t first = 0;
    size_t count = 0;
    std::vector<Event> ring;  // a power of two
  };

  static bool Before(const Event& a, const Event& b) { return KeyOf(a) < KeyOf(b); }

  static std::array<Key, kMaxLines> NoHeads() {
    std::array<Key, kMaxLines> heads;
    heads.fill(kNoKey);
    return heads;
  }

  static void Grow(Line& line) {
    std::vector<Event> larger(line.ring.empty() ? 64 : line.ring.size() * 2);
    for (size_t i = 0; i < line.count; ++i) larger[i] = line.ring[(line.first + i) & (line.ring.size() - 1)];
    line.ring.swap(larger);
    line.first = 0;
  }

  void SiftUp(size_t at) {
    const Event event = heap_[at];
    while (at > 0) {
      const size_t parent = (at - 1) / 4;
      if (!Before(event, heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = event;
  }

  Event PopHeap() {
    const Event top = heap_[0];
    const Event last = heap_.back();
    heap_.pop_back();
    const size_t size = heap_.size();
    if (size > 0) {
      size_t at = 0;
      for (size_t child = 1; child < size; child = 4 * at + 1) {
        size_t least = child;
        const size_t end = child + 4 < size ? child + 4 : size;
        for (size_t i = child + 1; i < end; ++i) least = Before(heap_[i], heap_[least]) ? i : least;
        if (!Before(heap_[least], last)) break;
        heap_[at] = heap_[least];
        at = least;
      }
      heap_[at] = last;
    }
    now_ = top.time;
    return top;
  }

  Picos now_ = 0;
  uint64_t next_sequence_ = 0;
  size_t size_ = 0;
  size_t line_count_ = 0;
  std::array<Key, kMaxLines> heads_ = NoHeads();
  std::array<Line, kMaxLines> lines_{};
  std::vector<Event> heap_;
};

}  // namespace paceline::sim
