// The vocabulary of the core's callers: operations, completions, connection events, memory. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/base/atomic_operation.h"
#include "transport/base/limits.h"
#include "transport/base/private_data.h"
#include "transport/base/time.h"
#include "transport/lane/lane.h"

namespace paceline {

// A connection of this endpoint: slot and generation, never used again for another connection while anyone can hold it.
using ConnectionId = uint32_t;
inline constexpr ConnectionId kNoConnection = 0;

// A posted operation, for Cancel: never 0.
using OperationId = uint64_t;

// Receives that several connections share: sends of each of them meet what is posted there.
using ReceiveQueueId = uint32_t;
inline constexpr ReceiveQueueId kNoReceiveQueue = 0;

// What the application calls the peers of connections that share a receive queue, so that a receive may name one.
using Source = uint64_t;
inline constexpr Source kAnySource = ~0ull;  // of a receive: from everybody; of a connection: not named (yet)

// ---- memory

// A region registered with the endpoint. 0: not registered (allowed for local buffers of sends and receives in host
// memory).
using RegionId = uint32_t;
inline constexpr RegionId kUnregistered = 0;

enum class MemoryKind : uint8_t {
  kHost,     // plain bytes that this process can touch
  kDevice,   // bytes in a GPU: only cards and the driver's copies touch them
  kPhantom,  // a length without contents: simulated lanes carry only its size. Never on a real network.
};

enum Access : uint8_t {
  kLocalOnly = 0,
  kRemoteRead = 1,
  kRemoteWrite = 2,
  kRemoteAtomic = 4,
  kRemoteEvents = 8,  // the owner is told of each access of a peer by a completion
};

// What a peer needs to reach a region: exported by one side, carried by the application, given to operations of the
// other. Plain bytes (memcpy-able between processes of one byte order, little endian). `key` is random and unguessable.
struct RemoteMemory {
  uint64_t key = 0;
  uint64_t bytes = 0;
  uint64_t lane_base = 0;                               // address as lanes with remote placement know it
  std::array<uint64_t, limits::kMaxPorts> lane_keys{};  // per port of the owner; 0: that lane cannot place into it
};

// Local memory of an operation. The caller keeps it valid and (receives, reads) untouched until the completion.
struct LocalBuffer {
  void* data = nullptr;  // nullptr with bytes > 0 only inside a phantom region
  uint64_t bytes = 0;
  RegionId region = kUnregistered;
};

// ---- operations

enum class Operation : uint8_t {
  kSend,
  kReceive,
  kWrite,
  kWriteImmediate,
  kRead,
  kFetchAdd,
  kCompareSwap,
  kFlush,
  kAtomic
};
std::string_view OperationName(Operation operation);

struct SendRequest {
  LocalBuffer buffer;
  uint64_t tag = 0;
  uint64_t immediate = 0;  // delivered with the message when has_immediate
  bool has_immediate = false;
  bool to_receive = false;  // complete only when the bytes are in a receive's buffer; of 0 bytes: without effect
  bool awaited = true;      // false: nobody waits for the completion (EndpointOptions::prompt_acks)
  uint64_t user_data = 0;   // comes back in the completion
};

struct ReceiveRequest {
  LocalBuffer buffer;
  uint64_t tag = 0;
  uint64_t ignore = 0;  // tag bits that are not compared
  uint64_t user_data = 0;
  // Receive queues only:
  Source source = kAnySource;  // only sends of connections with this name
  uint64_t min_free = 0;       // not 0: the buffer takes one send after the other until fewer bytes than this are left
  uint64_t claimed = 0;        // not 0: the send that Peek has claimed, and no other
};

// A send that has met no receive yet, in a receive queue.
struct WaitingSend {
  ConnectionId connection = kNoConnection;
  Source source = kAnySource;
  uint64_t bytes = 0;
  uint64_t tag = 0;
  uint64_t immediate = 0;
  bool has_immediate = false;
  uint64_t claimed = 0;  // for ReceiveRequest::claimed
};

struct WriteRequest {
  LocalBuffer buffer;
  RemoteMemory remote;
  uint64_t remote_offset = 0;  // bytes from the start of the remote region
  uint64_t immediate = 0;
  bool has_immediate = false;  // the peer gets a completion with the immediate when all bytes are in place
  uint64_t user_data = 0;
};

struct ReadRequest {
  LocalBuffer buffer;
  RemoteMemory remote;
  uint64_t remote_offset = 0;
  uint64_t user_data = 0;
};

struct AtomicRequest {
  Operation operation = Operation::kFetchAdd;  // or kCompareSwap
  RemoteMemory remote;
  uint64_t remote_offset = 0;  // 8-byte aligned target
  uint64_t operand = 0;        // added, or swapped in
  uint64_t compare = 0;        // kCompareSwap
  uint64_t user_data = 0;      // the value before comes back in Completion::result
};

// An operation on a vector of elements, each of which changes atomically.
struct VectorAtomicRequest {
  AtomicOp op = AtomicOp::kSum;
  AtomicType type = AtomicType::kUint64;
  uint32_t elements = 0;           // 1 or more, together at most limits::kMaxAtomicBytes
  const void* operands = nullptr;  // copied; as many elements, unless the operation takes none
  const void* compares = nullptr;  // copied; operations of two vectors
  void* results = nullptr;         // gets the values before, until the completion; nullptr: not wanted
  RemoteMemory remote;
  uint64_t remote_offset = 0;  // of the first element; the target is aligned to the elements' size (complex: half)
  uint64_t user_data = 0;
};

struct FlushRequest {
  uint64_t user_data = 0;  // completes when everything posted before on this connection is complete
};

enum class PostResult : uint8_t {
  kOk,
  kTryAgain,           // a bound is reached: poll, take completions, post again
  kUnknownConnection,  // not established, closed or lost
  kInvalidMemory,      // not registered, out of its bounds, or without the permission
  kInvalidArgument,    // too long, misaligned, ...
};
std::string_view PostResultName(PostResult result);

enum class OperationStatus : uint8_t {
  kOk,
  kCancelled,         // by Cancel
  kTruncated,         // receive: the message was longer than the buffer; the buffer holds its first bytes
  kRemoteAccess,      // the peer refused: unknown key, out of bounds, no permission
  kConnectionClosed,  // closed or aborted before the operation was done, by us or by the peer
  kPeerLost,          // the peer has not answered for the time-out: it may or may not have been carried out
  kRemoteError,       // the peer gave the operation up (out of memory, cancelled, ...)
};
std::string_view OperationStatusName(OperationStatus status);

// What each completion means:
//   send              the buffer may be reused; the peer's core holds every byte (in its receive's buffer, or for an
//   eager
//                     send that met no receive yet in its store of unexpected messages).
//   receive           every byte is in place.
//   write             every byte is in place at the remote.
//   write immediate   at the target (operation kWriteImmediate, user_data 0): every byte is in place.
//   read, atomics     the result is in place here.
//   flush             everything posted before on this connection is complete (with whatever status).
struct Completion {
  Operation operation = Operation::kSend;
  OperationStatus status = OperationStatus::kOk;
  bool has_immediate = false;
  bool released = true;  // false: a receive whose buffer still takes sends, or parts of them (ReceiveRequest::min_free)
  ConnectionId connection = kNoConnection;
  uint64_t user_data = 0;
  uint64_t offset = 0;  // receives: where in the buffer the message starts
  uint64_t bytes = 0;   // transferred; receives: length of the message as sent
  uint64_t tag = 0;     // receives: the sender's tag
  uint64_t immediate = 0;
  uint64_t result = 0;  // atomics: the value before
  // What a peer has done in a region with kRemoteEvents (user_data 0; operation kWrite, kWriteImmediate, kRead,
  // kFetchAdd, kCompareSwap or kAtomic): which one. A read is told when its answer has arrived.
  RegionId region = kUnregistered;
  bool fetched = false;  // of such an atomic: its values before went back
};

// ---- connections

enum class CloseReason : uint16_t {
  kNone = 0,
  kByPeer = 1,             // orderly close
  kLocal = 2,              // we closed
  kAborted = 3,            // the peer aborted
  kPeerLost = 4,           // no sign of life for the time-out
  kRefusedNoListener = 5,  // nobody listens there (or no longer)
  kRefusedVersion = 6,     // the peer speaks another protocol version
  kRefusedMismatch = 7,    // the peer runs another congestion-control algorithm
  kRefusedFull = 8,        // the peer is at its bound of connections
  kRefusedByApplication = 9,
  kUnreachable = 10,     // no answer to the connection request for the time-out
  kProtocolError = 11,   // the peer broke the protocol
  kRefusedKey = 12,      // the peer has another cluster key, or one of the two has none
  kRefusedNoRoute = 13,  // none of the peer's ports reaches one of ours
};
std::string_view CloseReasonName(CloseReason reason);

// By what a region is known: here, and to peers.
struct RegionName {
  RegionId id = kUnregistered;
  uint64_t key = 0;
};

// How a new connection differs from the usual; of both sides.
struct ConnectionSetup {
  ReceiveQueueId receives = kNoReceiveQueue;  // where sends of the peer look for receives, instead of the connection
  Source source = kAnySource;                 // the peer's name there
};

// Where a listener can be reached: exported by the listening side, at most 128 bytes as a handle (see api). The nonce
// is random, so that a handle from an earlier run of the peer is refused.
struct ListenAddress {
  uint64_t nonce = 0;
  uint8_t ports = 0;
  std::array<LaneAddress, 4> addresses{};  // a handle names at most 4 ports; the rest is learned during set-up
};

enum class ConnectionEventKind : uint8_t {
  kRequest,      // somebody wants to connect to `listener`: Accept or Refuse `connection`
  kEstablished,  // operations may be posted
  kClosed,       // over; every operation left has its completion. `reason` says why. The id is dead after this.
};

struct ConnectionEvent {
  ConnectionEventKind kind = ConnectionEventKind::kClosed;
  ConnectionId connection = kNoConnection;
  uint32_t listener = 0;
  CloseReason reason = CloseReason::kNone;
  PrivateData private_data;  // kRequest: from who connects
  std::string detail;        // for people: "peer speaks version 2, we speak version 1"
};

}  // namespace paceline
