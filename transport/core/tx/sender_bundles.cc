// Small sends that stand ready when a burst is filled share packets: a bundle (wire/bundle.h). It is one packet to all
// that counts packets. Its messages are known by their numbers alone, as some of them may end before it does; when it
// is lost, those that are still open stand to be sent again as if they never had been.
#include <algorithm>

#include "transport/core/tx/sender.h"
#include "transport/wire/bundle.h"

namespace paceline {
namespace {

// Of a message: its copy is to stay small beside what a packet costs.
constexpr uint64_t kMostBundledBytes = 1024;
// Of a bundle: the receiver is to begin with the first messages while the sender writes the next, also where a segment
// is much longer; and what all messages of a packet share is little by then.
constexpr uint32_t kMostBundleBytes = 4096;

bool IsSmallSend(const TxMessage& message) {
  return message.kind == wire::MessageKind::kSend && message.payload_bytes > 0 &&
         message.payload_bytes <= kMostBundledBytes && message.data != nullptr && message.device == kNoDevice &&
         !message.announced && message.placement == nullptr;
}

uint32_t BytesInBundle(const TxMessage& message) {
  return static_cast<uint32_t>(wire::BundledBytes(message.payload_bytes, message.has_immediate));
}

}  // namespace

// `packet` has the first of singles_; takes along those behind it that continue its numbers, as many as there is room
// for.
void Sender::Bundle(Packet& packet) const {
  const TxMessage* last = packet.message;
  TxMessage* next = singles_.Next(packet.message);
  if (next == nullptr || !peer_->bundles || !IsSmallSend(*last) || packet.bytes < last->payload_bytes ||
      context_->ports[packet.local_port].capabilities.nominal_header) {
    return;
  }
  const uint32_t most = std::min(PayloadBytes(packet.local_port), kMostBundleBytes);
  uint32_t bytes = BytesInBundle(*last);
  uint16_t messages = 1;
  for (; next != nullptr; next = singles_.Next(next)) {
    if (!IsSmallSend(*next) || next->number != last->number + 1 || next->match_sequence != last->match_sequence + 1 ||
        bytes + BytesInBundle(*next) > most) {
      break;
    }
    bytes += BytesInBundle(*next);
    last = next;
    ++messages;
  }
  if (messages == 1) return;
  packet.kind = Outstanding::Kind::kBundle;
  packet.messages = messages;
  packet.bytes = bytes;
}

// Writes the payload. True: one of the messages asks for an acknowledgement at once.
bool Sender::FillBundle(Packet& packet) {
  uint8_t* const payload = context_->burst_memory.Next();
  uint8_t* to = payload;
  bool asks_for_ack = false;
  TxMessage* message = packet.message;
  for (uint32_t i = 0; i < packet.messages; ++i) {
    TxMessage* const next = singles_.Next(message);
    to = wire::WriteBundled({.tag = message->tag,
                             .has_immediate = message->has_immediate,
                             .immediate = message->immediate,
                             .data = {message->data, message->payload_bytes}},
                            to);
    asks_for_ack |= message->asks_for_ack;
    message->bundled = true;
    AllSent(message);
    message = next;
  }
  context_->burst_memory.Use(packet.bytes);
  packet.payload = payload;
  return asks_for_ack;
}

void Sender::BundleAcked(const Outstanding& bundle) {
  for (uint64_t i = 0; i < bundle.parts; ++i) {
    TxMessage* message = OpenMessage(bundle.offset + i);
    if (message != nullptr) SegmentsAcked(message, Outstanding::Kind::kSegment, 1);
  }
}

// It had been found lost.
void Sender::BundleAckedLate(const Outstanding& bundle) {
  for (uint64_t i = 0; i < bundle.parts; ++i) {
    TxMessage* message = OpenMessage(bundle.offset + i);
    if (message == nullptr) continue;
    if (message->bundled) {
      SegmentsAcked(message, Outstanding::Kind::kSegment, 1);
    } else {
      Unneeded(outstanding_[message->last_psn]);  // it went alone since
    }
  }
}

void Sender::BundleLost(uint64_t psn) {
  Outstanding& bundle = outstanding_[psn];
  bool any = false;
  for (uint64_t i = bundle.parts; i-- > 0;) {  // the last one first, so that the first comes to stand before it
    TxMessage* message = OpenMessage(bundle.offset + i);
    if (message == nullptr) continue;
    any = true;
    message->stays = false;  // as of whatever is sent again
    message->next_offset = 0;
    if (message->held) continue;  // it waits to be cleared
    message->state = TxMessage::State::kSending;
    singles_.PushFront(message);
    unsent_bytes_ += message->payload_bytes;
  }
  if (!any) {
    bundle.state = Outstanding::State::kResolved;
    unacked_.Clear(psn);
    return;
  }
  bundle.state = Outstanding::State::kGhost;
  ++context_->counters.retransmits;
  context_->counters.retransmitted_bytes += bundle.bytes;
}

}  // namespace paceline
