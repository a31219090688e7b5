// The tables that NCCL looks up, one per version, each a thin coat over plugin.h: no rule of the plugin is here, only
// what an argument is called and how long it is in which version.
#include <climits>
#include <vector>

#include "api/nccl/src/plugin.h"

namespace paceline::nccl {
namespace {

using abi::Result;

constexpr char kName[] = "Paceline";

// ---- properties

template <typename Properties>
Result GetProperties(int device, Properties* out) {
  DeviceProperties found{};
  if (const Result result = Plugin::Get().Properties(device, &found); result != Result::kSuccess) return result;
  const Nic& nic = *found.nic;
  *out = {};
  out->name = const_cast<char*>(nic.name.c_str());
  out->pci_path = nic.pci_path.empty() ? nullptr : const_cast<char*>(nic.pci_path.c_str());
  out->guid = nic.guid;
  out->pointer_support = found.pointer_support;
  out->speed = nic.speed_mbps;
  out->port = nic.port;
  out->latency = 0;  // not stated: NCCL reckons with its own
  out->max_comms = 65536;
  out->max_receives = kMaxReceives;
  if constexpr (requires { out->device_type; }) {
    out->device_type = abi::kDeviceTypeHost;
    out->device_version = abi::kDeviceVersionNone;
  }
  if constexpr (requires { out->registration_is_global; }) out->registration_is_global = 1;
  if constexpr (requires { out->virtual_device; }) {
    out->force_flush = found.force_flush ? 1 : 0;
    out->max_p2p_bytes = found.most_bytes;
    out->max_collective_bytes = found.most_bytes;
    out->virtual_device.count = static_cast<int>(nic.parts.size());
    for (size_t i = 0; i < nic.parts.size() && i < std::size(out->virtual_device.devices); ++i) {
      out->virtual_device.devices[i] = nic.parts[i];
    }
  }
  if constexpr (requires { out->max_multi_request_size; }) out->max_multi_request_size = 1;
  if constexpr (requires { out->rail; }) out->rail = out->plane = abi::kUndefined;
  return Result::kSuccess;
}

// ---- what is alike in all versions

Result Devices(int* count) { return Plugin::Get().Devices(count); }

template <typename Bytes>
Result RegisterMemory(void* comm, void* data, Bytes bytes, int type, void** memory) {
  if constexpr (std::is_signed_v<Bytes>) {
    if (bytes < 0) return Result::kInvalidArgument;
  }
  return Plugin::Get().RegisterMemory("regMr", static_cast<Comm*>(comm), data, static_cast<size_t>(bytes), type, {},
                                      reinterpret_cast<Memory**>(memory));
}

Result RegisterDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** memory) {
  return Plugin::Get().RegisterMemory("regMrDmaBuf", static_cast<Comm*>(comm), data, bytes, type,
                                      {.descriptor = fd, .offset = offset}, reinterpret_cast<Memory**>(memory));
}

Result DeregisterMemory(void* /*comm*/, void* memory) {
  delete static_cast<Memory*>(memory);
  return Result::kSuccess;
}

Result Send(void* comm, void* data, size_t bytes, int tag, void* memory, void* parent, void** request) {
  const Comm::Slot slot = {
      .data = data, .bytes = bytes, .tag = tag, .memory = static_cast<Memory*>(memory), .parent = parent};
  auto* sender = static_cast<Comm*>(comm);
  const auto lock = sender->device().Lock();
  return sender->Post(&slot, 1, reinterpret_cast<Request**>(request));
}

template <typename Bytes>
Result Receive(void* comm, int count, void** data, Bytes* bytes, int* tags, void** memory, void** parents,
               void** request) {
  *request = nullptr;
  if (count < 1 || count > kMaxReceives) return Result::kInvalidArgument;
  Comm::Slot slots[kMaxReceives];
  for (int i = 0; i < count; ++i) {
    slots[i] = {.data = data[i],
                .bytes = static_cast<size_t>(bytes[i]),
                .tag = tags[i],
                .memory = memory == nullptr ? nullptr : static_cast<Memory*>(memory[i]),
                .parent = parents == nullptr ? nullptr : parents[i]};
  }
  auto* receiver = static_cast<Comm*>(comm);
  const auto lock = receiver->device().Lock();
  return receiver->Post(slots, count, reinterpret_cast<Request**>(request));
}

// Done when it returns: there is no request to wait for.
Result Flush(void* comm, int count, void** /*data*/, int* /*bytes*/, void** memory, void** request) {
  *request = nullptr;
  auto* receiver = static_cast<Comm*>(comm);
  const auto lock = receiver->device().Lock();
  return receiver->Flush(memory, count);
}

Result Test(void* request, int* done, int* bytes) {
  auto* polled = static_cast<Request*>(request);
  const auto lock = polled->comm->device().Lock();
  return polled->comm->Test(polled, done, bytes);
}

Result CloseComm(void* comm) { return Plugin::Get().Close(static_cast<Comm*>(comm)); }
Result CloseListener(void* listener) { return Plugin::Get().Close(static_cast<Listener*>(listener)); }
constexpr abi::CloseCalls kCloseCalls = {CloseComm, CloseComm, CloseListener};

// ---- without communicators (v6 to v10)

Result Init(abi::Logger logger) { return Plugin::Get().InitOnce(logger, nullptr); }
Result InitProfiled(abi::Logger logger, abi::Profiler profiler) { return Plugin::Get().InitOnce(logger, profiler); }

Result Listen(int device, void* handle, void** listener) {
  return Plugin::Get().Listen(nullptr, device, handle, reinterpret_cast<Listener**>(listener));
}

Result ConnectV6(int device, void* handle, void** comm) {
  return Plugin::Get().Connect(nullptr, device, abi::kUndefined, handle, reinterpret_cast<Comm**>(comm));
}
Result Connect(int device, void* handle, void** comm, void** /*device_handle*/) {
  return ConnectV6(device, handle, comm);
}
Result ConnectV10(int device, abi::CommunicatorConfig* config, void* handle, void** comm, void** /*device_handle*/) {
  const int traffic_class = config == nullptr ? abi::kUndefined : config->traffic_class;
  return Plugin::Get().Connect(nullptr, device, traffic_class, handle, reinterpret_cast<Comm**>(comm));
}

Result AcceptV6(void* listener, void** comm) {
  return Plugin::Get().Accept(static_cast<Listener*>(listener), reinterpret_cast<Comm**>(comm));
}
Result Accept(void* listener, void** comm, void** /*device_handle*/) { return AcceptV6(listener, comm); }

Result SendInt(void* comm, void* data, int bytes, int tag, void* memory, void** request) {
  *request = nullptr;
  if (bytes < 0) return Result::kInvalidArgument;
  return Send(comm, data, static_cast<size_t>(bytes), tag, memory, nullptr, request);
}
Result SendV9(void* comm, void* data, size_t bytes, int tag, void* memory, void** request) {
  return Send(comm, data, bytes, tag, memory, nullptr, request);
}

template <typename Bytes>
Result ReceivePlain(void* comm, int count, void** data, Bytes* bytes, int* tags, void** memory, void** request) {
  return Receive(comm, count, data, bytes, tags, memory, nullptr, request);
}

template <int kMaxDevices>
Result MakeVirtualDevice(int* device, abi::VirtualDevice<kMaxDevices>* parts) {
  if (parts->count < 0 || parts->count > kMaxDevices) return Result::kInvalidArgument;
  return Plugin::Get().MakeVirtualDevice(device, std::vector<int>(parts->devices, parts->devices + parts->count));
}

// ---- with communicators (v11, v12)

Result InitCommunicator(void** communicator, uint64_t id, abi::CommunicatorConfig* config, abi::Logger logger,
                        abi::Profiler profiler) {
  const int traffic_class = config == nullptr ? abi::kUndefined : config->traffic_class;
  return Plugin::Get().Init(reinterpret_cast<Communicator**>(communicator), id, traffic_class, logger, profiler);
}

Result ListenFor(void* communicator, int device, void* handle, void** listener) {
  return Plugin::Get().Listen(static_cast<Communicator*>(communicator), device, handle,
                              reinterpret_cast<Listener**>(listener));
}

Result ConnectFor(void* communicator, int device, void* handle, void** comm, void** /*device_handle*/) {
  return Plugin::Get().Connect(static_cast<Communicator*>(communicator), device, abi::kUndefined, handle,
                               reinterpret_cast<Comm**>(comm));
}

Result Finalize(void* communicator) { return Plugin::Get().Finalize(static_cast<Communicator*>(communicator)); }

Result SetAttributes(void* communicator, abi::NetAttributes* attributes) {
  return Plugin::Get().SetAttributes(static_cast<Communicator*>(communicator), *attributes);
}

}  // namespace

#define PACELINE_EXPORTED extern "C" __attribute__((visibility("default")))

// NOLINTBEGIN(readability-identifier-naming): NCCL looks for these names.
PACELINE_EXPORTED const abi::NetV6 ncclNetPlugin_v6 = {kName,          Init,
                                                       Devices,        GetProperties<abi::PropertiesV6>,
                                                       Listen,         ConnectV6,
                                                       AcceptV6,       RegisterMemory<int>,
                                                       RegisterDmaBuf, DeregisterMemory,
                                                       SendInt,        ReceivePlain<int>,
                                                       Flush,          Test,
                                                       kCloseCalls};
PACELINE_EXPORTED const abi::NetV7 ncclNetPlugin_v7 = {kName,          Init,
                                                       Devices,        GetProperties<abi::PropertiesV7>,
                                                       Listen,         Connect,
                                                       Accept,         RegisterMemory<int>,
                                                       RegisterDmaBuf, DeregisterMemory,
                                                       SendInt,        ReceivePlain<int>,
                                                       Flush,          Test,
                                                       kCloseCalls,    {}};
PACELINE_EXPORTED const abi::NetV8 ncclNetPlugin_v8 = {kName,          Init,
                                                       Devices,        GetProperties<abi::PropertiesV8>,
                                                       Listen,         Connect,
                                                       Accept,         RegisterMemory<size_t>,
                                                       RegisterDmaBuf, DeregisterMemory,
                                                       SendInt,        ReceivePlain<int>,
                                                       Flush,          Test,
                                                       kCloseCalls,    {}};
PACELINE_EXPORTED const abi::NetV9 ncclNetPlugin_v9 = {kName,
                                                       Init,
                                                       Devices,
                                                       GetProperties<abi::PropertiesV9>,
                                                       Listen,
                                                       Connect,
                                                       Accept,
                                                       RegisterMemory<size_t>,
                                                       RegisterDmaBuf,
                                                       DeregisterMemory,
                                                       SendV9,
                                                       ReceivePlain<size_t>,
                                                       Flush,
                                                       Test,
                                                       kCloseCalls,
                                                       {},
                                                       MakeVirtualDevice<4>};
PACELINE_EXPORTED const abi::NetV10 ncclNetPlugin_v10 = {kName,
                                                         InitProfiled,
                                                         Devices,
                                                         GetProperties<abi::PropertiesV10>,
                                                         Listen,
                                                         ConnectV10,
                                                         Accept,
                                                         RegisterMemory<size_t>,
                                                         RegisterDmaBuf,
                                                         DeregisterMemory,
                                                         Send,
                                                         Receive<size_t>,
                                                         Flush,
                                                         Test,
                                                         kCloseCalls,
                                                         {},
                                                         MakeVirtualDevice<4>};
PACELINE_EXPORTED const abi::NetV11 ncclNetPlugin_v11 = {kName,
                                                         InitCommunicator,
                                                         Devices,
                                                         GetProperties<abi::PropertiesV11>,
                                                         ListenFor,
                                                         ConnectFor,
                                                         Accept,
                                                         RegisterMemory<size_t>,
                                                         RegisterDmaBuf,
                                                         DeregisterMemory,
                                                         Send,
                                                         Receive<size_t>,
                                                         Flush,
                                                         Test,
                                                         kCloseCalls,
                                                         {},
                                                         MakeVirtualDevice<4>,
                                                         Finalize,
                                                         SetAttributes};
PACELINE_EXPORTED const abi::NetV12 ncclNetPlugin_v12 = {kName,
                                                         InitCommunicator,
                                                         Devices,
                                                         GetProperties<abi::PropertiesV12>,
                                                         ListenFor,
                                                         ConnectFor,
                                                         Accept,
                                                         RegisterMemory<size_t>,
                                                         RegisterDmaBuf,
                                                         DeregisterMemory,
                                                         Send,
                                                         Receive<size_t>,
                                                         Flush,
                                                         Test,
                                                         kCloseCalls,
                                                         {},
                                                         MakeVirtualDevice<8>,
                                                         Finalize,
                                                         SetAttributes};
// NOLINTEND(readability-identifier-naming)

}  // namespace paceline::nccl
