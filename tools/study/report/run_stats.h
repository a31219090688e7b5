// Reading the results of a study: which algorithms it has, and each figure over their seeds.
//
// Who calls it: the report only; pure functions, any thread. A key that is missing, null or not a number is simply
// absent: results of another version still give a page.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::tools {

// The runs of a study; an empty array when there are none.
const nlohmann::json& Runs(const nlohmann::json& results);

// The scenario; an empty object when there is none.
const nlohmann::json& Scenario(const nlohmann::json& results);

// The algorithms of all runs, in order of first appearance.
std::vector<std::string> AlgorithmsOf(const nlohmann::json& results);

// The name of a run's algorithm; empty when it has none.
std::string AlgorithmOf(const nlohmann::json& run);

// A number by its path ("fct_us.p99"), or nothing. A bool counts as 0 or 1.
std::optional<double> NumberAt(const nlohmann::json& object, std::string_view path);

// A text by its path, or an empty one.
std::string TextAt(const nlohmann::json& object, std::string_view path);

bool BoolAt(const nlohmann::json& object, std::string_view path);

// The seed of a run as it stands in the results; empty when it has none.
std::string SeedOf(const nlohmann::json& run);

// Whether every flow of the run finished, and all computing.
bool Finished(const nlohmann::json& run);

// Whether fabric.queue_bytes is the limit of a port's data queue.
bool PortsHaveALimit(const nlohmann::json& scenario);

// One figure of one algorithm over its seeds.
struct Figure {
  int runs = 0;  // how many runs have it
  double mean = 0;
  double min = 0;
  double max = 0;
};

Figure FigureOf(const nlohmann::json& results, const std::string& algorithm, std::string_view path);

}  // namespace paceline::tools
