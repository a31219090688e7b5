// A receive queue: receives that connections share, and what was sent on these connections and met none. A receive that
// names its source can be met by nobody else, so while it stands here it counts for each connection of that source as
// one of its own does (Receiver::OnReady). One for any source does not, nor a buffer for many sends. Sends of up to
// `eager_bytes` come unasked: of receives no longer than that the sender is not told, which would cost a packet each
// and, where processes share cores, a turn of both.
//
// Thread rule: the endpoint's thread. Receives belong to the endpoint's pool; a connection that has joined leaves
// before it goes.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "transport/core/rx/matcher.h"

namespace paceline {

class ReceiveQueue {
 public:
  // `changed` is told of each connection whose allocators are to be told that a receive stands ready, or no more, and
  // of each that begins to wait for its peer.
  using Changed = std::function<void(const Receiver&)>;
  ReceiveQueue(uint64_t eager_bytes, Changed changed) : eager_bytes_(eager_bytes), changed_(std::move(changed)) {}

  // Stored sends, and looking for receives. Receives are added and taken here, so that they are counted.
  Matcher& matcher() { return matcher_; }

  void Add(PostedReceive* receive);
  void Take(PostedReceive* receive);
  // Takes the first receive of which `wanted` is true; nullptr: none.
  template <typename Predicate>
  PostedReceive* TakeIf(Predicate wanted) {
    PostedReceive* receive = matcher_.FindReceiveIf(wanted);
    if (receive != nullptr) Take(receive);
    return receive;
  }

  // From now on, and with those that stand ready already, the receives that name `source` count for `receiver`; no more
  // after Leave. `receiver` is told of each by OnReady, but `changed` is not. `source` is a name, not kAnySource.
  void Join(Receiver* receiver, Source source);
  void Leave(Receiver* receiver, Source source);

 private:
  struct Named {
    uint32_t receives = 0;
    absl::InlinedVector<Receiver*, 1> connections;  // in the order in which they joined
  };
  static bool Counts(const PostedReceive& receive) { return receive.source != kAnySource && receive.min_free == 0; }
  bool IsTold(const PostedReceive& receive) const { return receive.buffer.bytes > eager_bytes_; }
  void EraseIfUnused(Source source);

  const uint64_t eager_bytes_;
  Matcher matcher_;
  Changed changed_;
  absl::flat_hash_map<Source, Named> named_;  // of sources with receives or connections; looked up, never walked
};

}  // namespace paceline
