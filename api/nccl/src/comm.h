// A comm: one direction of traffic to one peer, on a connection of its own; a listener, from which receiving comms
// come; and the requests that NCCL polls.
//
// How NCCL's rules are met. Sends meet the receives of a group by tag, in posting order per tag: that is what the
// connection does with tags, so a slot of a group is a receive of its own, and equal tags take the slots in order. A
// send completes when its receive has it (ContextOptions::matched_sends), so that a sender may close and end at once,
// and a peer that expects more of it learns so.
//
// Memory of a GPU that no card reaches travels through buffers of its own, of which there is a bounded amount. So that
// no operation waits for a buffer that only something behind it would give back, here or at a peer: the oldest
// operation of each tag always gets one, and is posted past waiting ones of other tags. As equal tags meet in order, of
// each tag the oldest send and the oldest receive belong together, and so always come to their end.
//
// Thread rule: under the device's lock, but for Close, which takes it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/nccl/src/abi.h"
#include "api/nccl/src/device.h"
#include "api/nccl/src/memory.h"
#include "paceline/context.h"

namespace paceline::nccl {

inline constexpr int kMaxReceives = 8;                                            // of a group
inline constexpr size_t kMaxInFlight = size_t{abi::kMaxRequests} * kMaxReceives;  // requests of a comm
inline constexpr size_t kMostMessageBytes = size_t{1} << 30;                      // what test() reports is an int

struct Request;

// One send, or one slot of a grouped receive.
struct Part {
  Request* request = nullptr;
  void* data = nullptr;
  size_t bytes = 0;  // room; once done, what came
  uint64_t tag = 0;
  api::RegionId region = 0;
  void* event = nullptr;  // the profiler's
  // Memory of a GPU that no card reaches: travels by way of a buffer.
  gpudirect::Staging* staging = nullptr;
  void* bounce = nullptr;
  gpudirect::CudaEvent copy = nullptr;  // under way between the two
};

struct Request {
  Comm* comm = nullptr;
  int count = 0;       // parts
  int unfinished = 0;  // parts whose operation is not complete
  bool failed = false;
  bool told = false;  // that it has failed, with parts unfinished: gone for NCCL, freed with the last of them
  std::string error;
  std::array<Part, kMaxReceives> parts;
};

class Comm {
 public:
  enum class Direction : uint8_t { kSend, kReceive };

  Comm(std::shared_ptr<Device> device, api::Connection connection, Direction direction, abi::Profiler profiler);
  ~Comm();

  // What NCCL calls an operation with: where, how long, which tag, with which memory, for which parent event.
  struct Slot {
    void* data = nullptr;
    size_t bytes = 0;
    int tag = 0;
    Memory* memory = nullptr;
    void* parent = nullptr;
  };
  // A send, or a group of 1 to kMaxReceives receives. *request is nullptr where there is no room: call again.
  abi::Result Post(const Slot* slots, int count, Request** request);
  // Always writes *done. `bytes` (may be nullptr): per part, once done. A request that is done, or that failed, is
  // gone; it fails with the first of its parts, and buffers of the others are in use until the comm is closed.
  abi::Result Test(Request* request, int* done, int* bytes);

  // What receives with these handles (nullptr among them: none) have said to be done is visible to the GPUs' kernels
  // when this returns.
  abi::Result Flush(void* const* memory, int count);

  static void Hand(const api::Completion& completion);
  bool Care();  // posts what waits and looks after copies; false: nothing is left of either
  bool over() const;

  // Ends what `comm` is to NCCL; its buffers are not touched any more when this returns.
  static void Close(std::unique_ptr<Comm> comm);

  Device& device() { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return keep_; }
  Direction direction() const { return direction_; }

 private:
  abi::Result Admit(const Slot& slot, Part* part);  // fills *part; an error where it can never be carried out
  void PostWaiting();
  // The buffer that a part needs, if it can be had, from the pool only if `from_pool`. `oldest`: of those that wait,
  // with its tag. False: the pool had none.
  bool TakeBounce(Part* part, bool oldest, bool from_pool);
  bool PostPart(Part* part);              // false: no room now, no buffer, or a copy is under way
  void CopyOut(Part* part);               // a send: into its buffer
  void CopyIn(Part* part, size_t bytes);  // a receive has arrived in its buffer
  bool AwaitCopies();                     // false: none is under way to a GPU
  void AbandonCopies();                   // and what waits
  void GiveBounce(Part* part);
  void Finish(Part* part, bool ok, size_t bytes, const std::string& error);
  Request* NewRequest();
  void Free(Request* request);
  void StartEvent(Part& part, void* parent);
  void StopEvents(Request* request);

  Device* const device_;
  std::shared_ptr<Device> keep_;  // until closed
  api::Connection connection_;
  const Direction direction_;
  const abi::Profiler profiler_;
  std::deque<Part*> waiting_;          // not posted yet, in order
  std::vector<Part*> copying_;         // received, on the way to a GPU
  std::vector<uint64_t> bounce_tags_;  // of the parts that have a buffer
  std::vector<uint64_t> held_tags_;    // of a walk through waiting_: those of parts that go on waiting
  size_t operations_ = 0;              // posted and not complete
  size_t in_flight_ = 0;               // requests that NCCL has
  std::deque<Request> requests_;
  std::vector<Request*> free_;
  bool retired_ = false;
};

// A connection on its way, between two calls of NCCL's connect().
struct Attempt {
  std::shared_ptr<Device> device;
  api::Connection connection;

  Attempt() = default;
  Attempt(Attempt&&) = default;
  Attempt& operator=(Attempt&&) = delete;
  ~Attempt();
};

class Listener {
 public:
  // Fails where the device cannot take another listener.
  static api::Result<std::unique_ptr<Listener>> Open(std::shared_ptr<Device> device, abi::Profiler profiler);
  ~Listener();

  api::Handle handle() const { return listener_.handle(); }
  bool TakeRequests();  // connection requests are answered at once, whenever NCCL accepts; true: there was one
  // The next established connection, as a comm; nullptr: none yet.
  std::unique_ptr<Comm> Accept();

  static void Close(std::unique_ptr<Listener> listener);
  Device& device() { return *device_; }

 private:
  Listener(std::shared_ptr<Device> device, api::Listener listener, abi::Profiler profiler);

  std::shared_ptr<Device> device_;
  api::Listener listener_;
  const abi::Profiler profiler_;
  std::deque<api::Connection> accepted_;
};

}  // namespace paceline::nccl
