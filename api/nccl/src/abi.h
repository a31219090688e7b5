// What NCCL and a network plugin agree on, versions 6 to 12, in our own words: the values, the callbacks, and for each
// version the table of calls (`ncclNetPlugin_vN`) and the properties of a device. Binary layouts only, taken from
// NCCL's public plugin interface; tests/unit/api/nccl/abi_test.cc holds sizes and offsets to numbers written down by
// hand. Tests drive plugins through the same declarations.
//
// Thread rule: plain values. Sizes in bytes, speeds in Mb/s.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::nccl::abi {

// ---- values

enum class Result : int {
  kSuccess = 0,
  kCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
};

enum class LogLevel : int { kNone = 0, kVersion = 1, kWarn = 2, kInfo = 3, kAbort = 4, kTrace = 5 };

inline constexpr unsigned long kLogInit = 0x1;  // parts of NCCL, as NCCL_DEBUG_SUBSYS names them
inline constexpr unsigned long kLogNet = 0x10;
inline constexpr unsigned long kLogAll = ~0ul;

inline constexpr int kPointerHost = 0x1;  // kinds of memory, bits
inline constexpr int kPointerCuda = 0x2;
inline constexpr int kPointerDmaBuf = 0x4;

inline constexpr size_t kHandleBytes = 128;
inline constexpr int kMaxRequests = 32;  // that NCCL has in flight per comm; times maxRecvs at the sending side
inline constexpr int kUndefined = -1;    // traffic class, rail, plane, attributes: nothing said
inline constexpr int kDeviceTypeHost = 0;
inline constexpr int kDeviceVersionNone = 0;
inline constexpr uint64_t kMostBytes = 1ull << 40;  // that maxP2pBytes may say

// ---- callbacks

// Printf-like. `flags`: parts of NCCL that the message is about.
using Logger = void (*)(LogLevel level, unsigned long flags, const char* file, int line, const char* format, ...);

enum class ProfilerEvent : int { kStart = 0, kStop = 1, kUpdate = 2, kUpdateAndStop = 3 };
// `event`: written at the start, given back at the end. `parent`: the phandle that NCCL passed with the operation.
// `plugin`: whose layout `data` has.
using Profiler = Result (*)(void** event, ProfilerEvent type, void* parent, int64_t plugin, void* data);

// ---- properties of a device

template <int kMaxDevices>
struct VirtualDevice {
  int count;
  int devices[kMaxDevices];
};

struct PropertiesV6 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
};

struct PropertiesV7 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
};

struct PropertiesV8 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
};

struct PropertiesV9 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<4> virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
};

using PropertiesV10 = PropertiesV9;

struct PropertiesV11 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<4> virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
  int max_multi_request_size;
};

struct PropertiesV12 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<8> virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
  int max_multi_request_size;
  int16_t rail;
  int16_t plane;
};

// ---- what comes with a communicator (v10 and up)

struct CommunicatorConfig {
  int traffic_class;  // kUndefined: none asked for
};

// What is coming, at one side of the network. kUndefined: not said.
struct PeerAttributes {
  int32_t max_concurrent_peers;
  int32_t min_concurrent_peers;
  int32_t max_flows_per_peer;
  int32_t min_flows_per_peer;
};

struct NetAttributes {
  PeerAttributes send;
  PeerAttributes receive;
  uint32_t operation;  // bits
  uint32_t algorithm;
  uint32_t protocol;
};

// ---- the tables

// Members that several versions have alike, in runs that lie together in all of them.
struct CloseCalls {
  Result (*close_send)(void* comm);
  Result (*close_receive)(void* comm);
  Result (*close_listen)(void* comm);
};

// Of networks that move data by kernels of the GPU; others leave them null.
struct OffloadCalls {
  Result (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Result (*receive_consumed)(void* comm, int count, void* request);
};

struct NetV6 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV6* properties);
  Result (*listen)(int device, void* handle, void** listener);
  Result (*connect)(int device, void* handle, void** comm);
  Result (*accept)(void* listener, void** comm);
  Result (*register_memory)(void* comm, void* data, int bytes, int type, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** memory);
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*send)(void* comm, void* data, int bytes, int tag, void* memory, void** request);
  Result (*receive)(void* comm, int count, void** data, int* bytes, int* tags, void** memory, void** request);
  Result (*flush)(void* comm, int count, void** data, int* bytes, void** memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  CloseCalls close;
};

struct NetV7 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV7* properties);
  Result (*listen)(int device, void* handle, void** listener);
  Result (*connect)(int device, void* handle, void** comm, void** device_handle);
  Result (*accept)(void* listener, void** comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, int bytes, int type, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** memory);
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*send)(void* comm, void* data, int bytes, int tag, void* memory, void** request);
  Result (*receive)(void* comm, int count, void** data, int* bytes, int* tags, void** memory, void** request);
  Result (*flush)(void* comm, int count, void** data, int* bytes, void** memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  CloseCalls close;
  OffloadCalls offload;
};

struct NetV8 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV8* properties);
  Result (*listen)(int device, void* handle, void** listener);
  Result (*connect)(int device, void* handle, void** comm, void** device_handle);
  Result (*accept)(void* listener, void** comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** memory);
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*send)(void* comm, void* data, int bytes, int tag, void* memory, void** request);
  Result (*receive)(void* comm, int count, void** data, int* bytes, int* tags, void** memory, void** request);
  Result (*flush)(void* comm, int count, void** data, int* bytes, void** memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  CloseCalls close;
  OffloadCalls offload;
};

struct NetV9 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV9* properties);
  Result (*listen)(int device, void* handle, void** listener);
  Result (*connect)(int device, void* handle, void** comm, void** device_handle);
  Result (*accept)(void* listener, void** comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** memory);
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*send)(void* comm, void* data, size_t bytes, int tag, void* memory, void** request);
  Result (*receive)(void* comm, int count, void** data, size_t* bytes, int* tags, void** memory, void** request);
  Result (*flush)(void* comm, int count, void** data, int* bytes, void** memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  CloseCalls close;
  OffloadCalls offload;
  Result (*make_virtual_device)(int* device, VirtualDevice<4>* parts);
};

struct NetV10 {
  const char* name;
  Result (*init)(Logger logger, Profiler profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV10* properties);
  Result (*listen)(int device, void* handle, void** listener);
  Result (*connect)(int device, CommunicatorConfig* config, void* handle, void** comm, void** device_handle);
  Result (*accept)(void* listener, void** comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** memory);
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*send)(void* comm, void* data, size_t bytes, int tag, void* memory, void* parent, void** request);
  Result (*receive)(void* comm, int count, void** data, size_t* bytes, int* tags, void** memory, void** parents,
                    void** request);
  Result (*flush)(void* comm, int count, void** data, int* bytes, void** memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  CloseCalls close;
  OffloadCalls offload;
  Result (*make_virtual_device)(int* device, VirtualDevice<4>* parts);
};

struct NetV11 {
  const char* name;
  Result (*init)(void** communicator, uint64_t id, CommunicatorConfig* config, Logger logger, Profiler profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV11* properties);
  Result (*listen)(void* communicator, int device, void* handle, void** listener);
  Result (*connect)(void* communicator, int device, void* handle, void** comm, void** device_handle);
  Result (*accept)(void* listener, void** comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** memory);
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*send)(void* comm, void* data, size_t bytes, int tag, void* memory, void* parent, void** request);
  Result (*receive)(void* comm, int count, void** data, size_t* bytes, int* tags, void** memory, void** parents,
                    void** request);
  Result (*flush)(void* comm, int count, void** data, int* bytes, void** memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  CloseCalls close;
  OffloadCalls offload;
  Result (*make_virtual_device)(int* device, VirtualDevice<4>* parts);
  Result (*finalize)(void* communicator);
  Result (*set_attributes)(void* communicator, NetAttributes* attributes);
};

struct NetV12 {
  const char* name;
  Result (*init)(void** communicator, uint64_t id, CommunicatorConfig* config, Logger logger, Profiler profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV12* properties);
  Result (*listen)(void* communicator, int device, void* handle, void** listener);
  Result (*connect)(void* communicator, int device, void* handle, void** comm, void** device_handle);
  Result (*accept)(void* listener, void** comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** memory);
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*send)(void* comm, void* data, size_t bytes, int tag, void* memory, void* parent, void** request);
  Result (*receive)(void* comm, int count, void** data, size_t* bytes, int* tags, void** memory, void** parents,
                    void** request);
  Result (*flush)(void* comm, int count, void** data, int* bytes, void** memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  CloseCalls close;
  OffloadCalls offload;
  Result (*make_virtual_device)(int* device, VirtualDevice<8>* parts);
  Result (*finalize)(void* communicator);
  Result (*set_attributes)(void* communicator, NetAttributes* attributes);
};

}  // namespace paceline::nccl::abi
