// Runs all (section, algorithm, seed) of a study, several at a time, with the progress on a terminal. The results do
// not depend on how many run at a time.
//
// Thread rule: called once at a time; starts and joins its own threads.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "tools/study/run.h"
#include "tools/study/study_file.h"

namespace paceline::tools {

struct ExecuteOptions {
  unsigned jobs = 1;
  bool show_progress = false;  // to stderr
};

// By section, then in the order of algorithms and seeds.
absl::StatusOr<std::vector<std::vector<RunOutcome>>> ExecuteStudy(const Study& study, const ExecuteOptions& options);

}  // namespace paceline::tools
