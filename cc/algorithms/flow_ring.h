// Queues of flow numbers with removal from the middle: all operations O(1), and no allocation but when a larger flow
// number than ever before is reserved. Several queues may share the links of their flows: a flow then stands in at most
// one of them, and its owner knows in which.
//
// Thread rule: one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline {

class FlowLinks {
 public:
  void Reserve(size_t flows) {
    if (links_.size() < flows) links_.resize(flows);
  }

 private:
  friend class FlowRing;
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Link {
    uint32_t previous = kNone, next = kNone;
    bool queued = false;
  };
  std::vector<Link> links_;
};

class FlowRing {
 public:
  // `links` outlives the ring.
  explicit FlowRing(FlowLinks* links) : links_(links) {}

  bool empty() const { return head_ == kNone; }
  size_t size() const { return size_; }
  uint32_t front() const { return head_; }
  // With shared links: in this or another of the rings.
  bool Contains(uint32_t flow) const { return At(flow).queued; }

  // `flow` must not be in the ring.
  void PushBack(uint32_t flow) {
    At(flow) = {tail_, kNone, true};
    (tail_ == kNone ? head_ : At(tail_).next) = flow;
    tail_ = flow;
    ++size_;
  }

  // `flow` must not be in the ring, `place` must be in this one.
  void InsertAfter(uint32_t place, uint32_t flow) {
    const uint32_t next = At(place).next;
    At(flow) = {place, next, true};
    (next == kNone ? tail_ : At(next).previous) = flow;
    At(place).next = flow;
    ++size_;
  }

  // Does nothing when `flow` is in no ring.
  void Remove(uint32_t flow) {
    FlowLinks::Link& link = At(flow);
    if (!link.queued) return;
    (link.previous == kNone ? head_ : At(link.previous).next) = link.next;
    (link.next == kNone ? tail_ : At(link.next).previous) = link.previous;
    link.queued = false;
    --size_;
  }

  void PopFront() { Remove(head_); }

 private:
  static constexpr uint32_t kNone = FlowLinks::kNone;
  FlowLinks::Link& At(uint32_t flow) { return links_->links_[flow]; }
  const FlowLinks::Link& At(uint32_t flow) const { return links_->links_[flow]; }

  FlowLinks* links_;
  uint32_t head_ = kNone, tail_ = kNone;
  size_t size_ = 0;
};

}  // namespace paceline
