#include "tests/interop/nccl/net.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace paceline::nccl_test {
namespace {

constexpr int kMostSlots = 32;

template <typename Table, typename TheProperties, int kVersion>
class VersionedNet : public Net {
 public:
  VersionedNet(void* library, const Table* table) : library_(library), table_(*table) {}
  ~VersionedNet() override { dlclose(library_); }

  int version() const override { return kVersion; }
  const char* name() const override { return table_.name; }

  abi::Result Init(void** communicator, uint64_t id, int traffic_class, abi::Logger logger,
                   abi::Profiler profiler) override {
    *communicator = nullptr;
    if constexpr (kVersion >= 11) {
      abi::CommunicatorConfig config{traffic_class};
      return table_.init(communicator, id, &config, logger, profiler);
    } else if constexpr (kVersion == 10) {
      return table_.init(logger, profiler);
    } else {
      return table_.init(logger);
    }
  }
  abi::Result Finalize(void* communicator) override {
    if constexpr (kVersion >= 11) return table_.finalize(communicator);
    return abi::Result::kSuccess;
  }
  abi::Result SetAttributes(void* communicator, abi::NetAttributes attributes) override {
    if constexpr (kVersion >= 11) return table_.set_attributes(communicator, &attributes);
    return abi::Result::kSuccess;
  }
  abi::Result Devices(int* count) override { return table_.devices(count); }

  abi::Result Properties(int device, abi::PropertiesV12* out) override {
    TheProperties found{};
    const abi::Result result = table_.get_properties(device, &found);
    if (result != abi::Result::kSuccess) return result;
    out->name = found.name;
    out->pci_path = found.pci_path;
    out->guid = found.guid;
    out->pointer_support = found.pointer_support;
    out->speed = found.speed;
    out->port = found.port;
    out->latency = found.latency;
    out->max_comms = found.max_comms;
    out->max_receives = found.max_receives;
    if constexpr (kVersion >= 7) out->device_type = found.device_type;
    if constexpr (kVersion >= 8) out->registration_is_global = found.registration_is_global;
    if constexpr (kVersion >= 9) {
      out->force_flush = found.force_flush;
      out->max_p2p_bytes = found.max_p2p_bytes;
      out->max_collective_bytes = found.max_collective_bytes;
      out->virtual_device.count = found.virtual_device.count;
      std::copy_n(found.virtual_device.devices, std::size(found.virtual_device.devices), out->virtual_device.devices);
    }
    if constexpr (kVersion >= 12) {
      out->rail = found.rail;
      out->plane = found.plane;
    }
    return result;
  }

  abi::Result MakeVirtualDevice(int* device, int first, int count) override {
    if constexpr (kVersion >= 9) {
      auto parts = TheProperties{}.virtual_device;
      parts.count = count;
      for (int i = 0; i < count && i < static_cast<int>(std::size(parts.devices)); ++i) parts.devices[i] = first + i;
      return table_.make_virtual_device(device, &parts);
    }
    return abi::Result::kInvalidUsage;
  }

  abi::Result Listen(void* communicator, int device, void* handle, void** listener) override {
    if constexpr (kVersion >= 11)
      return table_.listen(communicator, device, handle, listener);
    else
      return table_.listen(device, handle, listener);
  }

  // NCCL passes a place for a device handle that holds nullptr: no offload is asked for.
  abi::Result Connect(void* communicator, int device, int traffic_class, void* handle, void** comm) override {
    void* device_handle = nullptr;
    if constexpr (kVersion >= 11) {
      return table_.connect(communicator, device, handle, comm, &device_handle);
    } else if constexpr (kVersion == 10) {
      abi::CommunicatorConfig config{traffic_class};
      return table_.connect(device, &config, handle, comm, &device_handle);
    } else if constexpr (kVersion >= 7) {
      return table_.connect(device, handle, comm, &device_handle);
    } else {
      return table_.connect(device, handle, comm);
    }
  }
  abi::Result Accept(void* listener, void** comm) override {
    void* device_handle = nullptr;
    if constexpr (kVersion >= 7)
      return table_.accept(listener, comm, &device_handle);
    else
      return table_.accept(listener, comm);
  }

  abi::Result Register(void* comm, void* data, size_t bytes, int type, void** memory) override {
    if constexpr (kVersion >= 8)
      return table_.register_memory(comm, data, bytes, type, memory);
    else
      return table_.register_memory(comm, data, static_cast<int>(bytes), type, memory);
  }
  abi::Result RegisterDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd,
                             void** memory) override {
    return table_.register_dma_buf(comm, data, bytes, type, offset, fd, memory);
  }
  abi::Result Deregister(void* comm, void* memory) override { return table_.deregister_memory(comm, memory); }

  abi::Result Send(void* comm, const Slot& slot, void** request) override {
    if constexpr (kVersion >= 10) {
      return table_.send(comm, slot.data, slot.bytes, slot.tag, slot.memory, slot.parent, request);
    } else if constexpr (kVersion == 9) {
      return table_.send(comm, slot.data, slot.bytes, slot.tag, slot.memory, request);
    } else {
      return table_.send(comm, slot.data, static_cast<int>(slot.bytes), slot.tag, slot.memory, request);
    }
  }

  abi::Result Receive(void* comm, const Slot* slots, int count, void** request) override {
    using Bytes = std::conditional_t<(kVersion >= 9), size_t, int>;
    std::array<Bytes, kMostSlots> bytes{};
    Columns columns(slots, count);
    for (int i = 0; i < count; ++i) bytes[i] = static_cast<Bytes>(slots[i].bytes);
    if constexpr (kVersion >= 10) {
      return table_.receive(comm, count, columns.data.data(), bytes.data(), columns.tags.data(), columns.memory.data(),
                            columns.parents.data(), request);
    } else {
      return table_.receive(comm, count, columns.data.data(), bytes.data(), columns.tags.data(), columns.memory.data(),
                            request);
    }
  }

  abi::Result Flush(void* comm, const Slot* slots, int count, void** request) override {
    std::array<int, kMostSlots> bytes{};
    Columns columns(slots, count);
    for (int i = 0; i < count; ++i) bytes[i] = static_cast<int>(slots[i].bytes);
    return table_.flush(comm, count, columns.data.data(), bytes.data(), columns.memory.data(), request);
  }
  abi::Result Test(void* request, int* done, int* bytes) override { return table_.test(request, done, bytes); }
  abi::Result CloseSend(void* comm) override { return table_.close.close_send(comm); }
  abi::Result CloseReceive(void* comm) override { return table_.close.close_receive(comm); }
  abi::Result CloseListen(void* listener) override { return table_.close.close_listen(listener); }

 private:
  struct Columns {
    Columns(const Slot* slots, int count) {
      for (int i = 0; i < count; ++i) {
        data[i] = slots[i].data;
        tags[i] = slots[i].tag;
        memory[i] = slots[i].memory;
        parents[i] = slots[i].parent;
      }
    }
    std::array<void*, kMostSlots> data{}, memory{}, parents{};
    std::array<int, kMostSlots> tags{};
  };

  void* const library_;
  const Table& table_;
};

template <typename Table, typename TheProperties, int kVersion>
std::unique_ptr<Net> Make(void* library, const void* table) {
  return std::make_unique<VersionedNet<Table, TheProperties, kVersion>>(library, static_cast<const Table*>(table));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Net>> Net::Load(const std::string& path, int version) {
  if (version != 0 && (version < kOldestVersion || version > kNewestVersion)) {
    return absl::InvalidArgumentError(absl::StrCat("version ", version, "; it may be ", kOldestVersion, " to ",
                                                   kNewestVersion, ", 0 for the newest"));
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  for (int v = version == 0 ? kNewestVersion : version; v >= (version == 0 ? kOldestVersion : version); --v) {
    const void* table = dlsym(library, absl::StrCat("ncclNetPlugin_v", v).c_str());
    if (table == nullptr) continue;
    using Maker = std::unique_ptr<Net> (*)(void*, const void*);
    constexpr Maker kMakers[] = {Make<abi::NetV6, abi::PropertiesV6, 6>,    Make<abi::NetV7, abi::PropertiesV7, 7>,
                                 Make<abi::NetV8, abi::PropertiesV8, 8>,    Make<abi::NetV9, abi::PropertiesV9, 9>,
                                 Make<abi::NetV10, abi::PropertiesV10, 10>, Make<abi::NetV11, abi::PropertiesV11, 11>,
                                 Make<abi::NetV12, abi::PropertiesV12, 12>};
    return kMakers[v - kOldestVersion](library, table);
  }
  dlclose(library);
  return absl::NotFoundError(
      absl::StrCat(path, " has no ncclNetPlugin_v", version == 0 ? "6 to 12" : absl::StrCat(version)));
}

}  // namespace paceline::nccl_test
