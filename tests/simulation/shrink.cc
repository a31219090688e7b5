#include "tests/simulation/shrink.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace paceline::simulation {
namespace {

constexpr std::pair<const char*, const char*> kSimplest[] = {{"ending", "quiet"},     {"stalls", "0"},
                                                             {"leaps", "0"},          {"bursts", "0"},
                                                             {"partitions", "0"},     {"rx_queue", "0"},
                                                             {"shortages", "0"},      {"revocations", "0"},
                                                             {"flaps", "0"},          {"black_paths", "0"},
                                                             {"protection", "none"},  {"receive_queues", "0"},
                                                             {"late_names", "0"},     {"claims", "0"},
                                                             {"many", "0"},           {"parked", "0"},
                                                             {"placed_writes", "0"},  {"write_lag_us", "0"},
                                                             {"handshake", "0"},      {"loss", "0"},
                                                             {"duplicate", "0"},      {"reorder", "0"},
                                                             {"corrupt", "0"},        {"trim", "0"},
                                                             {"mark", "0"},           {"skew_us", "0"},
                                                             {"cancel", "0"},         {"hosts", "2"},
                                                             {"ports", "1"},          {"carrier", "packets"},
                                                             {"topology", "0"},       {"entropies", "1"},
                                                             {"lane_room", "64"},     {"path_policy", "round_robin"},
                                                             {"queue_kb", "175"},     {"controller", "test_window"},
                                                             {"burst_segments", "1"}, {"path_bytes", "0"},
                                                             {"narrowings", "0"},     {"reads_later", "0"},
                                                             {"held_receives", "0"},  {"as_plugins", "0"},
                                                             {"ahead", "none"},       {"queue_mbps", "0"},
                                                             {"far_port_us", "0"}};
constexpr const char* kCounts[] = {"connections", "operations", "max_bytes", "receive_queues", "fault_ms"};

std::optional<Scenario> With(const Scenario& scenario, const std::string& setting) {
  const auto changed = ParseScenario(absl::StrCat(Describe(scenario), " ", setting));
  if (!changed.ok() || Describe(*changed) == Describe(scenario)) return std::nullopt;
  return *changed;
}

uint32_t CountOf(const Scenario& scenario, const std::string& key) {
  if (key == "connections") return scenario.connections;
  if (key == "operations") return scenario.operations;
  if (key == "max_bytes") return scenario.max_bytes;
  if (key == "receive_queues") return scenario.receive_queues;
  return scenario.fault_ms;
}

}  // namespace

Scenario Shrink(const Scenario& failing, const std::function<bool(const Scenario&)>& fails, int most_runs) {
  Scenario smallest = failing;
  const auto take = [&](const std::string& setting) {
    const std::optional<Scenario> changed = With(smallest, setting);
    if (!changed.has_value() || most_runs <= 0) return false;
    --most_runs;
    if (!fails(*changed)) return false;
    smallest = *changed;
    return true;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const auto& [key, value] : kSimplest) smaller |= take(absl::StrCat(key, "=", value));
    for (const std::string key : kCounts) {
      while (CountOf(smallest, key) > 1 && take(absl::StrCat(key, "=", CountOf(smallest, key) / 2))) smaller = true;
      while (CountOf(smallest, key) > 1 && take(absl::StrCat(key, "=", CountOf(smallest, key) - 1))) smaller = true;
    }
  }
  return smallest;
}

}  // namespace paceline::simulation
