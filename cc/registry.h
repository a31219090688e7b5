// The registry of congestion-control algorithms: names, parameters with their defaults and ranges, factories. Studies,
// the conformance suite, the fuzzers and `paceline info` enumerate it; adding an algorithm adds one line to
// registry.cc.
//
// Thread rule: immutable after start, usable from anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "cc/congestion_control.h"

namespace paceline {

using ParameterValue = std::variant<double, bool, std::string>;
using ParameterMap = std::map<std::string, ParameterValue>;

struct ParameterSpec {
  std::string name;
  ParameterValue default_value;
  double min = 0, max = 0;           // numbers: inclusive range
  std::vector<std::string> choices;  // strings: allowed values
  std::string unit;                  // "", "BDP", "us", "bytes", ...
  std::string meaning;               // one sentence, with the source of the default
};

struct AlgorithmInfo {
  std::string name;     // "tita"
  std::string summary;  // one sentence
  std::vector<ParameterSpec> parameters;
  // `parameters` complete and within range (CreateCongestionControl sees to it).
  std::unique_ptr<CongestionControl> (*create)(const ParameterMap& parameters, uint64_t seed);
  bool needs_telemetry = false;  // is of no use on a lane without LaneCapabilities::telemetry
};

// All algorithms, by name.
std::span<const AlgorithmInfo> CongestionControlAlgorithms();

// nullptr when there is no such algorithm.
const AlgorithmInfo* FindCongestionControl(const std::string& name);

// `given` with all defaults filled in; an error names the parameter that is unknown, of the wrong type or out of range.
absl::StatusOr<ParameterMap> ResolveParameters(const AlgorithmInfo& algorithm, const ParameterMap& given);

// One call for both. An unknown name is refused with the list of names.
absl::StatusOr<std::unique_ptr<CongestionControl>> CreateCongestionControl(const std::string& name,
                                                                           const ParameterMap& given, uint64_t seed);

}  // namespace paceline
