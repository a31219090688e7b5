// Loads the module with the lane in it, from beside the library or command that this code is part of.
#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "transport/lane/dpdk/dpdk_lane.h"
#include "transport/lane/dpdk/dpdk_module.h"

namespace paceline {
namespace {

constexpr char kModule[] = "paceline/libpaceline-dpdk.so";

// The folder of the shared library or program that holds this function.
std::filesystem::path OwnFolder() {
  std::error_code error;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) != 0 && info.dli_fname != nullptr) {
    const std::filesystem::path path = std::filesystem::canonical(info.dli_fname, error);
    if (!error) return path.parent_path();
  }
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

// Beside a library, or in the folder of libraries that goes with a folder of commands or of plugins.
absl::StatusOr<std::string> FindModule() {
  const std::filesystem::path folder = OwnFolder();
  for (const char* step : {".", "..", "../lib", "../" PACELINE_LIBRARY_FOLDER}) {
    const std::filesystem::path path = (folder / step / kModule).lexically_normal();
    if (std::error_code error; std::filesystem::exists(path, error)) return path.string();
  }
  return absl::NotFoundError(absl::StrCat("the module ", kModule, " is not beside ", folder.string(),
                                          ": it is installed with Paceline where that was built with DPDK"));
}

absl::StatusOr<const DpdkModule*> Load() {
  const auto path = FindModule();
  if (!path.ok()) return path.status();
  // Never unloaded: DPDK has threads and handlers of its own.
  void* module = dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "DPDK is not installed (Debian: librte-ethdev23, librte-meta-net, librte-mempool-ring23): ", dlerror()));
  }
  const auto* table = static_cast<const DpdkModule*>(dlsym(module, kDpdkModuleSymbol));
  if (table == nullptr || std::string(table->version) != PACELINE_VERSION) {
    return absl::FailedPreconditionError(absl::StrCat(*path, " is of another Paceline than this one (",
                                                      PACELINE_VERSION, "): install both from one build"));
  }
  return table;
}

absl::StatusOr<const DpdkModule*> LoadDpdkModule() {
  // Not on the heap: the plugin that this code is part of may be unloaded.
  static const absl::StatusOr<const DpdkModule*> module = Load();
  return module;
}

}  // namespace

absl::Status CheckDpdkLane() {
  const auto module = LoadDpdkModule();
  return module.ok() ? (*module)->check() : module.status();
}

absl::StatusOr<std::vector<std::unique_ptr<Lane>>> CreateDpdkLanes(const DpdkLaneOptions& options) {
  const auto module = LoadDpdkModule();
  if (!module.ok())
    return absl::Status(module.status().code(), absl::StrCat("lane \"dpdk\": ", module.status().message()));
  return (*module)->create(options);
}

}  // namespace paceline
