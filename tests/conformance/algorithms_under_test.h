// What the conformance tests run over: every algorithm of the registry, with each choice of each string parameter and
// each switch the other way, and the port that they stand on.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cc/registry.h"

namespace paceline {

struct AlgorithmUnderTest {
  std::string name;
  ParameterMap parameters;
  std::string label;  // for the test's name

  std::unique_ptr<CongestionControl> Create() const { return *CreateCongestionControl(name, parameters, 1); }
};

inline std::vector<AlgorithmUnderTest> AlgorithmsUnderTest() {
  std::vector<AlgorithmUnderTest> list;
  for (const AlgorithmInfo& algorithm : CongestionControlAlgorithms()) {
    list.push_back({algorithm.name, {}, algorithm.name});
    for (const ParameterSpec& spec : algorithm.parameters) {
      for (const std::string& choice : spec.choices) {
        if (ParameterValue(choice) == spec.default_value) continue;
        list.push_back({algorithm.name, {{spec.name, choice}}, algorithm.name + "_" + spec.name + "_" + choice});
      }
      if (const bool* flag = std::get_if<bool>(&spec.default_value)) {
        const std::string word = *flag ? "_off" : "_on";
        list.push_back({algorithm.name, {{spec.name, !*flag}}, algorithm.name + "_" + spec.name + word});
      }
    }
  }
  return list;
}

inline PortInfo ConformancePort() {
  PortInfo port;
  port.link_rate = Rate::Gbps(100);
  port.base_rtt = Duration::Micros(14);
  port.segment_bytes = 4096;
  port.overhead_bytes = 64;
  port.control_packet_bytes = 64;
  return port;
}

}  // namespace paceline
