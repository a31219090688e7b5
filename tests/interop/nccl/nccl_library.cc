#include "tests/interop/nccl/nccl_library.h"

#include <dlfcn.h>

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "tests/interop/nccl/proxy.h"

namespace paceline::nccl_test {

absl::StatusOr<std::unique_ptr<NcclLibrary>> NcclLibrary::Load(const std::string& library) {
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return absl::NotFoundError(absl::StrCat("NCCL: ", dlerror()));
  std::unique_ptr<NcclLibrary> nccl(new NcclLibrary());
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(loaded, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(nccl->ncclGetVersion, "ncclGetVersion");
  find(nccl->ncclGetErrorString, "ncclGetErrorString");
  find(nccl->ncclGetLastError, "ncclGetLastError");
  find(nccl->ncclGetUniqueId, "ncclGetUniqueId");
  find(nccl->ncclCommInitRank, "ncclCommInitRank");
  find(nccl->ncclCommGetAsyncError, "ncclCommGetAsyncError");
  find(nccl->ncclCommFinalize, "ncclCommFinalize");
  find(nccl->ncclCommDestroy, "ncclCommDestroy");
  find(nccl->ncclGroupStart, "ncclGroupStart");
  find(nccl->ncclGroupEnd, "ncclGroupEnd");
  find(nccl->ncclAllReduce, "ncclAllReduce");
  find(nccl->ncclReduceScatter, "ncclReduceScatter");
  find(nccl->ncclAllGather, "ncclAllGather");
  find(nccl->ncclBroadcast, "ncclBroadcast");
  find(nccl->ncclReduce, "ncclReduce");
  find(nccl->ncclSend, "ncclSend");
  find(nccl->ncclRecv, "ncclRecv");
  if (missing.empty()) return nccl;
  return absl::FailedPreconditionError(absl::StrCat(library, " lacks the function ", missing));
}

void NcclLibrary::Check(NcclResult result, const std::string& what) const {
  if (result == 0) return;
  Fail(absl::StrCat(what, ": ", ncclGetErrorString(result), ": ", ncclGetLastError(nullptr)));
}

std::string NcclLibrary::Version() const {
  int version = 0;
  Check(ncclGetVersion(&version), "ncclGetVersion");
  return absl::StrCat(version / 10'000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace paceline::nccl_test
