#include "cc/algorithms/ndp.h"

#include "cc/algorithms/pull_control.h"

namespace paceline {

AlgorithmInfo NdpAlgorithm() {
  return {"ndp", "First window unsolicited, then a pull for each packet or header (SIGCOMM 2017)",
          PullParameterSpecs(1, 1, "SIGCOMM 2017"),
          [](const ParameterMap& p, uint64_t seed) -> std::unique_ptr<CongestionControl> {
            PullRules rules = PullRulesFrom(p);
            rules.per_arrival = true;
            return std::make_unique<PullControl>(rules, seed);
          }};
}

}  // namespace paceline
