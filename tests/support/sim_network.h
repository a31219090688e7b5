// The simulated fabric (transport/lane/sim) behind the interface of the stepping harness: hosts of the fabric are
// polled by its events.
//
// Thread rule: one thread. Owns the fabric; hosts must be gone before it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/support/virtual_network.h"
#include "transport/lane/sim/fabric.h"

namespace paceline::support {

class SimNetwork final : public VirtualNetwork {
 public:
  explicit SimNetwork(std::unique_ptr<sim::Fabric> fabric) : fabric_(std::move(fabric)) {}

  sim::Fabric& fabric() { return *fabric_; }

  Time now() const override { return fabric_->now(); }
  // Host i of the fabric is the i-th that is attached.
  void AttachHost(Polled* host) override;
  void Touch(Polled* host) override;
  bool Run(Time deadline, const std::function<bool()>& done) override;

 private:
  class Driver final : public sim::HostDriver {
   public:
    Driver(SimNetwork* network, Polled* host) : network_(network), host_(host) {}
    Time Poll(Time now) override;
    Polled* host() const { return host_; }

   private:
    SimNetwork* network_;
    Polled* host_;
  };

  std::unique_ptr<sim::Fabric> fabric_;
  std::vector<std::unique_ptr<Driver>> drivers_;
  const std::function<bool()>* done_ = nullptr;  // while Run runs
};

}  // namespace paceline::support
