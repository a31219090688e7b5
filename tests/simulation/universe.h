// The hosts, lanes and network that a scenario asks for, with its faults.
//
// Thread rule: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/simulation/scenario.h"
#include "tests/support/scripted_lane.h"
#include "tests/support/scripted_network.h"
#include "tests/support/test_host.h"
#include "transport/base/random.h"

namespace paceline::simulation {

class Universe {
 public:
  // An error: the scenario cannot be built.
  static absl::StatusOr<std::unique_ptr<Universe>> Create(const Scenario& scenario, Random* random);

  support::VirtualNetwork& network() { return *network_; }
  Time now() const { return network_->now(); }
  support::TestHost& host(size_t i) { return *hosts_[i]; }
  size_t hosts() const { return hosts_.size(); }
  LaneAddress address(size_t host, size_t port) const { return lanes_[host * ports_ + port]->address(); }
  // The host crashes, and a new process takes its lanes; returns the number of that one, whose address is the old
  // one's. Scripted networks only.
  size_t Restart(size_t host);
  size_t ports() const { return ports_; }
  // That lanes were to read later, so that they may show as damaged.
  uint64_t late_packets() const;

  // Faults that come and go: call as time passes. After the scenario's fault time all is well.
  void ApplyFaults();

  std::vector<std::string> Violations() const;

 private:
  struct Flap {
    uint32_t port = 0;
    Time down;
    Time up;
  };
  Universe() = default;
  void BuildScripted(const Scenario& scenario, Random* random);
  absl::Status BuildFabric(const Scenario& scenario, Random* random);
  // The next host, on these lanes.
  absl::Status AddHost(std::vector<Lane*> lanes);

  Scenario scenario_;
  size_t ports_ = 1;
  std::unique_ptr<support::VirtualNetwork> network_;
  support::ScriptedNetwork* scripted_ = nullptr;  // network_, when it is that
  std::vector<std::unique_ptr<support::ScriptedLane>> scripted_lanes_;
  std::vector<Lane*> lanes_;  // by host, then port
  std::vector<Flap> flaps_;
  std::vector<std::unique_ptr<support::TestHost>> hosts_;
};

}  // namespace paceline::simulation
