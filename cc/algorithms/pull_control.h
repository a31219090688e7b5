// A congestion control made of PullSenders and PullReceivers under one set of rules, and the parameters that all of its
// kind have.
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cc/algorithms/pull_receiver.h"
#include "cc/algorithms/pull_rules.h"
#include "cc/algorithms/pull_sender.h"
#include "cc/registry.h"

namespace paceline {

class PullControl : public CongestionControl {
 public:
  PullControl(const PullRules& rules, uint64_t seed) : rules_(rules), seed_(seed) {}

  std::unique_ptr<SenderController> NewSender(const FlowInfo& flow, const PortInfo& port, Time) override {
    return std::make_unique<PullSender>(rules_, flow, port, ports_[port.port_index]);
  }
  std::unique_ptr<ReceiverController> NewReceiver(const PortInfo& port) override {
    return std::make_unique<PullReceiver>(rules_, port, seed_);
  }

 private:
  const PullRules rules_;
  const uint64_t seed_;
  std::map<uint32_t, PullPort> ports_;  // their addresses stay
};

// `rate`, `first_window` and `probe`, which all schemes have; `from` names the source of these defaults.
std::vector<ParameterSpec> PullParameterSpecs(double rate, double first_window, const std::string& from);
// `window`, `idle_credit` and `pull_segments` of those that pull what senders ask for.
void AppendDemandSpecs(double window, double pull_segments, const std::string& from, std::vector<ParameterSpec>& specs);
// What of these is there; the rest as by default, `window` as the first one.
PullRules PullRulesFrom(const ParameterMap& parameters);

}  // namespace paceline
