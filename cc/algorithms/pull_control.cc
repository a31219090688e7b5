#include "cc/algorithms/pull_control.h"

#include "cc/algorithms/parameters.h"

namespace paceline {

std::vector<ParameterSpec> PullParameterSpecs(double rate, double first_window, const std::string& from) {
  return {
      NumberSpec("rate", rate, 0.01, 1, "line rate",
                 "What the pulls of a port add up to, in wire bytes (" + from + ")"),
      NumberSpec("first_window", first_window, 0.01, 100, "BDP", "Sent before anything was pulled (" + from + ")"),
      NumberSpec("probe", 16, 1, 10000, "base RTT", "A sender without credit for so long sends one segment (ours)")};
}

void AppendDemandSpecs(double window, double pull_segments, const std::string& from,
                       std::vector<ParameterSpec>& specs) {
  specs.push_back(NumberSpec("window", window, 0.01, 100, "BDP", "What one sender asks for at most (" + from + ")"));
  specs.push_back(NumberSpec("idle_credit", window, 0, 100, "BDP",
                             "Pulled from a sender beyond what it asks for, while nobody asks (" + from + ")"));
  specs.push_back(NumberSpec("pull_segments", pull_segments, 1, 256, "segments", "Of one pull (" + from + ")"));
}

PullRules PullRulesFrom(const ParameterMap& parameters) {
  PullRules rules;
  rules.rate = NumberOf(parameters, "rate");
  rules.first_window = NumberOf(parameters, "first_window");
  rules.window = rules.first_window;
  rules.probe_rtts = NumberOf(parameters, "probe");
  if (!parameters.contains("window")) return rules;
  rules.window = NumberOf(parameters, "window");
  rules.idle_credit = NumberOf(parameters, "idle_credit");
  rules.pull_segments = NumberOf(parameters, "pull_segments");
  return rules;
}

}  // namespace paceline
