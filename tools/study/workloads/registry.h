// The kinds of workloads by name. Each is declared here and lives in a file of its own in this folder.
// Thread rule: constants.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/study/workloads/pattern.h"

namespace paceline::tools {

struct WorkloadKind {
  std::string name;
  // Mistakes go into the reader; the pattern is of use only when there are none.
  std::unique_ptr<const Pattern> (*load)(PatternReader& reader);
};

const std::vector<WorkloadKind>& WorkloadKinds();

}  // namespace paceline::tools
