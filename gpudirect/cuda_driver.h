// The CUDA driver (libcuda.so.1), loaded at run time: one build serves machines with and without a GPU, and needs no
// header of CUDA. Only what Paceline calls is declared, with the driver's own numbers.
//
// Thread rule: after Load every call may come from any thread, as the driver allows. Ownership: one object per process
// is enough; the library stays loaded, as threads of the driver's may still run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace paceline::gpudirect {

using CudaResult = int;  // 0: success
inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaInvalidValue = 1;
inline constexpr CudaResult kCudaNotReady = 600;  // an event that has not happened yet

using DevicePointer = uint64_t;
using CudaStream = void*;
using CudaEvent = void*;
using CudaContext = void*;

// What cuPointerGetAttributes is asked for, and what it may answer to the kind.
inline constexpr int kAttributeMemoryType = 2;
inline constexpr int kAttributeBufferId = 7;
inline constexpr int kAttributeIsManaged = 8;
inline constexpr int kAttributeDeviceOrdinal = 9;
inline constexpr unsigned kMemoryTypeHost = 1;
inline constexpr unsigned kMemoryTypeDevice = 2;

// What cuDeviceGetAttribute is asked for: whether the GPU's memory can be given to other devices by the kernel module
// nvidia_peermem or by dma-bufs, and how what they write there becomes visible.
inline constexpr int kDeviceGpuDirectRdmaSupported = 116;
inline constexpr int kDeviceFlushWritesOptions = 117;  // bits
inline constexpr int kDeviceWritesOrdering = 118;
inline constexpr int kDeviceDmaBufSupported = 124;
inline constexpr int kFlushByHost = 1;       // of the options: cuFlushGPUDirectRDMAWrites works
inline constexpr int kOrderedToOwner = 100;  // of the ordering, or more: kernels of this GPU need no flush

inline constexpr int kHandleTypeDmaBuf = 1;     // of cuMemGetHandleForAddressRange
inline constexpr int kFlushCurrentContext = 0;  // of cuFlushGPUDirectRDMAWrites: what is flushed,
inline constexpr int kFlushToOwner = 100;       // and for whom
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;

class CudaDriver {
 public:
  // `library`: a path or a name for the loader. Fails with the reason where there is none, it lacks a function, cuInit
  // fails, or it sees no device.
  static absl::StatusOr<std::unique_ptr<CudaDriver>> Load(const std::string& library = "libcuda.so.1");

  // The driver of this process, loaded at the first call, and there until all objects of static storage are gone;
  // nullptr: there is none. `reason` (may be nullptr): why.
  static const CudaDriver* Get(std::string* reason = nullptr);

  int device_count() const { return device_count_; }
  int version() const { return version_; }  // 12020: the driver speaks CUDA 12.2

  // An error with the name that the driver has for it: "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY".
  absl::Status Error(const char* call, CudaResult result) const;

  // ---- the driver's calls, by their own names and signatures
  CudaResult (*cuInit)(unsigned flags) = nullptr;
  CudaResult (*cuDriverGetVersion)(int* version) = nullptr;
  CudaResult (*cuGetErrorName)(CudaResult result, const char** name) = nullptr;
  CudaResult (*cuDeviceGetCount)(int* count) = nullptr;
  CudaResult (*cuDeviceGet)(int* device, int ordinal) = nullptr;
  CudaResult (*cuDeviceGetName)(char* name, int size, int device) = nullptr;
  CudaResult (*cuDeviceGetPCIBusId)(char* id, int size, int device) = nullptr;
  CudaResult (*cuDeviceGetAttribute)(int* value, int attribute, int device) = nullptr;
  CudaResult (*cuDevicePrimaryCtxGetState)(int device, unsigned* flags, int* active) = nullptr;
  CudaResult (*cuDevicePrimaryCtxRetain)(CudaContext* context, int device) = nullptr;
  CudaResult (*cuDevicePrimaryCtxRelease)(int device) = nullptr;
  CudaResult (*cuCtxPushCurrent)(CudaContext context) = nullptr;
  CudaResult (*cuCtxPopCurrent)(CudaContext* context) = nullptr;
  CudaResult (*cuPointerGetAttributes)(unsigned count, int* attributes, void** data, DevicePointer pointer) = nullptr;
  CudaResult (*cuMemGetHandleForAddressRange)(void* handle, DevicePointer pointer, size_t bytes, int type,
                                              unsigned long long flags) = nullptr;  // may be absent: before CUDA 11.7
  CudaResult (*cuFlushGPUDirectRDMAWrites)(int target, int scope) = nullptr;        // may be absent: before CUDA 11.3
  CudaResult (*cuMemHostAlloc)(void** pointer, size_t bytes, unsigned flags) = nullptr;
  CudaResult (*cuMemFreeHost)(void* pointer) = nullptr;
  CudaResult (*cuMemcpyDtoHAsync)(void* to, DevicePointer from, size_t bytes, CudaStream stream) = nullptr;
  CudaResult (*cuMemcpyHtoDAsync)(DevicePointer to, const void* from, size_t bytes, CudaStream stream) = nullptr;
  CudaResult (*cuStreamCreate)(CudaStream* stream, unsigned flags) = nullptr;
  CudaResult (*cuStreamDestroy)(CudaStream stream) = nullptr;
  CudaResult (*cuStreamSynchronize)(CudaStream stream) = nullptr;
  CudaResult (*cuEventCreate)(CudaEvent* event, unsigned flags) = nullptr;
  CudaResult (*cuEventDestroy)(CudaEvent event) = nullptr;
  CudaResult (*cuEventRecord)(CudaEvent event, CudaStream stream) = nullptr;
  CudaResult (*cuEventQuery)(CudaEvent event) = nullptr;

 private:
  CudaDriver() = default;
  absl::Status Resolve(void* library);

  int device_count_ = 0;
  int version_ = 0;
};

// Makes a device's primary context, which the CUDA runtime uses too, current for this thread while it lives.
class CudaScope {
 public:
  CudaScope(const CudaDriver& driver, CudaContext context) : driver_(driver) {
    ok_ = driver_.cuCtxPushCurrent(context) == kCudaSuccess;
  }
  ~CudaScope() {
    CudaContext context;
    if (ok_) driver_.cuCtxPopCurrent(&context);
  }
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

 private:
  const CudaDriver& driver_;
  bool ok_;
};

}  // namespace paceline::gpudirect
