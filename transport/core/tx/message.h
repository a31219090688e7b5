// A message on its way out: a user's operation, or an answer to a request of the peer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "transport/base/intrusive_list.h"
#include "transport/core/types.h"
#include "transport/wire/packet.h"

namespace paceline {

// Where lanes with remote placement write to: what the peer told us of the memory, per port of the peer.
struct PlacementTarget {
  uint64_t address = 0;                            // of the message's first byte
  std::array<uint64_t, limits::kMaxPorts> keys{};  // 0: that port cannot place into it
};

// A list of packets by their sequence numbers, linked through the outstanding window.
struct PsnList {
  static constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t head = kNone, tail = kNone;
  bool empty() const { return head == kNone; }
};

struct TxMessage {
  enum class State : uint8_t {
    kQueued,    // posted, has no number yet: may be cancelled
    kWaiting,   // announced; waits until the peer clears it
    kSending,   // has segments that were never sent
    kInFlight,  // everything was sent once; waits for acknowledgements (and for the answer)
  };

  ListLink link;           // in the sender's list of its state
  ListLink announce_link;  // in the list of those whose announcement is to be sent
  State state = State::kQueued;
  wire::MessageKind kind = wire::MessageKind::kSend;
  Operation operation = Operation::kSend;
  bool reports = true;  // ends in a completion of the user (answers do not)
  bool has_immediate = false;
  bool to_receive = false;           // a send that waits for its receive, however short
  bool asks_for_ack = false;         // its last packet asks for an acknowledgement at once
  bool held = false;                 // the peer was not ready: nothing goes out until it is cleared by name
  bool announced = false;            // an announcement was sent at least once
  bool bundled = false;              // went with others in the packet that it went in last
  bool fragmented = false;           // a segment of it went in several packets
  bool wants_answer = false;         // request: complete when the answer has come
  bool counts_announcement = false;  // the announcement must be acknowledged too (placed writes)
  bool announcement_acked = false;
  uint64_t number = 0;                     // message number of this direction
  uint64_t match_sequence = 0;             // sends
  const uint8_t* data = nullptr;           // nullptr with payload_bytes > 0: phantom
  uint64_t payload_bytes = 0;              // that travel in this message
  uint64_t length = 0;                     // in the header: payload, or what a read asks for
  uint64_t next_offset = 0;                // first byte never sent
  uint64_t segments_left = 0;              // not yet acknowledged
  bool single = false;                     // one segment is all of it
  PsnList held_packets;                    // lost while held
  uint64_t announced_by = PsnList::kNone;  // newest packet that did; the one before it is `next` of its entry
  uint64_t tag = 0;
  uint64_t remote_key = 0, remote_offset = 0;
  uint64_t immediate = 0, operand = 0, compare = 0;
  AtomicOp atomic_op = AtomicOp::kMin;
  AtomicType atomic_type = AtomicType::kInt8;
  uint32_t elements = 0;                 // atomics on vectors
  std::unique_ptr<uint8_t[]> own_bytes;  // `data` is here: atomics on vectors, and their answers
  uint32_t request = 0;                  // answers: low bits of the request's number
  uint64_t value = 0;                    // answers
  uint64_t answer_bytes = 0;             // requests: length of the payload that answers them
  uint8_t* answer_buffer = nullptr;      // where it goes
  RegionId region = kUnregistered;       // of the local buffer
  int device = kNoDevice;                // the GPU in whose memory that is
  bool stays = false;                    // `data` does, and is registered: see TxSegment::payload_stays
  bool tells = false;                    // answers: ends in a completion that tells of the read
  uint64_t user_data = 0;
  OperationId operation_id = 0;
  uint64_t sequence = 0;           // of the operation in posting order; kFlush: how many were posted before it
  uint64_t unfinished_before = 0;  // kFlush: of those since the flush before it
  uint64_t last_psn = 0;           // of the newest packet
  std::unique_ptr<PlacementTarget> placement;

  uint64_t unsent_bytes() const { return payload_bytes - next_offset; }
};

}  // namespace paceline
