// A few hosts on one scripted network, each with its endpoint, ready to connect and to step: the two-endpoint harness
// of the core's unit tests (and N-endpoint, N-port).
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_hca_lane.h"
#include "tests/support/scripted_lane.h"
#include "tests/support/scripted_network.h"
#include "tests/support/test_congestion_control.h"
#include "tests/support/test_host.h"

namespace paceline::support {

enum class LaneKind : uint8_t { kPackets, kHca };

struct WorldOptions {
  uint32_t hosts = 2;
  uint32_t ports = 1;  // per host
  LaneKind lanes = LaneKind::kPackets;
  LaneCapabilities packet_capabilities = PacketLaneCapabilities();
  LaneCapabilities hca_capabilities = HcaLaneCapabilities();
  ScriptedNetwork::Options network;
  EndpointOptions endpoint;  // host i gets seed + i
  TestControl control = TestControl::kWindow;
  uint64_t control_bytes = 256 * 1024;
  // When set, changes what a packet lane is capable of; `port` counts from 0 on each host.
  std::function<void(uint32_t port, LaneCapabilities& capabilities)> customize_lane;
  // When set, changes each host's options before its endpoint is made.
  std::function<void(uint32_t host, EndpointOptions& endpoint)> customize;
  // When set, makes each host's congestion control instead.
  std::function<std::unique_ptr<CongestionControl>(uint32_t host)> new_congestion_control;

  WorldOptions() { endpoint.congestion_control = "test"; }
};

class ScriptedWorld {
 public:
  explicit ScriptedWorld(const WorldOptions& options = WorldOptions());

  ScriptedNetwork& network() { return network_; }
  Time now() const { return network_.now(); }
  TestHost& host(uint32_t i) { return *hosts_[i]; }
  Endpoint& endpoint(uint32_t i) { return hosts_[i]->endpoint(); }
  uint32_t hosts() const { return static_cast<uint32_t>(hosts_.size()); }
  ScriptedLane& lane(uint32_t host, uint32_t port = 0) { return *lanes_[host * options_.ports + port]; }
  FakeHcaLane& hca(uint32_t host, uint32_t port = 0) { return static_cast<FakeHcaLane&>(lane(host, port)); }

  // False when `done` has not come true within `limit` of virtual time.
  bool RunUntil(const std::function<bool()>& done, Duration limit = Duration::Seconds(60)) {
    return network_.Run(now() + limit, done);
  }
  void RunFor(Duration time) {
    network_.Run(now() + time, [] { return false; });
  }

  // Connection numbers at `a` and at `b`; {0, 0} when it failed.
  std::pair<ConnectionId, ConnectionId> Connect(uint32_t a, uint32_t b);                        // with the handshake
  std::pair<ConnectionId, ConnectionId> Establish(uint32_t a, uint32_t b, uint32_t ports = 0);  // without

  // Puts an end to the host (a crash) and starts a new one with the same addresses.
  void Restart(uint32_t host, uint64_t seed);

  // All broken rules, of hosts and network. Empty at the end of a good test.
  std::vector<std::string> Violations() const;

 private:
  std::unique_ptr<TestHost> NewHost(uint32_t host, uint64_t seed);

  WorldOptions options_;
  ScriptedNetwork network_;
  std::vector<std::unique_ptr<ScriptedLane>> lanes_;  // by host, then port
  std::vector<std::unique_ptr<TestHost>> hosts_;
};

}  // namespace paceline::support
