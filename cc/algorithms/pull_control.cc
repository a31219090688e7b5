#include "cc/algorithms/pull_control.h"

#include <string>

#include "cc/algorithms/parameters.h"

namespace paceline {

std::vector<ParameterSpec> PullParameterSpecs(double rate, double first_window, double window, double pull_segments,
                                              const std::string& from) {
  return {
      NumberSpec("rate", rate, 0.01, 1, "line rate",
                 "What the pulls of a port add up to, in wire bytes (" + from + ")"),
      NumberSpec("first_window", first_window, 0.01, 100, "BDP", "Sent before anything was pulled (" + from + ")"),
      NumberSpec("window", window, 0.01, 100, "BDP", "How far one sender is pulled ahead at most (" + from + ")"),
      NumberSpec("pull_segments", pull_segments, 1, 256, "segments", "Bytes of one pull (" + from + ")"),
      NumberSpec("probe", 16, 1, 10000, "base RTT", "A sender without credit for so long sends one segment (ours)")};
}

PullRules PullRulesFrom(const ParameterMap& parameters) {
  PullRules rules;
  rules.rate = NumberOf(parameters, "rate");
  rules.first_window = NumberOf(parameters, "first_window");
  rules.window = NumberOf(parameters, "window");
  rules.pull_segments = NumberOf(parameters, "pull_segments");
  rules.probe_rtts = NumberOf(parameters, "probe");
  return rules;
}

ParameterSpec IdleCreditSpec(double idle_credit) {
  return NumberSpec("idle_credit", idle_credit, 0, 4, "BDP",
                    "Pulled from a sender beyond what it asks for, while nobody asks (public simulator)");
}

}  // namespace paceline
