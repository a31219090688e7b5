#include "tools/study/load_workload.h"

#include <utility>
#include <vector>

#include "tools/study/micros.h"
#include "tools/study/table_reader.h"
#include "tools/study/workloads/registry.h"

namespace paceline::tools {

using nlohmann::json;

absl::StatusOr<WorkloadConfig> LoadWorkload(const toml::table* table, const std::string& directory, json& resolved) {
  TableReader reader("workload", table);
  std::vector<std::string> names;
  for (const WorkloadKind& kind : WorkloadKinds()) names.push_back(kind.name);
  WorkloadConfig config;
  config.kind = reader.Choice("kind", "incast", names, PlannedWorkloadKinds());
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
  const double start = reader.Number("start_us", 0, 0, kMaxMicros);
  const double jitter = reader.Number("start_jitter_us", 0, 0, kMaxMicros);
  config.start = MicrosToPicos(start);
  config.start_jitter = MicrosToPicos(jitter);
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  resolved["posted_ahead"] = config.posted_ahead;
  resolved["start_us"] = start;
  if (config.pattern->independent()) {
    resolved["window"] = config.window;
    resolved["start_jitter_us"] = jitter;
  }
  return config;
}

}  // namespace paceline::tools
