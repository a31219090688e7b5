// Completions waiting for the user. Every operation reserves its place when it is posted, so a completion always finds
// room: at the bound it is the post that is refused, or the arrival that is not acknowledged yet.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "transport/base/sequence_window.h"
#include "transport/core/types.h"

namespace paceline {

class CompletionQueue {
 public:
  explicit CompletionQueue(uint32_t bound) : queue_(std::bit_ceil(std::clamp(bound, 1u, 1u << 31))), bound_(bound) {}

  // Takes a place for a completion to come; false at the bound.
  bool Reserve() {
    if (reserved_ + queue_.size() >= bound_) return false;
    ++reserved_;
    return true;
  }
  // The same for a completion that a peer causes. All together may hold half of the places, and one at least, until
  // they are complete, so that what peers begin and do not end does not stop our own operations.
  bool ReserveForPeer() {
    if (for_peers_ >= (bound_ + 1) / 2 || !Reserve()) return false;
    ++for_peers_;
    return true;
  }
  // The completion has come: Push follows.
  void EndForPeer() { --for_peers_; }
  // Gives a place back unused.
  void Unreserve() { --reserved_; }
  void UnreserveForPeer() {
    EndForPeer();
    Unreserve();
  }
  // Fills a reserved place.
  void Push(const Completion& completion) {
    --reserved_;
    queue_[queue_.Append(1)] = completion;
  }
  size_t Poll(std::span<Completion> out) {
    size_t n = 0;
    while (n < out.size() && !queue_.empty()) {
      out[n++] = queue_[queue_.begin()];
      queue_.PopFront();
    }
    return n;
  }
  bool empty() const { return queue_.empty(); }

 private:
  SequenceWindow<Completion> queue_;
  uint32_t bound_;
  uint64_t reserved_ = 0;
  uint64_t for_peers_ = 0;  // of these
};

}  // namespace paceline
