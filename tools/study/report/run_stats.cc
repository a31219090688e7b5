#include "tools/study/report/run_stats.h"

#include <algorithm>
#include <cmath>

namespace paceline::tools {
namespace {

const nlohmann::json* Find(const nlohmann::json& object, std::string_view path) {
  const nlohmann::json* at = &object;
  while (true) {
    if (!at->is_object()) return nullptr;
    const size_t dot = path.find('.');
    const auto found = at->find(std::string(path.substr(0, dot)));
    if (found == at->end()) return nullptr;
    at = &*found;
    if (dot == std::string_view::npos) return at;
    path.remove_prefix(dot + 1);
  }
}

}  // namespace

const nlohmann::json& Runs(const nlohmann::json& results) {
  static const nlohmann::json none = nlohmann::json::array();
  const nlohmann::json* runs = Find(results, "runs");
  return runs != nullptr && runs->is_array() ? *runs : none;
}

const nlohmann::json& Scenario(const nlohmann::json& results) {
  static const nlohmann::json none = nlohmann::json::object();
  const nlohmann::json* scenario = Find(results, "scenario");
  return scenario != nullptr && scenario->is_object() ? *scenario : none;
}

std::vector<std::string> AlgorithmsOf(const nlohmann::json& results) {
  std::vector<std::string> names;
  for (const auto& run : Runs(results)) {
    const std::string name = AlgorithmOf(run);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string AlgorithmOf(const nlohmann::json& run) { return TextAt(run, "algorithm"); }

std::optional<double> NumberAt(const nlohmann::json& object, std::string_view path) {
  const nlohmann::json* value = Find(object, path);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>() ? 1.0 : 0.0;
  if (!value->is_number() || !std::isfinite(value->get<double>())) return std::nullopt;
  return value->get<double>();
}

std::string TextAt(const nlohmann::json& object, std::string_view path) {
  const nlohmann::json* value = Find(object, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

bool BoolAt(const nlohmann::json& object, std::string_view path) { return NumberAt(object, path).value_or(0) != 0; }

std::string SeedOf(const nlohmann::json& run) {
  const nlohmann::json* seed = Find(run, "seed");
  return seed != nullptr && seed->is_number() ? seed->dump() : std::string();
}

bool Finished(const nlohmann::json& run) {
  const auto flows = NumberAt(run, "flows");
  const auto finished = NumberAt(run, "finished");
  return !BoolAt(run, "missed_deadline") && (!flows || !finished || *finished >= *flows);
}

bool PortsHaveALimit(const nlohmann::json& scenario) {
  return !BoolAt(scenario, "fabric.pfc") && TextAt(scenario, "fabric.buffer") != "shared";
}

Figure FigureOf(const nlohmann::json& results, const std::string& algorithm, std::string_view path) {
  Figure figure;
  double sum = 0;
  for (const auto& run : Runs(results)) {
    if (AlgorithmOf(run) != algorithm) continue;
    const auto value = NumberAt(run, path);
    if (!value) continue;
    figure.min = figure.runs == 0 ? *value : std::min(figure.min, *value);
    figure.max = figure.runs == 0 ? *value : std::max(figure.max, *value);
    sum += *value;
    ++figure.runs;
  }
  if (figure.runs > 0) figure.mean = sum / figure.runs;
  return figure;
}

}  // namespace paceline::tools
