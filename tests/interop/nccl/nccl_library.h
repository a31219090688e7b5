// NCCL itself, loaded at run time: what the collectives' program calls, by NCCL's own names and numbers (nccl.h of 2.16
// and later, which have not changed). No header of NCCL is needed to build.
//
// Thread rule: NCCL's. Ownership: the library stays loaded, as its threads may still run.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gpudirect/cuda_driver.h"

namespace paceline::nccl_test {

struct NcclUniqueId {
  char bytes[128];
};
using NcclComm = struct NcclCommOpaque*;
using NcclResult = int;  // 0: success
inline constexpr NcclResult kNcclInProgress = 7;
inline constexpr int kNcclUint32 = 3;  // ncclDataType_t
inline constexpr int kNcclSum = 0;     // ncclRedOp_t

class NcclLibrary {
 public:
  // `library`: a path or a name for the loader.
  static absl::StatusOr<std::unique_ptr<NcclLibrary>> Load(const std::string& library);

  // Ends the process with what NCCL says of the error.
  void Check(NcclResult result, const std::string& what) const;
  std::string Version() const;  // "2.28.9"

  using Stream = gpudirect::CudaStream;
  NcclResult (*ncclGetVersion)(int* version) = nullptr;
  const char* (*ncclGetErrorString)(NcclResult result) = nullptr;
  const char* (*ncclGetLastError)(NcclComm comm) = nullptr;
  NcclResult (*ncclGetUniqueId)(NcclUniqueId* id) = nullptr;
  NcclResult (*ncclCommInitRank)(NcclComm* comm, int ranks, NcclUniqueId id, int rank) = nullptr;
  NcclResult (*ncclCommGetAsyncError)(NcclComm comm, NcclResult* error) = nullptr;
  NcclResult (*ncclCommFinalize)(NcclComm comm) = nullptr;
  NcclResult (*ncclCommDestroy)(NcclComm comm) = nullptr;
  NcclResult (*ncclGroupStart)() = nullptr;
  NcclResult (*ncclGroupEnd)() = nullptr;
  NcclResult (*ncclAllReduce)(const void* from, void* to, size_t count, int type, int operation, NcclComm comm,
                              Stream stream) = nullptr;
  NcclResult (*ncclReduceScatter)(const void* from, void* to, size_t count_each, int type, int operation, NcclComm comm,
                                  Stream stream) = nullptr;
  NcclResult (*ncclAllGather)(const void* from, void* to, size_t count_each, int type, NcclComm comm,
                              Stream stream) = nullptr;
  NcclResult (*ncclBroadcast)(const void* from, void* to, size_t count, int type, int root, NcclComm comm,
                              Stream stream) = nullptr;
  NcclResult (*ncclReduce)(const void* from, void* to, size_t count, int type, int operation, int root, NcclComm comm,
                           Stream stream) = nullptr;
  NcclResult (*ncclSend)(const void* from, size_t count, int type, int peer, NcclComm comm, Stream stream) = nullptr;
  NcclResult (*ncclRecv)(void* to, size_t count, int type, int peer, NcclComm comm, Stream stream) = nullptr;

 private:
  NcclLibrary() = default;
};

}  // namespace paceline::nccl_test
