#include "cc/algorithms/rccc.h"

#include "cc/algorithms/parameters.h"
#include "cc/algorithms/pull_control.h"

namespace paceline {

AlgorithmInfo RcccAlgorithm() {
  std::vector<ParameterSpec> specs = PullParameterSpecs(0.99, 1.5, "Ultra Ethernet simulator");
  AppendDemandSpecs(1.5, 4, "Ultra Ethernet simulator", specs);
  specs.insert(specs.end(),
               {NumberSpec("quantum", 256, 1, 65536, "bytes", "A pull is a multiple of it (Ultra Ethernet)"),
                FlagSpec("divide_demand", true, "A sender's demand is divided by its port's active flows (simulator)"),
                FlagSpec("core_loop", true,
                         "Where the core is oversubscribed the pull rate follows marks and trims (simulator)"),
                NumberSpec("oversubscription", 1, 1, 1000, "",
                           "Of the core, unless the port states its share of it (simulator: known)"),
                NumberSpec("core_gain", 0.5, 0.01, 1, "", "Weight of the newest share of marks (simulator)"),
                NumberSpec("core_target", 0.3, 0.01, 1, "", "Share of marks above which the rate falls (simulator)"),
                NumberSpec("core_decrease", 0.5, 0.01, 1, "", "Strength of that (simulator)"),
                NumberSpec("core_step", 0.01, 0.0001, 1, "pull rate", "First increase, doubled each time (simulator)"),
                NumberSpec("core_floor", 0.9, 0, 1, "fair rate",
                           "Least rate, of the line over the oversubscription (simulator)"),
                NumberSpec("core_interval", 1.5, 0.1, 100, "base RTT", "Mean time between decisions (simulator)")});
  return {"rccc", "Receiver credit of the Ultra Ethernet transport: pulls of four packets at 0.99 of the line",
          std::move(specs), [](const ParameterMap& p, uint64_t seed) -> std::unique_ptr<CongestionControl> {
            PullRules rules = PullRulesFrom(p);
            rules.quantum = static_cast<uint64_t>(NumberOf(p, "quantum"));
            rules.drop_first_window = true;
            rules.divide_demand = FlagOf(p, "divide_demand");
            rules.core_loop = FlagOf(p, "core_loop");
            rules.core = {.gain = NumberOf(p, "core_gain"),
                          .target = NumberOf(p, "core_target"),
                          .decrease = NumberOf(p, "core_decrease"),
                          .step = NumberOf(p, "core_step"),
                          .floor = NumberOf(p, "core_floor"),
                          .interval = NumberOf(p, "core_interval")};
            rules.oversubscription = NumberOf(p, "oversubscription");
            rules.exact_pulls = true;
            return std::make_unique<PullControl>(rules, seed);
          }};
}

}  // namespace paceline
