// A scenario of a study: fabric, workload, algorithms, paths, faults and how to run, read from TOML and checked before
// anything starts. A mistake is refused with the key and what it may be.
//
// Tables and keys are those of docs/study.md: [fabric], [workload], [cc], [paths], [[fault]], [run]. Everything has a
// default; the default fabric is a fat tree of 128 hosts at 100 Gb/s.
//
// Thread rule: values; loading is the control path.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cc/registry.h"
#include "tools/study/workload.h"
#include "transport/lane/sim/fabric.h"

namespace paceline::tools {

// One entry of cc.algorithms with its own table.
struct AlgorithmChoice {
  std::string name;
  ParameterMap parameters;     // all of them, defaults filled in
  uint32_t ecn_min_bytes = 0;  // the fabric's, unless its table has its own
  uint32_t ecn_max_bytes = 0;
  double ecn_max_probability = 1;
};

struct Scenario {
  sim::FabricConfig fabric;  // seed and marking are set per run; fault times count from the start of the run
  WorkloadConfig workload;
  std::vector<AlgorithmChoice> algorithms;
  bool hints = false;  // controllers are told pods and oversubscription
  std::string path_policy;
  std::vector<uint64_t> seeds;
  double deadline_us = 0;   // 0: DeadlineFor decides
  nlohmann::json resolved;  // all of it, defaults filled in, as it stands in the results
};

// `directory`: what a relative workload.file starts from. Workloads of all seeds are tried before it returns.
absl::StatusOr<Scenario> LoadScenario(const toml::table& table, const std::string& directory);

// What it sends with this seed.
absl::StatusOr<Workload> WorkloadOf(const Scenario& scenario, uint64_t seed);

}  // namespace paceline::tools
