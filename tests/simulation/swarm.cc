// The simulation swarm: many scenarios, each from a seed, each checked against the oracle. A failure prints the seed
// and the command that replays it, the first one also the smallest scenario that still fails. Scenarios that once
// failed stand in regressions/*.txt and run first.
//
//   swarm                        regressions, then the default set of seeds
//   swarm --seed 17 --verbose    one scenario, with what happens and all counters
//   swarm --scenario "seed=17 loss=0 ports=1"   the same with some settings changed
//   swarm --seeds 1000:2000, swarm --minutes 10
//
// Exit status: 0 all invariants held, 1 findings, 2 wrong use.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/simulation/run_scenario.h"
#include "tests/simulation/shrink.h"

namespace paceline::simulation {
namespace {

struct Totals {
  uint64_t scenarios = 0;
  uint64_t operations = 0;
  double virtual_seconds = 0;
  uint64_t failed = 0;
};

bool RunOne(const Scenario& scenario, bool verbose, const std::string& program, const std::string& replay,
            Totals* totals) {
  const RunResult result = RunScenario(scenario, verbose);
  ++totals->scenarios;
  totals->operations += result.operations;
  totals->virtual_seconds += result.virtual_seconds;
  if (verbose) std::printf("fingerprint %016llx\n", static_cast<unsigned long long>(result.fingerprint));
  if (result.findings.empty()) return true;
  ++totals->failed;
  std::printf("FAILED  %s\n", Describe(scenario).c_str());
  for (size_t i = 0; i < std::min<size_t>(result.findings.size(), 12); ++i) {
    std::printf("  %s\n", result.findings[i].c_str());
  }
  std::printf("  replay: %s %s --verbose\n", program.c_str(), replay.c_str());
  if (totals->failed == 1) {
    std::fflush(stdout);
    const Scenario small = Shrink(scenario, [](const Scenario& s) { return !RunScenario(s, false).findings.empty(); });
    std::printf("  smallest, for tests/simulation/regressions:\n  %s\n", Describe(small).c_str());
  }
  std::fflush(stdout);
  return false;
}

// Lines of scenarios; empty ones and those that start with # are skipped. False when one makes no sense.
bool RunRegressions(const std::string& folder, const std::string& program, Totals* totals) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream file(path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      if (line.empty() || line[0] == '#') continue;
      const auto scenario = ParseScenario(line);
      if (!scenario.ok()) {
        std::printf("%s:%d: %s\n", path.c_str(), number, std::string(scenario.status().message()).c_str());
        return false;
      }
      RunOne(*scenario, false, program, "--scenario \"" + line + "\"", totals);
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  CLI::App app("Deterministic simulation of many scenarios with faults, each from a seed");
  uint64_t seed = 0;
  double minutes = 0;
  bool verbose = false;
  std::string seeds = "1:400", text, regressions;
  CLI::Option* one = app.add_option("--seed", seed, "run the scenario of this seed only");
  app.add_option("--scenario", text, "run this scenario only: seed=N, then settings that differ");
  app.add_option("--seeds", seeds, "run the seeds A:B, B not included")->capture_default_str();
  app.add_option("--minutes", minutes, "go on with new seeds for so long");
  app.add_option("--regressions", regressions, "folder of scenarios to run first");
  app.add_flag("--verbose", verbose, "say what happens");
  CLI11_PARSE(app, argc, argv);

  Totals totals;
  const std::string program = argv[0];
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  if (one->count() > 0 || !text.empty()) {
    const auto scenario = text.empty() ? absl::StatusOr<Scenario>(ScenarioOf(seed)) : ParseScenario(text);
    if (!scenario.ok()) {
      std::fprintf(stderr, "%s\n", std::string(scenario.status().message()).c_str());
      return 2;
    }
    if (verbose) std::printf("%s\n", Describe(*scenario).c_str());
    RunOne(*scenario, verbose, program, text.empty() ? "--seed " + std::to_string(seed) : "--scenario \"" + text + "\"",
           &totals);
  } else {
    uint64_t first = 0, end = 0;
    if (std::sscanf(seeds.c_str(), "%lu:%lu", &first, &end) != 2 || first >= end) {
      std::fprintf(stderr, "--seeds wants A:B with A below B, not '%s'\n", seeds.c_str());
      return 2;
    }
    if (!regressions.empty() && !RunRegressions(regressions, program, &totals)) return 2;
    for (uint64_t n = first; n < end || elapsed() < minutes * 60; ++n) {
      RunOne(ScenarioOf(n), verbose, program, "--seed " + std::to_string(n), &totals);
    }
  }
  std::printf("%lu scenarios, %lu operations, %.0f s of virtual time in %.1f s: %lu failed\n", totals.scenarios,
              totals.operations, totals.virtual_seconds, elapsed(), totals.failed);
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace paceline::simulation

int main(int argc, char** argv) { return paceline::simulation::Main(argc, argv); }
