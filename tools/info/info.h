// `paceline info`: what works on this machine and why the rest does not: lanes, network interfaces, RDMA cards, GPUs,
// plugins, congestion-control algorithms with their parameters, contexts that are running.
//
// Thread rule: main thread.
#pragma once

#include "CLI/CLI.hpp"

namespace paceline::tools {

// Adds the subcommand. When it was chosen, the parse leaves its exit status in *exit_status.
CLI::App* AddInfoCommand(CLI::App& app, int* exit_status);

}  // namespace paceline::tools
