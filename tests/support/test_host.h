// A host in a test: one endpoint over its lanes, polled by a virtual network as an engine would be, keeping what the
// user would poll: completions and connection events, in order.
//
// Thread rule: one thread. The lanes are borrowed and must outlive the host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cc/congestion_control.h"
#include "tests/support/observed_congestion_control.h"
#include "tests/support/virtual_network.h"
#include "transport/core/endpoint.h"
#include "transport/lane/lane.h"

namespace paceline::support {

class TestHost final : public Polled, private EndpointEnvironment {
 public:
  TestHost(const EndpointOptions& options, std::unique_ptr<CongestionControl> congestion_control,
           std::vector<Lane*> lanes, VirtualNetwork* network);
  ~TestHost() override;

  Endpoint& endpoint() { return *endpoint_; }
  // By its own clock, which LeapClock puts forward; the network's otherwise.
  Time now() const { return network_->now() + ahead_; }
  void LeapClock(Duration by) { ahead_ += by; }
  // After a call on the endpoint that may have given it something to send.
  void Touch() { network_->Touch(this); }

  // Polled from the endpoint so far; a test may clear them.
  std::vector<Completion> completions;
  std::vector<ConnectionEvent> events;
  // When set, it gets each completion the moment it is polled, instead of `completions`.
  std::function<void(const Completion&)> on_completion;
  std::function<void(const ConnectionEvent&)> on_event;
  // What the driver of its GPUs would copy; false: it failed. Unset: all fail.
  std::function<bool(int device, void*to, const void*from, size_t bytes)> copy_from_device, copy_to_device;
  // Who takes requests to connect. Unset: this endpoint.
  std::function<PassedOn(const ConnectionRequest&)> pass_on;
  bool accept_requests = true;   // answers kRequest events with Accept
  bool poll_completions = true;  // false: leaves them in the endpoint

  // From now on the host does nothing any more: a crash, as its peers see it. Thaw lets it go on (a stopped process).
  void Freeze() { frozen_ = true; }
  void Thaw() { frozen_ = false; }
  bool frozen() const { return frozen_; }
  // Does nothing for so long: a process that does not run.
  void Stall(Duration time) { stalled_until_ = network_->now() + time; }
  bool stalled() const { return network_->now() < stalled_until_; }

  // Broken rules of the endpoint's interface: a timer that is always due, a segment beyond the room, ... and what the
  // observed congestion control found. Empty at the end of a test.
  std::vector<std::string> Violations() const;
  const ControlObservation& control() const { return *observation_; }

  Time Poll(Time network_now) override;

 private:
  Time PollByOwnClock(Time now);
  bool Receive(uint32_t port, Time now);
  bool Transmit(uint32_t port, Time now);
  // True if the user got anything: it may have posted more.
  bool TakeEvents(Time now);

  uint32_t OpenPeer(uint32_t port, const LaneAddress& address) override { return lanes_[port]->OpenPeer(address); }
  void ClosePeer(uint32_t port, uint32_t peer) override { lanes_[port]->ClosePeer(peer); }
  size_t RoomTo(uint32_t port, uint32_t peer) override { return lanes_[port]->RoomTo(peer); }
  uint64_t RegisterMemory(uint32_t port, const LaneMemory& memory) override {
    return lanes_[port]->RegisterMemory(memory);
  }
  void DeregisterMemory(uint32_t port, uint64_t key) override { lanes_[port]->DeregisterMemory(key); }
  bool LendMemory(uint32_t port, const LaneMemory& memory) override { return lanes_[port]->LendMemory(memory); }
  void ReturnMemory(uint32_t port, const LaneMemory& memory) override { lanes_[port]->ReturnMemory(memory); }
  bool ReadsFromDevice(uint32_t port, const uint8_t* payload, size_t bytes) const override {
    return lanes_[port]->ReadsFromDevice(payload, bytes);
  }
  void ResetPath(uint32_t port, uint32_t peer, uint32_t connection, uint16_t entropy) override {
    lanes_[port]->ResetPath(peer, connection, entropy);
  }
  void EndWrites(uint32_t port, uint32_t peer, uint32_t connection) override {
    lanes_[port]->EndWrites(peer, connection);
  }
  void FenceWrites(uint32_t port, ConnectionId connection) override { lanes_[port]->FenceWrites(connection); }
  PassedOn PassOn(const ConnectionRequest& request, Time) override {
    return pass_on ? pass_on(request) : PassedOn::kNo;
  }
  bool CopyFromDevice(int device, void* to, const void* from, size_t bytes) override {
    return copy_from_device && copy_from_device(device, to, from, bytes);
  }
  bool CopyToDevice(int device, void* to, const void* from, size_t bytes) override {
    return copy_to_device && copy_to_device(device, to, from, bytes);
  }

  VirtualNetwork* network_;
  std::vector<Lane*> lanes_;
  std::vector<uint32_t> lane_changes_;
  uint32_t first_port_ = 0;  // of the next pass
  std::shared_ptr<ControlObservation> observation_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<TxBurst> burst_;
  std::vector<std::string> violations_;
  bool frozen_ = false;
  Time stalled_until_;
  Duration ahead_;
};

}  // namespace paceline::support
