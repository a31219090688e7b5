// Reads the [workload] table: the keys that every kind has, then those of the chosen kind (tools/study/workloads). Keys
// of other kinds are let be, so that sections and overrides may change the kind alone.
//
// Thread rule: control path.
#pragma once

#include <toml++/toml.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "tools/study/workload.h"

namespace paceline::tools {

// `table`: nullptr for all defaults. `directory`: where relative file names start from. `resolved` gets all keys that
// count, defaults filled in.
absl::StatusOr<WorkloadConfig> LoadWorkload(const toml::table* table, const std::string& directory,
                                            nlohmann::json& resolved);

}  // namespace paceline::tools
