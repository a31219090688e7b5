// Paceline's C++ API: a context with its listeners, connections, memory and completions.
//
//   auto context = Context::Create(*ContextOptions::FromEnvironment());
//   auto listener = context->Listen();              // one side; its handle() goes to the other by any means
//   auto connection = context->Connect(handle);     // the other side
//   connection->Send({data, bytes}, tag, user_data);
//   Completion done; while (context->completions().Poll(&done, 1) == 0) {}
//
// Nothing here blocks but Wait and the calls that take a time-out. Nothing throws; a wrong use is answered by a status.
//
// Thread rule: with ProgressMode::kManual one thread at a time per context, all of its objects included; with kThread
// any thread, at any time. Only Interrupt() may always come from any thread.
// Ownership: Listener and Connection keep their context alive; they are movable, not copyable. Buffers stay the
// caller's and must outlive their operation's completion (or the context).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "paceline/counters.h"
#include "paceline/options.h"
#include "paceline/status.h"
#include "paceline/types.h"

namespace paceline::api {

class ContextEngine;
class ContextImpl;

class ReceiveQueue;

// How a connection differs from the usual.
struct ConnectOptions {
  const ReceiveQueue* receives = nullptr;  // sends of the peer meet receives posted there, not those of the connection
  Source source = kAnySource;              // the peer's name there
  std::span<const uint8_t> private_data;   // at most 128 bytes for who accepts: Connection::private_data
};

// How a listener, or the connections that it takes, differ from the usual.
struct ListenOptions {
  const ReceiveQueue* receives = nullptr;
  uint64_t service = 0;  // not 0: part of the handle instead of a random number, so that the handle can be known ahead
};

// A connection to one peer. Its destructor closes it in order, in the background.
class Connection {
 public:
  Connection() = default;
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  uint32_t id() const { return id_; }  // as in Completion::connection; never 0
  bool valid() const { return engine_ != nullptr; }
  ConnectionState state() const;
  // Once kClosed: why. For programs; and for people, with details ("refused: nobody listens there"), empty before.
  CloseCode close_code() const;
  std::string close_reason() const;
  // What who connected has given along; empty at the connecting side.
  std::vector<uint8_t> private_data() const;
  // Names the peer of a connection that shares a receive queue, also for what has come and met no receive yet.
  void SetSource(Source source);

  // Makes progress until established: kUnavailable with the reason when it closed instead, kTimedOut.
  Status WaitEstablished(std::chrono::nanoseconds timeout);

  // Posts: `id` may be nullptr. Each operation that answers kOk gets exactly one completion.
  PostResult Send(Buffer buffer, uint64_t tag, uint64_t user_data, OperationId* id = nullptr);
  PostResult SendImmediate(Buffer buffer, uint64_t tag, uint64_t immediate, uint64_t user_data,
                           OperationId* id = nullptr);
  // As Send, or SendImmediate, of bytes that are a copy: nobody waits for the completion, so that `prompt_acks` does
  // not hurry it.
  PostResult SendCopied(Buffer buffer, uint64_t tag, std::optional<uint64_t> immediate, uint64_t user_data,
                        OperationId* id = nullptr);
  // Completes only when the bytes are in the buffer of a receive of the peer, also of a short send, for a round trip
  // more. A send of 0 bytes: as Send.
  PostResult SendToReceive(Buffer buffer, uint64_t tag, std::optional<uint64_t> immediate, uint64_t user_data,
                           OperationId* id = nullptr);
  // Takes the first message, in the order in which they were sent, whose tag equals `tag` in all bits not set in
  // `ignore`. kInvalidArgument: the connection shares a receive queue.
  PostResult Receive(Buffer buffer, uint64_t tag, uint64_t ignore, uint64_t user_data, OperationId* id = nullptr);
  PostResult Write(Buffer buffer, const RemoteMemory& remote, uint64_t remote_offset, uint64_t user_data,
                   OperationId* id = nullptr);
  // The peer gets a completion with the immediate when all bytes are in place.
  PostResult WriteImmediate(Buffer buffer, const RemoteMemory& remote, uint64_t remote_offset, uint64_t immediate,
                            uint64_t user_data, OperationId* id = nullptr);
  PostResult Read(Buffer buffer, const RemoteMemory& remote, uint64_t remote_offset, uint64_t user_data,
                  OperationId* id = nullptr);
  // Atomics work on 8 aligned bytes; the value before comes back in Completion::result.
  PostResult FetchAdd(const RemoteMemory& remote, uint64_t remote_offset, uint64_t add, uint64_t user_data,
                      OperationId* id = nullptr);
  PostResult CompareSwap(const RemoteMemory& remote, uint64_t remote_offset, uint64_t compare, uint64_t swap,
                         uint64_t user_data, OperationId* id = nullptr);
  // Elements of any type, each of which changes atomically; aligned to their size, complex ones to that of their parts.
  // Elements of 8 bytes or less that are not complex: towards all who use atomic instructions there; others: towards
  // operations that come through the same context of the peer. kInvalidArgument: not a valid operation, or the peer's
  // version does not know it.
  PostResult PostAtomic(const Atomic& atomic, const RemoteMemory& remote, uint64_t remote_offset, uint64_t user_data,
                        OperationId* id = nullptr);
  // Completes when everything posted before on this connection is complete.
  PostResult Flush(uint64_t user_data, OperationId* id = nullptr);
  // True: the operation will complete with kCancelled. False: too late, it completes as usual.
  bool Cancel(OperationId id);

  // Orderly: what was posted before is carried out, receives end with kConnectionClosed.
  void Close();
  // At once: every operation left ends with kConnectionClosed.
  void Abort();

 private:
  friend class Context;
  friend class Listener;
  Connection(std::shared_ptr<ContextEngine> engine, uint32_t id);
  std::shared_ptr<ContextEngine> engine_;  // keeps the whole context alive
  uint32_t id_ = 0;
};

// Receives that several connections share, as a shared receive queue of verbs: a send of any of them takes the first
// receive, in posting order, that matches. Operations complete in the context's queue; their buffers are as for
// Connection::Receive. One that names its source and stands ready lets long sends of it come without asking first, as a
// receive on a connection does. It lies on one engine, as do the connections that use it. Its destructor aborts the
// connections that still use it and cancels its receives.
class ReceiveQueue {
 public:
  ReceiveQueue() = default;
  ReceiveQueue(ReceiveQueue&&) noexcept;
  ReceiveQueue& operator=(ReceiveQueue&&) noexcept;
  ~ReceiveQueue();

  PostResult Receive(Buffer buffer, const Match& match, uint64_t user_data, OperationId* id = nullptr);
  // The buffer takes one send after the other, each with a completion that says where it lies, until fewer than
  // `min_free` (1 or more) bytes are left: the last one's completion says `released`. A cancelled one whose buffer
  // some sends have not filled yet is told so without `released`, which the last of these says.
  PostResult ReceiveMany(Buffer buffer, const Match& match, uint64_t min_free, uint64_t user_data,
                         OperationId* id = nullptr);
  // Receives what Peek has claimed. kInvalidArgument: its connection is gone.
  PostResult ReceiveClaimed(Buffer buffer, uint64_t claim, uint64_t user_data, OperationId* id = nullptr);
  // The first send that such a receive would take now. `claim`: it then waits for ReceiveClaimed.
  std::optional<WaitingSend> Peek(const Match& match, bool claim);
  // True: the receive will complete with kCancelled. False: too late.
  bool Cancel(OperationId id);
  // The peer is gone: receives that name this source end with kPeerLost.
  void FailReceivesFrom(Source source);

 private:
  friend class Context;
  ReceiveQueue(std::shared_ptr<ContextEngine> engine, uint32_t id);
  std::shared_ptr<ContextEngine> engine_;  // keeps the whole context alive
  uint32_t id_ = 0;
};

// Takes connection requests. Its destructor stops that; connections made by it live on.
class Listener {
 public:
  Listener() = default;
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  Handle handle() const;
  // The next request, accepted; nothing when there is none yet. The connection is kConnecting at first.
  std::optional<Connection> Accept();
  // Makes progress until a request is there and its connection established.
  Result<Connection> WaitAccept(std::chrono::nanoseconds timeout);

 private:
  friend class Context;
  Listener(std::shared_ptr<ContextImpl> impl, uint32_t id);
  std::shared_ptr<ContextImpl> impl_;
  uint32_t id_ = 0;
};

// The completions of a context, in the order in which they happened; with several engines in that of each, which is
// that of each connection.
class CompletionQueue {
 public:
  // Takes up to `room` completions, returns how many. With manual progress a call that finds none makes progress: once,
  // and again while data move and none is there (a few passes at most).
  size_t Poll(Completion* out, size_t room);

  // For event loops: once Arm() has answered true, descriptor() becomes readable when there is something to do (a
  // completion, a connection event, or with manual progress anything to be moved): then Poll, or Context::Progress,
  // until nothing comes. False: there is something already.
  bool Arm();
  int descriptor() const;

 private:
  friend class ContextImpl;
  explicit CompletionQueue(ContextImpl* impl) : impl_(impl) {}
  ContextImpl* impl_;
};

class Context {
 public:
  // Fails with a message that names the option at fault and what it may be.
  static Result<Context> Create(const ContextOptions& options);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  // Closes every connection in order, carrying out what was posted and answering the peers, for at most
  // ContextOptions::linger_ms; then ends what is left at once. Listener and Connection objects that still live keep the
  // context alive until the last of them is gone.
  ~Context();

  // Memory: registers [base, base + bytes). Local buffers need no registration on packet lanes, but gain from it on
  // others.
  Result<RegionId> RegisterMemory(void* base, uint64_t bytes, uint8_t access);
  // The same for one peer alone: keys of this region are refused to all others.
  Result<RegionId> RegisterMemoryFor(const Connection& connection, void* base, uint64_t bytes, uint8_t access);
  // The same under a key of the application's choice, as guessable as that is, for peers that know it by agreement:
  // they reach it with RemoteMemory{.key = key, .bytes = ~0}. Their offsets count from `origin` at the first byte.
  Result<RegionId> RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes, uint8_t access);
  // The same for memory of a GPU, at the address by which the CUDA driver knows it, on lanes whose cards read and write
  // it by themselves (`verbs`), or read what is sent (`dpdk` with card_reads=1; no checksum of ours is over that). What
  // must go as packets otherwise (encrypted connections, receives whose memory the peer's card does not know, answers
  // to reads of peers, over `dpdk` all that comes) is copied, packet by packet, and progress waits for each copy: where
  // that is the rule it is better to stage. A copy that fails ends its connection: operations end with
  // kConnectionClosed. Over `verbs` a send of 1 byte or more from it completes only when it is in the buffer of a
  // receive. Over `dpdk` what operations that end with kConnectionClosed had sent may still be in the card's queue:
  // leave the memory as it is until the context has ended. Received, read or written means that the card, or the CUDA
  // driver, has written it. Whether kernels see that without a flush the GPU says
  // (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING); to flush (cuFlushGPUDirectRDMAWrites) is up to the caller.
  // kInvalidArgument: kRemoteAtomic, which GPU memory here does not have, or values that make no sense. kUnavailable:
  // no driver, the GPU's primary context is not there (it is the program's to make), or the driver cannot copy.
  // kUnimplemented: no card of this context takes the memory; the message says why.
  Result<RegionId> RegisterDeviceMemory(void* base, uint64_t bytes, uint8_t access, const DeviceMemory& memory);
  // At once: what arrives later for it is refused, and writes and reads of peers that are under way end for them with
  // kRemoteAccess. A connection with operations of its own that still use the region is aborted: they end with
  // kConnectionClosed.
  void DeregisterMemory(RegionId region);
  // For peers; key 0: no such region. Where the context has several engines, cards of peers do not write it by
  // themselves: the second one says what the peer at the end of that connection, and no other, needs for that.
  RemoteMemory ExportMemory(RegionId region) const;
  RemoteMemory ExportMemoryFor(const Connection& connection, RegionId region) const;

  ReceiveQueue NewReceiveQueue();
  // 1024 requests to connect wait for Accept, over all listeners of an engine; clients beyond that ask again until
  // their connect_timeout_ms ends. kAlreadyExists: there is a listener with this service. kInvalidArgument: the receive
  // queue is another context's.
  Result<Listener> Listen(const ListenOptions& options = {});
  // Starts to connect; state() of the connection tells how it goes. Fails on a damaged handle, a receive queue of
  // another context, or at the bound.
  Result<Connection> Connect(const Handle& handle, const ConnectOptions& options = {});

  CompletionQueue& completions();

  // More processes of this job run on this machine than it has cores for them (ContextOptions::local_ranks): who waits
  // by looking again and again should let others run in between.
  bool crowded() const;

  // Manual progress: one pass. True if it moved anything. With a progress thread: false.
  bool Progress();
  // Manual progress: what was posted leaves now, and what is owed for what has arrived (acknowledgements, credit), as
  // far as it may; nothing is looked for. For who has what it waited for and may not call again soon: cheaper than
  // Progress, as no lane is asked. With a progress thread: does nothing.
  void Transmit();
  // Makes progress, adaptively spinning, yielding and sleeping, until a completion or a connection event is there, at
  // most for `timeout`. True if one is there.
  bool Wait(std::chrono::nanoseconds timeout);
  // Ends a Wait that is going on or comes next. From any thread.
  void Interrupt();

  // All counters now: of the endpoint, and of each port with the prefix "port0_", ... Of several engines the endpoints'
  // are added up, and the ports numbered one engine behind the other.
  std::vector<Counter> counters() const;
  // Name of this context's counters page (paceline/counters.h); empty without one. Of several engines each has one:
  // that of the first.
  std::string counters_page() const;
  // One per port: "udp:lo 127.0.0.1:40001".
  std::vector<std::string> lanes() const;
  // Bytes of memory that this connection holds in the core now.
  size_t MemoryOf(const Connection& connection) const;

 private:
  explicit Context(std::shared_ptr<ContextImpl> impl);
  std::shared_ptr<ContextImpl> impl_;
};

// "0.1.0".
const char* Version();

}  // namespace paceline::api
