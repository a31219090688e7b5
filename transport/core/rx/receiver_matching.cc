// Sends of the peer meet receives, or are stored until one comes.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/core/rx/receiver.h"

namespace paceline {
namespace {

// What the store of unexpected messages charges beside the payload.
constexpr uint64_t kUnexpectedOverhead = sizeof(RxMessage);
// Longer lists are walked once, the usual way.
constexpr size_t kFirstReceives = 4;

}  // namespace

// A send that came whole in one packet, whose turn it is, and whose receive is one of the first that stand ready: it
// goes there, and needs no RxMessage. False: it goes the way of all messages.
bool Receiver::Deliver(const wire::DataHeader& header, const Arrival& arrival) {
  const uint64_t bytes = arrival.payload_bytes;
  if (header.kind != wire::MessageKind::kSend || header.length != bytes || arrival.stamp.offset != 0 ||
      bytes > peer_->segment_bytes) {
    return false;
  }
  if (closing_ || !match_order_.empty() || context_->options.ordered_placement ||
      header.match_sequence != static_cast<uint32_t>(match_order_.begin())) {
    return false;
  }
  const Source source = shared_ == nullptr ? kAnySource : shared_->source;
  PostedReceive* receive = matcher().FindReceiveAmong(kFirstReceives, source, header.tag);
  if (receive == nullptr || receive->min_free > 0 || context_->memory.DeviceOf(receive->buffer.region) != kNoDevice) {
    return false;
  }
  match_order_.AdvanceTo(match_order_.begin() + 1);
  Take(receive);
  const uint64_t fits = std::min(bytes, receive->buffer.bytes);
  if (receive->buffer.data != nullptr && arrival.payload != nullptr && fits > 0) {
    std::memcpy(receive->buffer.data, arrival.payload, fits);
  }
  context_->counters.rx_data_bytes += bytes;
  prompt_ack_ |= bytes >= context_->options.prompt_ack_bytes;
  CompleteReceive(receive, {.has_immediate = (header.flags & wire::kHasImmediate) != 0,
                            .bytes = bytes,
                            .tag = header.tag,
                            .immediate = header.immediate});
  return true;
}

void Receiver::AdvanceMatching() {
  while (!match_order_.empty() && match_order_[match_order_.begin()] != nullptr) {
    RxMessage* message = match_order_[match_order_.begin()];
    match_order_.PopFront();
    Match(message);
  }
}

void Receiver::Match(RxMessage* message) {
  if (closing_) return RefuseSend(message);
  if (shares_receives()) message->source = shared_->source;
  if (PostedReceive* receive = TakeReceive(*message); receive != nullptr) {
    Attach(message, receive);
    return;
  }
  ++context_->counters.unexpected_messages;
  AddUnexpected(message);
}

void Receiver::Attach(RxMessage* message, PostedReceive* receive) {
  message->receive = receive;
  message->target = static_cast<uint8_t*>(receive->buffer.data);
  message->target_device = context_->memory.DeviceOf(receive->buffer.region);
  message->target_bytes = receive->buffer.bytes;
  ++matched_;
  demand_changed_ = true;
  if (message->bounce != nullptr) {
    const uint64_t segment = peer_->segment_bytes;
    const auto place = [&](uint64_t offset, uint64_t bytes) {
      return Place(message, offset, message->bounce.get() + offset, std::min(bytes, message->length - offset));
    };
    if (message->target != nullptr) {
      for (uint64_t i = 0; i * segment < message->length; ++i) {
        if (message->segments.Test(i) && !place(i * segment, segment)) break;
      }
      if (message->fragments != nullptr) message->fragments->ForEachUnit(place);
    }
  }
  FreeBounce(message);
  if (message->stored) {
    if (message->spoilt) {
      FailReceive(std::exchange(message->receive, nullptr), OperationStatus::kConnectionClosed);
      --matched_;
    } else {
      CompleteReceive(message);
    }
    Delete(message);
    return;
  }
  if (!message->accepted) {
    message->accepted = true;
    expected_bytes_ += message->length - message->arrived_bytes;
  }
  if (message->not_ready || (message->announced && message->length > 0)) {
    clears_.PushBack(message);
    RequestGrant();
  }
}

bool Receiver::TellKeysAgain(RegionId region) {
  bool any = false;
  messages_.ForEach([&](const Slot& slot) {
    RxMessage* message = slot.message;
    if (message == nullptr || !message->placed_by_lane || message->receive == nullptr) return;
    if (message->receive->buffer.region != region) return;
    message->told_ports = 0;
    if (!message->clear_link.linked()) clears_.PushBack(message);
    any = true;
  });
  if (any) RequestGrant();
  return any;
}

// Makes room for the payload of a send that has no receive yet.
bool Receiver::Store(RxMessage* message) {
  const uint64_t charge = message->length + kUnexpectedOverhead;
  if (context_->unexpected_bytes + charge > context_->options.unexpected_bytes) return false;
  context_->unexpected_bytes += charge;
  message->bounce_bytes = charge;
  message->accepted = true;
  expected_bytes_ += message->length - message->arrived_bytes;
  demand_changed_ = true;
  return true;
}

void Receiver::FreeBounce(RxMessage* message) {
  context_->unexpected_bytes -= message->bounce_bytes;
  message->bounce_bytes = 0;
  message->bounce.reset();
}

}  // namespace paceline
