// What a launcher (mpirun, srun, torchrun) tells a process that it started, through the environment.
//
// Thread rule: reads the environment; call while nobody sets it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace paceline::tools {

struct LauncherRank {
  std::string launcher;  // "mpirun", "srun", "torchrun"
  uint32_t rank = 0;
  uint32_t world = 1;
  uint32_t local_ranks = 1;  // on this machine
};

// Nothing when this process was not started by a launcher with more than one rank.
std::optional<LauncherRank> FindLauncherRank();

// The same for launchers of MPI programs: torchrun is none, and what the innermost one says counts, as an mpirun inside
// a job of srun hides that job.
std::optional<LauncherRank> FindMpiRank();

// Whether what this process writes to its standard error ends up on a terminal: its own, or that of the launcher on
// this machine, which has it through a pipe.
bool ErrorsGoToTerminal();

// A number from the environment, at most a million.
std::optional<uint32_t> EnvironmentNumber(const char* name);

}  // namespace paceline::tools
