#include "cc/algorithms/eqds.h"

#include "cc/algorithms/parameters.h"
#include "cc/algorithms/pull_control.h"

namespace paceline {

AlgorithmInfo EqdsAlgorithm() {
  std::vector<ParameterSpec> specs = PullParameterSpecs(0.99, 1, "NSDI 2022, simulator");
  AppendDemandSpecs(1, 1, "NSDI 2022, simulator", specs);
  return {"eqds", "Receiver pulls over retransmit, active and idle lists (NSDI 2022)", std::move(specs),
          [](const ParameterMap& p, uint64_t seed) -> std::unique_ptr<CongestionControl> {
            PullRules rules = PullRulesFrom(p);
            rules.drop_first_window = true;
            rules.retransmit_first = true;
            return std::make_unique<PullControl>(rules, seed);
          }};
}

}  // namespace paceline
