// Posted receives and sends that met none, of one connection, or of all connections that share a ReceiveQueue. A send
// matches the first receive, in posting order, whose tag agrees outside the ignored bits and which is open to its
// source; a receive the first stored send, in sending order. Both sides of a pair thus always agree, whatever the
// timing (MPI 4.0, section 3.5).
//
// Thread rule: the endpoint's thread. Entries belong to the endpoint's pools.
#pragma once

#include "transport/core/rx/message.h"

namespace paceline {

class Matcher {
 public:
  static bool Matches(const PostedReceive& receive, Source source, uint64_t tag) {
    return ((receive.tag ^ tag) & ~receive.ignore) == 0 && (receive.source == kAnySource || receive.source == source);
  }

  // The receive that a send with this tag matches; nullptr: none.
  PostedReceive* FindReceive(Source source, uint64_t tag) const {
    return FindReceiveIf([source, tag](const PostedReceive& receive) { return Matches(receive, source, tag); });
  }
  // The same, if it is among the first `most`.
  PostedReceive* FindReceiveAmong(size_t most, Source source, uint64_t tag) const {
    PostedReceive* receive = posted_.front();
    for (; receive != nullptr && most > 0; receive = posted_.Next(receive), --most) {
      if (Matches(*receive, source, tag)) return receive;
    }
    return nullptr;
  }
  // The stored send that a receive with these fields matches; nullptr: none.
  RxMessage* FindUnexpected(const PostedReceive& receive) const {
    for (RxMessage* message = unexpected_.front(); message != nullptr; message = unexpected_.Next(message)) {
      if (message->claimed == 0 && Matches(receive, message->source, message->tag)) return message;
    }
    return nullptr;
  }
  RxMessage* FindClaimed(uint64_t claimed) const {
    for (RxMessage* message = unexpected_.front(); message != nullptr; message = unexpected_.Next(message)) {
      if (message->claimed == claimed) return message;
    }
    return nullptr;
  }

  void AddReceive(PostedReceive* receive) {
    posted_.PushBack(receive);
    ++posted_count_;
  }
  void AddUnexpected(RxMessage* message) { unexpected_.PushBack(message); }
  // The first receive of which `wanted` is true; nullptr: none.
  template <typename Predicate>
  PostedReceive* FindReceiveIf(Predicate wanted) const {
    for (PostedReceive* receive = posted_.front(); receive != nullptr; receive = posted_.Next(receive)) {
      if (wanted(*receive)) return receive;
    }
    return nullptr;
  }
  // Calls `function` for each receive, in posting order.
  template <typename Function>
  void ForEachReceive(Function function) const {
    for (PostedReceive* receive = posted_.front(); receive != nullptr; receive = posted_.Next(receive)) {
      function(*receive);
    }
  }
  // Calls `function` for each stored send, in sending order; it may take the one that it is given.
  template <typename Function>
  void ForEachUnexpected(Function function) {
    for (RxMessage *message = unexpected_.front(), *next; message != nullptr; message = next) {
      next = unexpected_.Next(message);
      function(message);
    }
  }
  void Take(PostedReceive* receive) {
    receive->link.Unlink();
    --posted_count_;
  }
  void Take(RxMessage* message) { message->link.Unlink(); }

  // A send could not be matched for want of a completion: to be tried again.
  bool starved() const { return starved_; }
  void set_starved(bool starved) { starved_ = starved; }

  uint32_t posted_count() const { return posted_count_; }
  const PostedReceive* newest_receive() const { return posted_.back(); }

 private:
  IntrusiveList<PostedReceive, &PostedReceive::link> posted_;
  IntrusiveList<RxMessage, &RxMessage::link> unexpected_;
  uint32_t posted_count_ = 0;
  bool starved_ = false;
};

}  // namespace paceline
