#include "tools/study/traffic.h"

#include <toml++/toml.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/study/read_file.h"
#include "tools/study/table_reader.h"

namespace paceline::tools {
namespace {

constexpr char kLlama3[] = "llama3-70b";
constexpr char kLlama3Toml[] = R"(
  [model]
  layers = 80
  hidden = 8192
  parameters = 70e9
  bytes_per_value = 2
  mini_batches = 178000
  tokens = 156e9
  gpus = 8
)";

// "1396 PB", "27.9 EB".
std::string Shown(double bytes) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  while (bytes >= 9999.5 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", bytes < 1000 ? 1 : 0, bytes, units[unit]);
}

}  // namespace

absl::StatusOr<TrafficModel> ParseTrafficModel(std::string_view text, const std::string& name) {
  toml::table table;
  try {
    table = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ":", error.source().begin.line, ": ", std::string(error.description())));
  }
  TableReader top("", &table);
  TableReader reader("model", top.Table("model"));
  TrafficModel model;
  model.name = name;
  const auto needed = [&](const char* key, double max) {
    if (!reader.Has(key)) reader.Fail(key, absl::StrCat("is missing: a number from 1 to ", max));
    return reader.Number(key, 1, 1, max);
  };
  model.layers = needed("layers", 1e6);
  model.hidden = needed("hidden", 1e9);
  model.parameters = needed("parameters", 1e18);
  model.mini_batches = needed("mini_batches", 1e15);
  model.tokens = needed("tokens", 1e18);
  model.bytes_per_value = reader.Number("bytes_per_value", model.bytes_per_value, 0.125, 8);
  model.gpus = static_cast<double>(reader.Integer("gpus", 8, 1, 10'000'000));
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  if (absl::Status status = top.Finish(); !status.ok()) return status;
  return model;
}

absl::StatusOr<TrafficModel> LoadTrafficModel(const std::string& name) {
  if (name == kLlama3) return ParseTrafficModel(kLlama3Toml, name);
  const absl::StatusOr<std::string> text = ReadFile(name);
  if (text.ok()) return ParseTrafficModel(*text, name);
  return absl::NotFoundError(
      absl::StrCat("\"", name, "\" is neither ", kLlama3, " nor a file that can be read: ", text.status().message()));
}

std::vector<TrafficRow> TrafficOf(const TrafficModel& model) {
  const double others = model.gpus - 1;
  const double parameters = model.bytes_per_value * model.mini_batches * model.parameters;
  const double activations = model.bytes_per_value * model.tokens * model.hidden;
  return {
      {"data parallel", 2 * parameters * others, parameters * model.gpus * others},
      {"fully sharded, forward", parameters * others, parameters * others},
      {"fully sharded, backward", 2 * parameters * others, parameters * others},
      {"tensor parallel, forward", 4 * activations * model.layers * others,
       2 * activations * model.layers * model.gpus * others},
      {"tensor parallel, backward", 4 * activations * model.layers * others, 2 * parameters * model.layers * others},
      {"pipeline, each way", activations * others, activations * others}};
}

std::string TrafficTable(const TrafficModel& model) {
  std::string text = absl::StrFormat(
      "%s: %g layers, hidden %g, %g parameters of %g bytes, %g mini-batches and %g tokens an epoch, %g GPUs in the "
      "dimension\n%-26s %18s %18s\n",
      model.name, model.layers, model.hidden, model.parameters, model.bytes_per_value, model.mini_batches, model.tokens,
      model.gpus, "bytes of an epoch", "own algorithm", "every pair");
  for (const TrafficRow& row : TrafficOf(model)) {
    absl::StrAppendFormat(&text, "%-26s %18s %18s\n", row.what, Shown(row.own_bytes), Shown(row.published_bytes));
  }
  return text;
}

nlohmann::json TrafficJson(const TrafficModel& model) {
  nlohmann::json rows = nlohmann::json::array();
  for (const TrafficRow& row : TrafficOf(model)) {
    rows.push_back({{"what", row.what}, {"own_bytes", row.own_bytes}, {"every_pair_bytes", row.published_bytes}});
  }
  return {{"model",
           {{"name", model.name},
            {"layers", model.layers},
            {"hidden", model.hidden},
            {"parameters", model.parameters},
            {"bytes_per_value", model.bytes_per_value},
            {"mini_batches", model.mini_batches},
            {"tokens", model.tokens},
            {"gpus", model.gpus}}},
          {"traffic", std::move(rows)}};
}

}  // namespace paceline::tools
