// The engine joins the protocol core, the lanes and the clock: one poll pass moves what has arrived into the core, lets
// timers act, and moves what the core wants to send into the lanes. It has no thread of its own and reads no clock: the
// caller passes the time. engine/progress.h adds waiting and a thread for real machines; the simulated fabric calls
// Poll from its events.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cc/registry.h"
#include "transport/base/time.h"
#include "transport/core/endpoint.h"
#include "transport/lane/lane.h"

namespace paceline {

// Copies between memory of GPUs and host memory, for payloads that travel in packets; as EndpointEnvironment's.
//
// Thread rule: the engine's thread.
class DeviceCopier {
 public:
  virtual ~DeviceCopier() = default;
  virtual bool FromDevice(int device, void* to, const void* from, size_t bytes) = 0;
  virtual bool ToDevice(int device, void* to, const void* from, size_t bytes) = 0;
};

// Where requests to connect go that another engine of the process may take; as EndpointEnvironment's.
//
// Thread rule: the engine's thread, which has the engine locked meanwhile: it must not wait for another engine.
class RequestRouter {
 public:
  virtual ~RequestRouter() = default;
  virtual PassedOn PassOn(const ConnectionRequest& request, Time now) = 0;
};

struct EngineOptions {
  EndpointOptions endpoint;  // .congestion_control names the algorithm
  ParameterMap congestion_control_parameters;
  // For a caller that posts replies to what has come and polls again at once, as programs on real machines do: what a
  // pass receives is answered at the beginning of the next one, the caller's replies before acknowledgements of what
  // they reply to. Otherwise (simulated hosts) at the end of the same pass.
  bool replies_first = false;
  DeviceCopier* device_copier = nullptr;    // outlives the engine; nullptr: such copies fail
  RequestRouter* request_router = nullptr;  // outlives the engine; nullptr: it takes all by itself
};

class Engine final : private EndpointEnvironment {
 public:
  // `lanes`: one per port, at least one, at most limits::kMaxPorts. An error names the algorithm or parameter at fault.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const EngineOptions& options,
                                                        std::vector<std::unique_ptr<Lane>> lanes);
  ~Engine() override;

  // One pass. Returns when it wants to be called again at the latest, provided that nothing arrives, nothing is posted
  // and no lane that was full becomes writable before: `now` itself when there is more to do at once.
  Time Poll(Time now);
  // As Poll, but looks neither at the lanes nor at timers: what was posted leaves, and what is owed for what has
  // arrived.
  Time Transmit(Time now);

  // True if the last Poll or Transmit moved any segment.
  bool last_poll_was_busy() const { return busy_; }
  // True if segments wait for a lane that had no room.
  bool blocked_on_room() const { return blocked_; }

  Endpoint& endpoint() { return *endpoint_; }
  std::span<const std::unique_ptr<Lane>> lanes() const { return lanes_; }

 private:
  struct PortState;
  Engine(const EngineOptions& options, std::vector<std::unique_ptr<Lane>> lanes,
         std::unique_ptr<CongestionControl> congestion_control);
  void CheckStatus(uint32_t port, Time now);
  bool HandleTimeouts(Time now);          // false: none was due
  Time NextPass(Time now, bool changed);  // `changed`: something has happened since HandleTimeouts
  void ReceiveAll(uint32_t port, Time now);
  // It is not looked at in this pass.
  bool Rests(uint32_t port, Time now);
  static bool WasUsed(const PortState& port, Time now);
  void SendAll(Time now);
  void SendAll(uint32_t port, Time now);

  uint32_t OpenPeer(uint32_t port, const LaneAddress& address) override;
  void ClosePeer(uint32_t port, uint32_t peer) override;
  size_t RoomTo(uint32_t port, uint32_t peer) override;
  uint64_t RegisterMemory(uint32_t port, const LaneMemory& memory) override;
  void DeregisterMemory(uint32_t port, uint64_t key) override;
  bool LendMemory(uint32_t port, const LaneMemory& memory) override;
  void ReturnMemory(uint32_t port, const LaneMemory& memory) override;
  bool ReadsFromDevice(uint32_t port, const uint8_t* payload, size_t bytes) const override;
  void ResetPath(uint32_t port, uint32_t peer, uint32_t connection, uint16_t entropy) override;
  void EndWrites(uint32_t port, uint32_t peer, uint32_t connection) override;
  void FenceWrites(uint32_t port, ConnectionId connection) override;
  PassedOn PassOn(const ConnectionRequest& request, Time now) override;
  bool CopyFromDevice(int device, void* to, const void* from, size_t bytes) override;
  bool CopyToDevice(int device, void* to, const void* from, size_t bytes) override;

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<PortState>> ports_;
  std::unique_ptr<Endpoint> endpoint_;
  const bool replies_first_;
  DeviceCopier* const device_copier_;
  RequestRouter* const request_router_;
  uint32_t first_port_ = 0;  // that sends first in this pass: each has its turn
  Time last_pass_;
  Time timeout_;             // of the endpoint, when it was asked last
  bool unfinished_ = false;  // arrivals of the last pass wait for FinishSegments
  bool busy_ = false;
  bool blocked_ = false;
};

}  // namespace paceline
