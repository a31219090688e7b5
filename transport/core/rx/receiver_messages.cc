// Messages on their way in, by kind, from the first packet to completion.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/base/ordered_copy.h"
#include "transport/base/sequence.h"
#include "transport/core/connection.h"
#include "transport/core/rx/receiver.h"

namespace paceline {
namespace {

using wire::MessageKind;

bool IsAnswer(MessageKind kind) {
  return kind == MessageKind::kReadResponse || kind == MessageKind::kAtomicResponse || kind == MessageKind::kFailure;
}
bool IsRequest(MessageKind kind) {
  return kind == MessageKind::kReadRequest || kind == MessageKind::kFetchAdd || kind == MessageKind::kCompareSwap ||
         kind == MessageKind::kAtomic;
}

// Kinds whose `length` bytes travel in the message itself.
bool CarriesPayload(MessageKind kind) {
  return kind == MessageKind::kSend || kind == MessageKind::kWrite || kind == MessageKind::kReadResponse ||
         kind == MessageKind::kAnnounce || kind == MessageKind::kAtomic;
}

}  // namespace

Receiver::Taken Receiver::HandleMessage(const wire::DataHeader& header, Stretch& stretch, Run& run) {
  const Arrival& arrival = stretch.front();
  // What was found of the message for one packet of a run holds for the next.
  if (arrival.payload_bytes > 0 && StillTakes(run)) return HandleSegments(run.message, stretch, run);
  run.message = nullptr;
  const Stretch whole = std::exchange(stretch, stretch.first(1));
  if (header.kind == MessageKind::kProbe) return Taken::kYes;
  if (header.kind == MessageKind::kBundle) return HandleBundle(header, arrival);
  EndpointCounters& counters = context_->counters;
  const uint64_t number = Unwrap(header.message, messages_.begin());
  if (number < messages_.begin() && !messages_.Contains(number)) {
    ++counters.rx_duplicates;
    return Taken::kYes;
  }
  if (number >= messages_.begin()) {
    if (!messages_.Reaches(number) && !ParkUpTo(number)) {
      ++counters.rx_out_of_window;
      return Taken::kNo;
    }
    messages_.Extend(number);
  }
  Slot& slot = messages_[number];
  if (slot.done) {
    ++counters.rx_duplicates;
    return Taken::kYes;
  }
  RxMessage* message = slot.message;
  if (message == nullptr && Deliver(header, arrival)) {
    MarkDone(number);
    return Taken::kYes;
  }
  if (message == nullptr || !message->known) {
    message = Introduce(header, number, slot);
    if (message == nullptr) return Taken::kNo;
    // Its first packet may have completed, refused or stored it.
    if (messages_.Contains(number) ? messages_[number].done : true) return Taken::kYes;
  } else if (message->kind == MessageKind::kReadResponse && header.kind == MessageKind::kFailure &&
             message->request == header.request) {
    AnswerRevoked(message, header.value);
    return Taken::kYes;
  } else if (message->kind != header.kind &&
             !(message->kind == MessageKind::kAnnounce && header.kind == MessageKind::kWrite)) {
    ++counters.rx_malformed;
    return Taken::kNo;
  }
  if (message->length != header.length) {
    ++counters.rx_malformed;
    return Taken::kNo;
  }
  if (message->failed) return Taken::kNo;

  if (arrival.payload_bytes == 0 && header.length > 0 && CarriesPayload(header.kind)) {
    // An announcement: the sender asks first, or writes by remote placement.
    if (message->kind == MessageKind::kAtomic) {
      ++counters.rx_malformed;
      return Taken::kNo;
    }
    message->asks_for_ack |= (arrival.stamp.flags & wire::kAckNow) != 0;
    if (!message->announced) {
      message->announced = true;
      if (message->receive != nullptr && message->arrived_bytes == 0 && !message->clear_link.linked()) {
        clears_.PushBack(message);
        RequestGrant();
      }
    }
    return Taken::kYes;
  }
  stretch = whole;
  return HandleSegments(message, stretch, run);
}

// The first packet of a message. nullptr: it cannot be taken now or makes no sense.
RxMessage* Receiver::Introduce(const wire::DataHeader& header, uint64_t number, Slot& slot) {
  EndpointCounters& counters = context_->counters;
  if (header.length > limits::kMaxMessageBytes) {
    ++counters.rx_malformed;
    return nullptr;
  }
  uint64_t match_sequence = 0;
  if (header.kind == MessageKind::kSend) {
    match_sequence = Unwrap(header.match_sequence, match_order_.begin());
    if (!match_order_.Reaches(match_sequence) ||
        (match_order_.Contains(match_sequence) && match_order_[match_sequence] != nullptr)) {
      ++counters.rx_malformed;
      return nullptr;
    }
  }
  if (IsAnswer(header.kind) && header.kind == MessageKind::kReadResponse) {
    TxMessage* request = FindRequest(header.request);
    if (request != nullptr && (!request->wants_answer || request->answer_bytes != header.length)) {
      ++counters.rx_malformed;
      return nullptr;
    }
  }
  // When it closes and has only answers left to give: the peer, which does not know yet, could go on for ever. (Not
  // while it waits for the peer, which may be closing and waiting for it.)
  const SendState& sends = owner_->send_state();
  const bool closes = closing_ && sends.operations == 0;
  if (IsRequest(header.kind) && (closes || sends.open_answers >= limits::kMaxOpenMessages)) {
    SayNotReady(number);
    return nullptr;
  }
  const bool is_write = header.kind == MessageKind::kWrite || header.kind == MessageKind::kAnnounce;
  const bool tells = (is_write && (header.flags & wire::kHasImmediate) != 0) ||
                     ((is_write || IsRequest(header.kind)) &&
                      context_->memory.CheckRemote(header.remote_key, header.remote_offset, 0, kRemoteEvents,
                                                   peer_->local_connection) != nullptr);
  if (tells && !context_->completions.ReserveForPeer()) {
    SayNotReady(number);
    return nullptr;
  }

  if (slot.message == nullptr) slot.message = context_->rx_messages.New();
  RxMessage* message = slot.message;
  message->receiver = this;
  message->known = true;
  message->kind = header.kind;
  message->number = number;
  message->match_sequence = match_sequence;
  message->length = header.length;
  message->tag = header.tag;
  message->remote_key = header.remote_key;
  message->remote_offset = header.remote_offset;
  message->request = header.request;
  message->value = header.value;
  message->operand = header.operand;
  message->compare = header.compare;
  message->atomic_op = header.atomic_op;
  message->atomic_type = header.atomic_type;
  message->fetch = header.fetch;
  message->elements = header.elements;
  message->has_immediate = (header.flags & wire::kHasImmediate) != 0;
  message->tells = tells;
  message->immediate = header.immediate;
  const uint64_t payload = CarriesPayload(header.kind) ? header.length : 0;
  message->segments.Reset(payload == 0 ? 1 : (payload + peer_->segment_bytes - 1) / peer_->segment_bytes);
  if (!Begin(message)) return message;
  if (message->early_placed > 0) {
    message->early_placed = std::min(message->early_placed, message->length - message->arrived_bytes);
    message->arrived_bytes += message->early_placed;
    expected_bytes_ -= std::min(message->early_placed, expected_bytes_);
    MaybeComplete(message);
  }
  return message;
}

// Finds the place of its payload. False: refused.
bool Receiver::Begin(RxMessage* message) {
  switch (message->kind) {
    case MessageKind::kSend:
      match_order_.Extend(message->match_sequence);
      match_order_[message->match_sequence] = message;
      AdvanceMatching();
      return true;
    case MessageKind::kWrite:
    case MessageKind::kAnnounce: {
      const Region* region = context_->memory.CheckRemote(message->remote_key, message->remote_offset, message->length,
                                                          kRemoteWrite, peer_->local_connection);
      if (region == nullptr) {
        Refuse(message, OperationStatus::kRemoteAccess);
        return false;
      }
      message->target = region->base == nullptr ? nullptr : region->At(message->remote_offset);
      message->target_device = region->device;
      message->target_bytes = message->length;
      break;
    }
    case MessageKind::kReadResponse: {
      TxMessage* request = FindRequest(message->request);
      message->discard = request == nullptr;
      if (request != nullptr) {
        message->target = request->answer_buffer;
        message->target_device = request->device;
        message->target_bytes = request->answer_buffer == nullptr ? 0 : request->answer_bytes;
      }
      break;
    }
    case MessageKind::kAtomic:
      if (context_->memory.CheckRemote(message->remote_key, message->remote_offset, 0, kRemoteAtomic,
                                       peer_->local_connection) == nullptr) {
        Refuse(message, OperationStatus::kRemoteAccess);
        return false;
      }
      if (message->length > 0) message->bounce = std::make_unique<uint8_t[]>(message->length);
      message->target = message->bounce.get();
      message->target_bytes = message->length;
      break;
    default:
      break;
  }
  message->accepted = true;
  if (CarriesPayload(message->kind)) expected_bytes_ += message->length;
  demand_changed_ = true;
  return true;
}

// ---- segments

Receiver::Taken Receiver::HandleSegments(RxMessage* message, Stretch& stretch, Run& run) {
  EndpointCounters& counters = context_->counters;
  message->asks_for_ack |= (stretch.back().stamp.flags & wire::kAckNow) != 0;
  const uint64_t offset = stretch.front().stamp.offset;
  const uint32_t bytes = stretch.front().payload_bytes;
  const uint64_t segment_bytes = peer_->segment_bytes;
  const uint64_t payload = CarriesPayload(message->kind) ? message->length : 0;
  const uint64_t wanted = payload == 0 ? 0 : std::min(segment_bytes, payload - std::min(payload, offset));
  uint64_t segment = message->next_segment;
  if (offset != message->next_offset) segment = offset / segment_bytes;
  const bool whole = segment * segment_bytes == offset && (offset < payload || offset == 0) && bytes == wanted;
  if (!whole) {
    stretch = stretch.first(1);
    if (!FragmentTracker::IsFragment(peer_->segment_bytes, offset, bytes, payload)) {
      ++counters.rx_malformed;
      return Taken::kNo;
    }
  }
  if (run.message != message) {
    if (!TakesSegments(message)) {
      stretch = stretch.first(1);
      return Taken::kNo;
    }
    run.message = message;
    run.number = message->number;
  }
  if (!whole) return HandleFragment(message, stretch);
  if (stretch.size() > 1 && (message->target_device != kNoDevice || offset + stretch.size() * segment_bytes > payload ||
                             !message->segments.SetNew(segment, stretch.size()))) {
    stretch = stretch.first(1);
  }
  if (stretch.size() == 1) {
    switch (message->segments.Set(segment)) {
      case SegmentTracker::Result::kDuplicate:
        ++counters.rx_duplicates;
        return Taken::kYes;
      case SegmentTracker::Result::kOutOfWindow:
        ++counters.rx_out_of_window;
        return Taken::kNo;
      case SegmentTracker::Result::kNew:
        break;
    }
  }
  if (message->fragments != nullptr) ForgetFragments(message, segment, stretch.size());
  message->next_segment = segment + stretch.size();
  message->next_offset = offset + stretch.size() * segment_bytes;
  message->in_order &= offset == message->arrived_bytes;
  if (bytes > 0) {
    CountArrived(message, uint64_t{bytes} * stretch.size());
    if (!PlaceSegments(message, stretch)) return Taken::kNo;
  }
  MaybeComplete(message);
  return Taken::kYes;
}

// Whole segments of it have.
void Receiver::CountArrived(RxMessage* message, uint64_t bytes) {
  message->arrived_bytes += bytes;
  expected_bytes_ -= bytes;
  context_->counters.rx_data_bytes += bytes;
  // A send that was put off stays to be cleared until it is whole: its "not ready" may reach the sender late. So does
  // one that a card places: its key may change.
  if (!message->not_ready && !message->placed_by_lane) message->clear_link.Unlink();
}

// Its bytes are placed as they come; the segment counts as arrived once it is whole.
Receiver::Taken Receiver::HandleFragment(RxMessage* message, Stretch fragment) {
  EndpointCounters& counters = context_->counters;
  const uint64_t segment_bytes = peer_->segment_bytes;
  const uint64_t offset = fragment.front().stamp.offset, segment = offset / segment_bytes;
  if (message->segments.Test(segment)) {
    ++counters.rx_duplicates;
    return Taken::kYes;
  }
  if (!message->segments.Reaches(segment)) {
    ++counters.rx_out_of_window;
    return Taken::kNo;
  }
  if (message->fragments == nullptr) message->fragments = std::make_unique<FragmentTracker>(peer_->segment_bytes);
  FragmentTracker& fragments = *message->fragments;
  const size_t others = fragmented_segments_ - fragments.size();
  const auto result =
      fragments.Add(offset, fragment.front().payload_bytes, message->length, limits::kMaxFragmentedSegments - others);
  fragmented_segments_ = others + fragments.size();
  if (result == FragmentTracker::Result::kFull) {
    ++counters.rx_out_of_window;
    return Taken::kNo;
  }
  if (result == FragmentTracker::Result::kDuplicate) {
    ++counters.rx_duplicates;
    return Taken::kYes;
  }
  message->in_order = false;
  if (!PlaceSegments(message, fragment)) return Taken::kNo;
  if (result == FragmentTracker::Result::kWhole) {
    message->segments.Set(segment);
    CountArrived(message, std::min(segment_bytes, message->length - segment * segment_bytes));
    MaybeComplete(message);
  }
  return Taken::kYes;
}

void Receiver::ForgetFragments(RxMessage* message, uint64_t segment, uint64_t count) {
  fragmented_segments_ -= message->fragments->size();
  message->fragments->Forget(segment, count);
  fragmented_segments_ += message->fragments->size();
}

PlacementGuess Receiver::GuessPlacement(uint32_t message_bits) const {
  const uint64_t number = Unwrap(message_bits, messages_.begin());
  const RxMessage* message = messages_.Contains(number) ? messages_[number].message : nullptr;
  if (message == nullptr || !message->in_order) return {};
  uint8_t* const place = PlaceOf(*message);
  const uint64_t end = std::min(message->length, message->target_bytes);
  if (place == nullptr || end <= message->arrived_bytes) return {};
  PlacementGuess guess;
  guess.to = place + message->arrived_bytes;
  guess.payload_bytes = peer_->segment_bytes;
  guess.packets = static_cast<uint32_t>(
      std::min<uint64_t>((end - message->arrived_bytes) / peer_->segment_bytes, TxBurst::kSegments));
  return guess;
}

const uint8_t* Receiver::PlaceOf(const wire::DataHeader& header) const {
  const uint64_t number = Unwrap(header.message, messages_.begin());
  const RxMessage* message = messages_.Contains(number) ? messages_[number].message : nullptr;
  return message == nullptr || message->kind != header.kind ? nullptr : PlaceOf(*message);
}

// Where its payload begins to go; nullptr where what does not belong there must not stand either. That is so of memory
// which peers write to, as its owner may look at it at any time.
uint8_t* Receiver::PlaceOf(const RxMessage& message) const {
  const bool is_private = message.kind == MessageKind::kSend
                              ? message.receive != nullptr
                              : message.kind == MessageKind::kReadResponse && FindRequest(message.request) != nullptr;
  const bool taken = message.known && message.accepted && !message.failed && !message.discard && !message.spoilt;
  if (!is_private || !taken || message.target_device != kNoDevice || context_->options.ordered_placement)
    return nullptr;
  return message.target;
}

// False: it cannot be put there.
bool Receiver::Place(RxMessage* message, uint64_t offset, const uint8_t* bytes, uint64_t count) {
  if (message->target == nullptr || offset >= message->target_bytes) return true;
  const uint64_t fits = std::min(count, message->target_bytes - offset);
  if (message->target_device != kNoDevice) {
    message->spoilt = !context_->device_copies.ToDevice(peer_->local_connection, message->target_device,
                                                        message->target + offset, bytes, fits);
    return !message->spoilt;
  }
  if (context_->options.ordered_placement) {
    OrderedCopy(message->target + offset, bytes, fits);
  } else {
    std::memcpy(message->target + offset, bytes, fits);
  }
  return true;
}

// To where the message goes, or where it waits for its receive. False: a segment cannot be put there.
bool Receiver::PlaceSegments(RxMessage* message, Stretch stretch) {
  if (stretch.front().payload == nullptr) return true;  // phantoms
  uint8_t* to = nullptr;  // of the message's begin, where all of the stretch has a place and a plain copy will do
  if (message->receive == nullptr && message->kind == MessageKind::kSend && !message->discard) {
    if (message->bounce == nullptr) message->bounce = std::make_unique_for_overwrite<uint8_t[]>(message->length);
    to = message->bounce.get();
  } else if (message->target_device == kNoDevice && !context_->options.ordered_placement &&
             stretch.back().stamp.offset + stretch.back().payload_bytes <= message->target_bytes) {
    to = message->target;
    if (to != nullptr && to + stretch.front().stamp.offset == stretch.front().payload)
      return true;  // as all of it does
  }
  for (const Arrival& arrival : stretch) {
    if (to != nullptr) {
      std::memcpy(to + arrival.stamp.offset, arrival.payload, arrival.payload_bytes);
    } else if (!Place(message, arrival.stamp.offset, arrival.payload, arrival.payload_bytes)) {
      return false;
    }
  }
  return true;
}

// A segment of it can be taken now.
bool Receiver::TakesSegments(RxMessage* message) {
  if (!message->accepted && !Store(message)) {
    ++context_->counters.rx_no_memory;
    // Also when its turn has not come: sent again and again, it could keep the window from the send whose turn it is.
    message->not_ready |= SayNotReady(message->number);
    return false;
  }
  if (message->spoilt) return false;
  // A peer that answers twice does not write into what the first answer gave back.
  if (message->kind == MessageKind::kReadResponse && FindRequest(message->request) == nullptr) {
    message->discard = true;
    message->target = nullptr;
    message->target_bytes = 0;
  }
  return true;
}

// ---- completion

void Receiver::MaybeComplete(RxMessage* message) {
  const bool all = CarriesPayload(message->kind) && message->length > 0 ? message->arrived_bytes >= message->length
                                                                        : message->segments.complete();
  if (all && !message->spoilt) Complete(message);
}

void Receiver::Complete(RxMessage* message) {
  const uint64_t number = message->number;
  if (message->asks_for_ack || message->length >= context_->options.prompt_ack_bytes) prompt_ack_ = true;
  switch (message->kind) {
    case MessageKind::kSend:
      if (message->receive == nullptr) {
        // Keeps its place among the stored sends; on the wire it is done.
        message->stored = true;
        messages_[number].message = nullptr;
        EndStoredRendezvous(message);
        MarkDone(number);
        return;
      }
      CompleteReceive(message);
      break;
    case MessageKind::kWrite:
    case MessageKind::kAnnounce:
      ++context_->counters.rx_writes;
      Tell(message, message->has_immediate ? Operation::kWriteImmediate : Operation::kWrite);
      break;
    case MessageKind::kReadRequest:
    case MessageKind::kFetchAdd:
    case MessageKind::kCompareSwap:
      ExecuteRequest(message);
      if (message->failed) return;
      break;
    case MessageKind::kAtomic:
      ExecuteAtomic(message);
      if (message->failed) return;
      break;
    case MessageKind::kReadResponse:
    case MessageKind::kAtomicResponse:
    case MessageKind::kFailure:
      FinishAnswer(message);
      break;
    case MessageKind::kProbe:
    case MessageKind::kBundle:
      break;
  }
  messages_[number].message = nullptr;
  Delete(message);
  MarkDone(number);
}

void Receiver::CompleteReceive(RxMessage* message) {
  CompleteReceive(std::exchange(message->receive, nullptr), {.has_immediate = message->has_immediate,
                                                             .bytes = message->length,
                                                             .tag = message->tag,
                                                             .immediate = message->immediate});
  --matched_;
}

// `outcome` says what the message was.
void Receiver::CompleteReceive(PostedReceive* receive, Completion&& outcome) {
  if (outcome.bytes > receive->buffer.bytes) outcome.status = OperationStatus::kTruncated;
  outcome.connection = peer_->local_connection;
  context_->EndReceive(receive, std::move(outcome));
}

// The owner of the memory hears of what the peer has done there.
void Receiver::Tell(RxMessage* message, Operation operation) {
  if (!std::exchange(message->tells, false)) return;
  const Region* region = context_->memory.CheckRemote(message->remote_key, message->remote_offset, 0, kRemoteEvents,
                                                      peer_->local_connection);
  const bool is_word = operation == Operation::kFetchAdd || operation == Operation::kCompareSwap;
  const bool is_vector = operation == Operation::kAtomic;
  context_->completions.EndForPeer();
  context_->Complete({.operation = operation,
                      .has_immediate = message->has_immediate,
                      .connection = peer_->local_connection,
                      .bytes = is_vector ? message->elements * SizeOf(message->atomic_type)
                               : is_word ? sizeof(uint64_t)
                                         : message->length,
                      .immediate = message->immediate,
                      .region = region == nullptr ? kUnregistered : region->id,
                      .fetched = is_word || message->fetch});
}

// The message stays, refusing its packets, until the refusal has reached the peer: an acknowledgement could overtake
// it.
void Receiver::Refuse(RxMessage* message, OperationStatus status) {
  if (std::exchange(message->tells, false)) context_->completions.UnreserveForPeer();
  ++context_->counters.rx_refused;
  message->failed = true;
  ++open_failures_;
  PostAnswer(message, MessageKind::kFailure, static_cast<uint64_t>(status), nullptr, 0, kUnregistered);
}

// A write that had been accepted.
void Receiver::RefuseWrite(RxMessage* message) {
  expected_bytes_ -= message->length - message->arrived_bytes;
  demand_changed_ = true;
  Refuse(message, OperationStatus::kRemoteAccess);
}

// A send that no receive will take any more.
void Receiver::RefuseSend(RxMessage* message) {
  if (message->stored) return Delete(message);  // its sender has its completion
  if (message->accepted) expected_bytes_ -= message->length - message->arrived_bytes;
  message->clear_link.Unlink();
  FreeBounce(message);
  demand_changed_ = true;
  Refuse(message, OperationStatus::kConnectionClosed);
}

void Receiver::ReleaseRefused(const std::vector<uint32_t>& numbers) {
  for (const uint32_t bits : numbers) {
    const uint64_t number = Unwrap(bits, messages_.begin());
    if (!messages_.Contains(number)) continue;
    RxMessage* message = std::exchange(messages_[number].message, nullptr);
    if (message == nullptr || !message->failed) continue;
    --open_failures_;
    Delete(message);
    MarkDone(number);
  }
}

void Receiver::MarkDone(uint64_t number) {
  messages_[number].done = true;
  messages_.Ended(number);
}

// As the sender has, which knows that these are here: announced sends give their places in the window away.
bool Receiver::ParkUpTo(uint64_t number) {
  while (!messages_.Reaches(number)) {
    if (messages_.begin() == messages_.end()) return false;
    const RxMessage* oldest = messages_[messages_.begin()].message;
    if (oldest == nullptr || oldest->kind != MessageKind::kSend || !oldest->announced) return false;
    if (!messages_.ParkOldest()) return false;
  }
  return true;
}

void Receiver::Delete(RxMessage* message) {
  if (message->fragments != nullptr) fragmented_segments_ -= message->fragments->size();
  FreeBounce(message);
  context_->rx_messages.Delete(message);
}

}  // namespace paceline
