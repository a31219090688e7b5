#include "tools/launcher/launcher_rank.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace paceline::tools {
namespace {

struct Names {
  const char *launcher, *rank, *world, *local;
};
// Inner ones first.
constexpr Names kOpenMpi = {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kTorch = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"};
constexpr Names kHydra = {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"};
constexpr Names kSlurm = {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"};

// Nothing when that launcher has not started this process.
std::optional<LauncherRank> Told(const Names& names) {
  const auto rank = EnvironmentNumber(names.rank);
  const auto world = EnvironmentNumber(names.world);
  if (!rank || !world || *rank >= *world) return std::nullopt;
  const auto local = EnvironmentNumber(names.local);
  return LauncherRank{names.launcher, *rank, *world, local && *local > 0 ? *local : 1};
}

}  // namespace

std::optional<uint32_t> EnvironmentNumber(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (end == text || value > 1'000'000) return std::nullopt;
  return static_cast<uint32_t>(value);
}

std::optional<LauncherRank> FindLauncherRank() {
  for (const Names& names : {kOpenMpi, kTorch, kHydra, kSlurm}) {
    if (auto told = Told(names); told && told->world > 1) return told;
  }
  return std::nullopt;
}

std::optional<LauncherRank> FindMpiRank() {
  for (const Names& names : {kOpenMpi, kHydra, kSlurm}) {
    if (auto told = Told(names)) return told->world > 1 ? told : std::nullopt;
  }
  return std::nullopt;
}

bool ErrorsGoToTerminal() {
  if (isatty(STDERR_FILENO) != 0) return true;
  if (!FindMpiRank()) return false;
  const std::string of_launcher = "/proc/" + std::to_string(getppid()) + "/fd/2";
  const int file = open(of_launcher.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return false;
  const bool terminal = isatty(file) != 0;
  close(file);
  return terminal;
}

}  // namespace paceline::tools
