// Workloads from a [workload] table in tests, and questions about them.
// Thread rule: pure functions.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/study/load_workload.h"
#include "tools/study/workload.h"

namespace paceline::tools {

inline absl::StatusOr<Workload> TryBuild(const std::string& toml, uint32_t hosts, uint64_t seed = 1,
                                         uint32_t nics = 1) {
  const toml::table table = toml::parse(toml);
  nlohmann::json resolved;
  const auto config = LoadWorkload(&table, "", resolved);
  if (!config.ok()) return config.status();
  return BuildWorkload(*config, {.count = hosts, .nics = nics, .gbps = 100.0 * nics}, seed);
}

inline Workload Build(const std::string& toml, uint32_t hosts, uint64_t seed = 1, uint32_t nics = 1) {
  const auto workload = TryBuild(toml, hosts, seed, nics);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return workload.ok() ? *workload : Workload();
}

inline uint64_t TotalBytes(const Workload& workload) {
  uint64_t total = 0;
  for (const Flow& flow : workload.flows) total += flow.bytes;
  return total;
}

// By trigger: the flows that it waits for, directly or through other triggers.
inline std::vector<std::set<uint32_t>> CausesOf(const Workload& workload) {
  std::vector<std::set<uint32_t>> causes(workload.triggers.size());
  for (uint32_t index = 0; index < workload.flows.size(); ++index) {
    for (uint32_t fired : {workload.flows[index].fires_when_sent, workload.flows[index].fires_when_received}) {
      if (fired != kNoTrigger) causes[fired].insert(index);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t number = 0; number < workload.triggers.size(); ++number) {
      for (uint32_t fired : workload.triggers[number].fires) {
        const size_t before = causes[fired].size();
        causes[fired].insert(causes[number].begin(), causes[number].end());
        changed = changed || causes[fired].size() != before;
      }
    }
  }
  return causes;
}

}  // namespace paceline::tools
