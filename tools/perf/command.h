// `paceline perf`: measures latency, throughput and loss between processes.
//
// Thread rule: main thread, before any other thread exists (it may fork).
#pragma once

#include "CLI/CLI.hpp"

namespace paceline::tools {

// Adds the subcommand. When it was chosen, the parse leaves its exit status (0 done and verified, 1 failed, 2 wrong
// use) in *exit_status.
CLI::App* AddPerfCommand(CLI::App& app, int* exit_status);

}  // namespace paceline::tools
