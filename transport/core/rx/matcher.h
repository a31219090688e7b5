// Posted receives and sends that met none, of one connection. A send matches the first receive, in posting order, whose
// tag agrees outside the ignored bits; a receive the first stored send, in sending order. Both sides of a pair thus
// always agree, whatever the timing (MPI 4.0, section 3.5).
//
// Thread rule: the endpoint's thread. Entries belong to the endpoint's pools.
#pragma once

#include "transport/core/rx/message.h"

namespace paceline {

class Matcher {
 public:
  static bool Matches(const PostedReceive& receive, uint64_t tag) {
    return ((receive.tag ^ tag) & ~receive.ignore) == 0;
  }

  // Takes the receive that a send with this tag matches; nullptr: none.
  PostedReceive* TakeReceive(uint64_t tag) {
    for (PostedReceive* receive = posted_.front(); receive != nullptr; receive = posted_.Next(receive)) {
      if (!Matches(*receive, tag)) continue;
      Unlink(receive);
      return receive;
    }
    return nullptr;
  }
  // Takes the stored send that this receive matches; nullptr: none.
  RxMessage* TakeUnexpected(const PostedReceive& receive) {
    for (RxMessage* message = unexpected_.front(); message != nullptr; message = unexpected_.Next(message)) {
      if (!Matches(receive, message->tag)) continue;
      Unlink(message);
      return message;
    }
    return nullptr;
  }

  void AddReceive(PostedReceive* receive) {
    posted_.PushBack(receive);
    ++posted_count_;
  }
  void AddUnexpected(RxMessage* message, bool rendezvous) {
    unexpected_.PushBack(message);
    if (rendezvous) ++unexpected_rendezvous_;
    message->stored_rendezvous = rendezvous;
  }
  // A stored send has arrived in full: it needs no clearing any more.
  void OnStored(RxMessage* message) {
    if (message->stored_rendezvous) --unexpected_rendezvous_;
    message->stored_rendezvous = false;
  }
  // Takes the receive with this id; nullptr: not (or no longer) waiting.
  PostedReceive* TakeReceiveById(OperationId id) {
    for (PostedReceive* receive = posted_.front(); receive != nullptr; receive = posted_.Next(receive)) {
      if (receive->operation_id != id) continue;
      Unlink(receive);
      return receive;
    }
    return nullptr;
  }
  PostedReceive* TakeFirstReceive() {
    PostedReceive* receive = posted_.front();
    if (receive != nullptr) Unlink(receive);
    return receive;
  }
  RxMessage* TakeFirstUnexpected() {
    RxMessage* message = unexpected_.front();
    if (message != nullptr) Unlink(message);
    return message;
  }
  bool UsesRegion(RegionId region) const {
    for (PostedReceive* receive = posted_.front(); receive != nullptr; receive = posted_.Next(receive)) {
      if (receive->buffer.region == region) return true;
    }
    return false;
  }

  uint32_t posted_count() const { return posted_count_; }
  uint32_t CountUnexpected() const {
    uint32_t count = 0;
    for (RxMessage* message = unexpected_.front(); message != nullptr; message = unexpected_.Next(message)) ++count;
    return count;
  }
  // A stored send waits to be cleared by name: sends must not be cleared by count past it.
  bool has_unexpected_rendezvous() const { return unexpected_rendezvous_ > 0; }
  bool empty() const { return posted_.empty() && unexpected_.empty(); }

 private:
  void Unlink(PostedReceive* receive) {
    receive->link.Unlink();
    --posted_count_;
  }
  void Unlink(RxMessage* message) {
    message->link.Unlink();
    if (message->stored_rendezvous) --unexpected_rendezvous_;
  }

  IntrusiveList<PostedReceive, &PostedReceive::link> posted_;
  IntrusiveList<RxMessage, &RxMessage::link> unexpected_;
  uint32_t posted_count_ = 0;
  uint32_t unexpected_rendezvous_ = 0;
};

}  // namespace paceline
