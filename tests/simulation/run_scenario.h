// Runs one scenario of the swarm and says what was found.
//
// Thread rule: one thread. Deterministic: the same scenario gives the same findings and the same fingerprint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/scenario.h"

namespace paceline::simulation {

struct RunResult {
  std::vector<std::string> findings;  // empty: all invariants held
  double virtual_seconds = 0;
  uint64_t operations = 0;
  uint64_t fingerprint = 0;  // of counters and times, to tell that a replay is one
};

RunResult RunScenario(const Scenario& scenario, bool verbose);

}  // namespace paceline::simulation
