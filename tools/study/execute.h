// Runs all (section, algorithm, seed) of a study, several at a time, with the progress on a terminal. The results do
// not depend on how many run at a time, nor on how many processes share the runs: of P processes, rank r has the runs
// r, r + P, r + 2P and so on, and rank 0 gets all outcomes.
//
// Thread rule: called once at a time; starts and joins its own threads. Collective where there is an exchange.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "tools/study/ranks/run_exchange.h"
#include "tools/study/run.h"
#include "tools/study/study_file.h"

namespace paceline::tools {

struct ExecuteOptions {
  unsigned jobs = 1;
  bool show_progress = false;       // to stderr, of this process's own runs
  RunExchange* exchange = nullptr;  // the other processes, not owned; null: there are none
};

// By section, then in the order of algorithms and seeds; without a run at other ranks than 0. An error is the same at
// every rank.
absl::StatusOr<std::vector<std::vector<RunOutcome>>> ExecuteStudy(const Study& study, const ExecuteOptions& options);

}  // namespace paceline::tools
