// A message on its way in, and a receive that waits for one.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/base/intrusive_list.h"
#include "transport/core/rx/fragment_tracker.h"
#include "transport/core/rx/segment_tracker.h"
#include "transport/core/types.h"
#include "transport/wire/packet.h"

namespace paceline {

class Receiver;

struct PostedReceive {
  ListLink link;  // in posting order
  LocalBuffer buffer;
  uint64_t tag = 0, ignore = 0;
  uint64_t user_data = 0;
  OperationId operation_id = 0;
  Source source = kAnySource;
  // A buffer for many sends: each that it meets gets a part, which is a receive of its own.
  uint64_t min_free = 0;           // of a whole
  uint64_t used = 0;               // of a whole: bytes given to parts
  uint32_t parts = 0;              // of a whole: not complete
  bool retired = false;            // of a whole: takes no more
  bool cancelled = false;          // of a whole: has its completion
  PostedReceive* whole = nullptr;  // of a part
};

struct RxMessage {
  ListLink link;        // sends that met no receive yet, in matching order
  ListLink clear_link;  // sends cleared by name whose data has not come yet
  wire::MessageKind kind = wire::MessageKind::kSend;
  Receiver* receiver = nullptr;  // of its connection
  Source source = kAnySource;    // its name
  uint64_t claimed = 0;          // not 0: kept for the receive that names it
  uint64_t number = 0;           // message number of the peer's direction
  uint64_t match_sequence = 0;
  uint64_t length = 0;
  uint64_t arrived_bytes = 0;  // distinct
  uint64_t next_segment = 0;   // behind the one that came last: its number,
  uint64_t next_offset = 0;    // and where it begins
  SegmentTracker segments;
  std::unique_ptr<FragmentTracker> fragments;  // made with the first
  bool in_order = true;                        // arrived_bytes are the first ones
  bool known = false;                          // a header of it was seen (placed writes may come first)
  bool accepted = false;                       // has a place for its payload and counts as demand
  uint8_t told_ports = 0;                      // cleared by name: ports whose grant frames have said so
  bool not_ready = false;                      // the sender was told to hold it
  bool announced = false;                      // the sender asked before sending (rendezvous)
  bool failed = false;                         // refused: answered by a failure, nothing more is placed
  bool stored_rendezvous = false;              // met no receive yet, and is to be cleared by name
  bool stored = false;                         // arrived in full before its receive; its number is done
  bool asks_for_ack = false;                   // a packet of it did: that it is whole is said at once
  bool has_immediate = false;
  bool tells = false;  // ends in a completion here: written with an immediate, or in a region with kRemoteEvents
  uint64_t tag = 0, immediate = 0;
  uint64_t remote_key = 0, remote_offset = 0;
  uint32_t request = 0;  // answers: the request of ours
  uint64_t value = 0, operand = 0, compare = 0;
  AtomicOp atomic_op = AtomicOp::kMin;
  AtomicType atomic_type = AtomicType::kInt8;
  bool fetch = false;
  uint32_t elements = 0;
  PostedReceive* receive = nullptr;   // owned once matched
  uint8_t* target = nullptr;          // where payload goes; nullptr: phantom, or nowhere (see discard)
  int target_device = kNoDevice;      // the GPU whose memory that is
  bool spoilt = false;                // a copy there has failed: it never completes, and its connection ends
  uint64_t target_bytes = 0;          // room there; the rest of a longer message is dropped (truncation)
  bool discard = false;               // acknowledged but not kept: its request is gone
  bool placed_by_lane = false;        // remote placement: the sender was given the buffer's key
  uint64_t early_placed = 0;          // bytes placed before `known`
  std::unique_ptr<uint8_t[]> bounce;  // payload that came before its receive; operands of an atomic
  uint64_t bounce_bytes = 0;          // charged to the endpoint's bound
};

}  // namespace paceline
