// The vocabulary of operations: buffers, completions, what each completion means. Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace paceline::api {

// ---- memory

// A region registered with a context. 0: not registered, which local buffers of every operation may be.
using RegionId = uint32_t;

enum Access : uint8_t {  // what a peer may do with a region; bits
  kLocalOnly = 0,
  kRemoteRead = 1,
  kRemoteWrite = 2,
  kRemoteAtomic = 4,
  kRemoteEvents = 8,  // the owner gets a completion for each access of a peer: Completion::remote_region
};

// Memory of a GPU, beside its address.
struct DeviceMemory {
  int ordinal = 0;  // of the GPU, as the CUDA driver counts them in this process
  // A descriptor of a dma-buf that holds the memory (cuMemGetHandleForAddressRange), and where in it the first byte
  // lies. It stays the caller's, who may close it once the memory is registered. -1: none; then the kernel must know
  // the address (nvidia_peermem).
  int dma_buf = -1;
  uint64_t dma_buf_offset = 0;
};

// What a peer needs to reach a region. Plain bytes: copy them to the peer by any means (both little endian).
struct RemoteMemory {
  uint64_t key = 0;
  uint64_t bytes = 0;
  uint64_t lane_base = 0;
  std::array<uint64_t, 8> lane_keys{};
};

// Local memory of an operation: valid until its completion, and for receives and reads untouched by the caller until
// then; what has not been filled yet may hold anything meanwhile.
struct Buffer {
  void* data = nullptr;
  uint64_t bytes = 0;
  RegionId region = 0;
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
const char* OperationName(Operation operation);

using OperationId = uint64_t;

// What an atomic does to each element t of its target, given an operand o and, for the last seven, a compare c.
// Integers wrap. Bits and masks are for integers; what needs an order is not for complex numbers.
enum class AtomicOp : uint8_t {
  kMin,
  kMax,
  kSum,
  kProduct,
  kLogicalOr,  // the result is 0 or 1
  kLogicalAnd,
  kBitOr,
  kBitAnd,
  kLogicalXor,
  kBitXor,
  kRead,         // no operand
  kWrite,        // t = o
  kSwapIfEqual,  // t = o if c == t; the following likewise
  kSwapIfNotEqual,
  kSwapIfLessOrEqual,  // c <= t
  kSwapIfLess,
  kSwapIfGreaterOrEqual,
  kSwapIfGreater,
  kMaskedSwap,  // t = (o & c) | (t & ~c)
};

enum class AtomicType : uint8_t {
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat,
  kDouble,
  kFloatComplex,
  kDoubleComplex,
  kLongDouble,  // where it is x87's, 16 bytes each
  kLongDoubleComplex,
};

inline constexpr size_t kMaxAtomicBytes = 1024;  // of all elements of one atomic

struct Atomic {
  AtomicOp op = AtomicOp::kSum;
  AtomicType type = AtomicType::kUint64;
  uint32_t elements = 1;           // 1 or more, together at most kMaxAtomicBytes
  const void* operands = nullptr;  // as many elements; the caller's again at once
  const void* compares = nullptr;  // likewise, where the operation compares
  void* results = nullptr;         // gets the values before, until the completion; nullptr: not wanted
};
// Bytes of one element; and whether such an operation is possible, here and at a peer of the same kind of machine.
size_t AtomicElementBytes(AtomicType type);
bool IsAtomicValid(AtomicOp op, AtomicType type);

// What the application calls a peer among those whose connections share a receive queue.
using Source = uint64_t;
inline constexpr Source kAnySource = ~0ull;  // of a receive: from everybody; of a connection: not named (yet)

// Which sends a receive of a queue takes.
struct Match {
  uint64_t tag = 0;
  uint64_t ignore = 0;         // tag bits that are not compared
  Source source = kAnySource;  // only from connections with this name
};

// A send that has met no receive yet, in a receive queue.
struct WaitingSend {
  uint32_t connection = 0;  // Connection::id()
  Source source = kAnySource;
  uint64_t bytes = 0;
  uint64_t tag = 0;
  uint64_t immediate = 0;
  bool has_immediate = false;
  uint64_t claim = 0;  // for ReceiveQueue::ReceiveClaimed; 0: not claimed
};

enum class PostResult : uint8_t {
  kOk,
  kTryAgain,         // a bound is reached: take completions, post again
  kNotConnected,     // unknown, not yet established, closed or lost
  kInvalidMemory,    // not registered, out of its bounds, or without the permission
  kInvalidArgument,  // too long, misaligned, ...
};
const char* PostResultName(PostResult result);

enum class OperationStatus : uint8_t {
  kOk,
  kCancelled,
  kTruncated,         // receive: the message was longer than the buffer, which holds its first bytes
  kRemoteAccess,      // the peer refused: unknown key, out of bounds, no permission
  kConnectionClosed,  // closed before the operation was done, by us or by the peer
  kPeerLost,          // the peer is silent: the operation may or may not have been carried out
  kRemoteError,       // the peer gave the operation up
};
const char* OperationStatusName(OperationStatus status);

// What a completion with kOk means:
//   send             the buffer may be reused; the peer's context holds every byte.
//   receive          every byte is in place.
//   write            every byte is in place at the peer.
//   write immediate  at its target (operation kWriteImmediate, user_data 0): every byte is in place.
//   read, atomics    the result is in place here.
//   flush            everything posted before on this connection is complete, with whatever status.
struct Completion {
  Operation operation = Operation::kSend;
  OperationStatus status = OperationStatus::kOk;
  bool has_immediate = false;
  bool released = true;     // false: the buffer of this receive is still written to (ReceiveQueue::ReceiveMany)
  uint32_t connection = 0;  // Connection::id()
  uint64_t user_data = 0;   // as given to the post
  uint64_t offset = 0;      // receives: where in the buffer the message starts
  uint64_t bytes = 0;       // transferred; receives: length of the message as sent
  uint64_t tag = 0;         // receives: the sender's tag
  uint64_t immediate = 0;
  uint64_t result = 0;  // atomics: the value before
  // What a peer has done in a region of ours with kRemoteEvents (user_data 0; operation kWrite, kWriteImmediate, kRead
  // or an atomic; a read is told when its answer has arrived): which region. Else 0.
  RegionId remote_region = 0;
  bool remote_fetch = false;  // of such an atomic: its values before went back
};

// ---- connections

// Where a listener can be reached: opaque bytes for the peer, carried there by any means.
struct Handle {
  static constexpr size_t kBytes = 128;
  std::array<uint8_t, kBytes> bytes{};
};

enum class ConnectionState : uint8_t {
  kConnecting,   // not yet: make progress
  kEstablished,  // operations may be posted
  kClosed,       // over, orderly or not; Connection::close_code() and close_reason() say why
};

// Why a connection is over. The numbers keep their meaning in later versions, which may add some.
enum class CloseCode : uint16_t {
  kNone = 0,  // it is not
  kByPeer = 1,
  kLocal = 2,              // closed or aborted here; also when a copy from or to memory of a GPU has failed
  kAborted = 3,            // by the peer
  kPeerLost = 4,           // no sign of life for the peer time-out
  kRefusedNoListener = 5,  // nobody listens there, or no longer
  kRefusedVersion = 6,     // the peer speaks another protocol version
  kRefusedMismatch = 7,    // the peer runs another congestion-control algorithm
  kRefusedFull = 8,        // the peer is at its bound of connections
  kRefusedByApplication = 9,
  kUnreachable = 10,  // never established: no answer for the connect time-out, or not accepted for four times that
  kProtocolError = 11,
  kRefusedKey = 12,      // another cluster key, or one of the two has none
  kRefusedNoRoute = 13,  // none of the peer's ports reaches one of ours
};
const char* CloseCodeName(CloseCode code);

}  // namespace paceline::api
