// `paceline study`: reads a scenario, runs it, writes results.
// Thread rule: main thread.
#pragma once

#include <CLI/CLI.hpp>

namespace paceline::tools {

// Adds the subcommand. When it was chosen, the parse leaves its exit status (0 done, 1 a run missed its deadline or
// failed, 2 wrong use) in *exit_status.
CLI::App* AddStudyCommand(CLI::App& app, int* exit_status);

}  // namespace paceline::tools
