#include "tools/study/load_workload.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/study/micros.h"
#include "tools/study/table_reader.h"
#include "tools/study/workloads/flow_sizes.h"
#include "tools/study/workloads/registry.h"

namespace paceline::tools {

using nlohmann::json;

namespace {

void LoadBackground(TableReader& reader, const std::string& directory, Background& background, json& resolved) {
  background.load = reader.Number("background_load", 0, 0, 2);
  const std::string name = reader.Text("background_sizes", "web_search");
  const double micros = reader.Number("background_us", 10'000, 0, kMaxMicros);
  background.lasts = MicrosToPicos(micros);
  if (background.load == 0) return;
  const absl::StatusOr<FlowSizes> sizes = FlowSizes::Load(name, directory);
  if (sizes.ok()) {
    background.sizes = std::make_shared<const FlowSizes>(*sizes);
  } else {
    reader.Fail("background_sizes", absl::StrCat("= ", std::string(sizes.status().message())));
  }
  resolved["background_load"] = background.load;
  resolved["background_sizes"] = name;
  resolved["background_us"] = micros;
}

}  // namespace

absl::StatusOr<WorkloadConfig> LoadWorkload(const toml::table* table, const std::string& directory, json& resolved) {
  TableReader reader("workload", table);
  std::vector<std::string> names;
  for (const WorkloadKind& kind : WorkloadKinds()) names.push_back(kind.name);
  WorkloadConfig config;
  config.kind = reader.Choice("kind", "incast", names);
  resolved["kind"] = config.kind;
  for (const WorkloadKind& kind : WorkloadKinds()) {
    if (kind.name == config.kind) {
      PatternReader own(reader, resolved, directory);
      config.pattern = kind.load(own);
      continue;
    }
    TableReader defaults("workload", nullptr);
    json ignored;
    PatternReader others(defaults, ignored, directory);
    kind.load(others);
    reader.AlsoKnown(defaults);
  }
  if (config.kind != "connection_matrix" && reader.Has("file")) {
    reader.Fail("file", "goes with kind = \"connection_matrix\" only");
  }
  config.window = static_cast<uint32_t>(reader.Integer("window", 0, 0, 65535));
  config.posted_ahead = reader.Bool("posted_ahead", false);
  LoadBackground(reader, directory, config.background, resolved);
  const double start = reader.Number("start_us", 0, 0, kMaxMicros);
  const double jitter = reader.Number("start_jitter_us", 0, 0, kMaxMicros);
  config.start = MicrosToPicos(start);
  config.start_jitter = MicrosToPicos(jitter);
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  resolved["posted_ahead"] = config.posted_ahead;
  resolved["start_us"] = start;
  resolved["start_jitter_us"] = jitter;
  if (config.pattern->independent()) resolved["window"] = config.window;
  return config;
}

}  // namespace paceline::tools
