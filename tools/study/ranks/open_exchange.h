// Loads the module with which a process that mpirun or srun started meets the others.
//
// Thread rule: main thread, before others are started; once in the life of a process.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tools/launcher/launcher_rank.h"
#include "tools/study/ranks/run_exchange.h"

namespace paceline::tools {

// An error says what to install or how to start, and is the same in all processes.
absl::StatusOr<std::unique_ptr<RunExchange>> OpenExchange(const LauncherRank& launched);

}  // namespace paceline::tools
