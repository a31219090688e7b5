#include "tools/study/ranks/open_exchange.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace paceline::tools {
namespace {

// Where it is both in a build and installed, wherever that was moved to.
std::string ModulePath() {
  std::error_code error;
  const std::filesystem::path command = std::filesystem::read_symlink("/proc/self/exe", error);
  return (command.parent_path() / PACELINE_MODULE_FOLDER / "study_mpi.so").lexically_normal().string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunExchange>> OpenExchange(const LauncherRank& launched) {
  const std::string started = absl::StrCat(launched.launcher, " started ", launched.world, " processes");
  const std::string path = ModulePath();
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat(started, ", but this Paceline was built without MPI (there is no ", path,
                     "): install libopenmpi-dev and openmpi-bin and build it again, or start the study without ",
                     launched.launcher));
  }
  // MPI would end the process with a page of its own words.
  if (launched.launcher == "srun" && std::getenv("PMIX_RANK") == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(started,
                     ", but without PMIx, by which MPI in them meets: start them with srun --mpi=pmix (srun "
                     "--mpi=list names what this cluster has), or with mpirun inside the job"));
  }
  // It stays loaded: MPI leaves functions behind that are called when the process ends. Its own modules look for its
  // names among the global ones.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* make = module != nullptr ? dlsym(module, kMakeRunExchange) : nullptr;
  if (make == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(started, ", but what they need to meet does not load (is openmpi-bin installed?): ", dlerror()));
  }
  std::unique_ptr<RunExchange> exchange(reinterpret_cast<MakeRunExchange*>(make)());
  if (exchange->size() != launched.world) {
    return absl::FailedPreconditionError(absl::StrCat(started, ", but MPI in them sees ", exchange->size(),
                                                      ": start them with the mpirun of the MPI that Paceline was ",
                                                      "built with, or with srun --mpi=pmix"));
  }
  return exchange;
}

}  // namespace paceline::tools
