// A stand-in for the CUDA driver: libcuda.so.1 with the entry points that Paceline uses, over host memory. Device
// memory cannot be touched by the processor at its address (a fault ends the process), only by the driver's copies. A
// copy is under way until its event has been asked for twice. As in the real driver, calls that need a context fail
// without one.
//
// A dma-buf is the file behind an allocation, its position where the exported range begins, so that a fake card writes
// into device memory by it. As the real driver's, it is of whole pages.
//
// FAKE_CUDA_DEVICES (1): how many GPUs. FAKE_CUDA_DMA_BUF (1): whether they give out dma-bufs. FAKE_CUDA_RDMA (1):
// whether they have GPUDirect RDMA at all. FAKE_CUDA_WRITES_ORDERING (100), FAKE_CUDA_FLUSH_OPTIONS (1): as the driver
// answers for what others write into them. FAKE_CUDA_PCI_BUS_ID: of all of them; unset: they have none. FAKE_CUDA_FAIL
// ("cuMemcpyDtoHAsync_v2:3:700"): the third call of that function answers 700; fake_cuda.h has the same for tests.
#include "tests/support/fake_cuda/fake_cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

using Result = int;
constexpr Result kOk = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kInvalidContext = 201,
                 kInvalidHandle = 400, kNotReady = 600;
constexpr int kQueriesUntilDone = 2;

constexpr size_t kPage = 4096;

struct Allocation {
  enum class Kind { kDevice, kPinned, kManaged } kind;
  size_t bytes;
  int device;
  unsigned long long id;
  char* reachable;  // by the driver
  int fd;           // of device memory
};

struct Stream {
  std::deque<std::function<void()>> copies;
};

struct Event {
  Stream* stream = nullptr;
  size_t copies_before = 0;  // that have to be carried out before it has happened, counted from the stream's front
  int queries = 0;
};

struct State {
  std::mutex mutex;
  bool initialized = false;
  bool hold = false;
  std::map<uintptr_t, Allocation> allocations;  // by address
  std::map<Stream*, std::unique_ptr<Stream>> streams;
  std::map<Event*, std::unique_ptr<Event>> events;
  std::map<std::string, std::pair<int, Result>> failures;  // calls left until then, and what is answered
  unsigned long long next_id = 1;
  int flushes = 0;
  int primary_users[16] = {};  // by GPU: how often its primary context is retained; 0: there is none
};

State& state() {
  static auto* state = new State();
  return *state;
}

thread_local std::vector<void*> contexts;
char device_context[16];  // the primary context of GPU i is &device_context[i]

int Number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

int CurrentDevice() { return static_cast<int>(static_cast<char*>(contexts.back()) - device_context); }

// Takes the lock, and answers for calls that are to fail or lack what they need.
class Call {
 public:
  explicit Call(const char* name, bool needs_context = false) : lock_(state().mutex) {
    const auto found = state().failures.find(name);
    if (found != state().failures.end() && --found->second.first == 0) {
      result_ = found->second.second;
      state().failures.erase(found);
    } else if (!state().initialized && std::string(name) != "cuInit") {
      result_ = kNotInitialized;
    } else if (needs_context && contexts.empty()) {
      result_ = kInvalidContext;
    }
  }
  Result result() const { return result_; }

 private:
  std::lock_guard<std::mutex> lock_;
  Result result_ = kOk;
};

const std::pair<const uintptr_t, Allocation>* Find(uintptr_t address, size_t bytes) {
  auto at = state().allocations.upper_bound(address);
  if (at == state().allocations.begin()) return nullptr;
  --at;
  return address - at->first + bytes <= at->second.bytes ? &*at : nullptr;
}

// Where the driver reaches this memory; ordinary memory is where it is.
char* Reach(uintptr_t address, size_t bytes) {
  const auto* found = Find(address, bytes);
  return found == nullptr ? reinterpret_cast<char*>(address) : found->second.reachable + (address - found->first);
}

bool IsOnDevice(uintptr_t address, size_t bytes) {
  const auto* found = Find(address, bytes);
  return found != nullptr && found->second.kind != Allocation::Kind::kPinned;
}

void CarryOut(Stream& stream, size_t copies) {
  for (; copies > 0 && !stream.copies.empty(); --copies) {
    stream.copies.front()();
    stream.copies.pop_front();
    for (const auto& [event, owned] : state().events) {
      if (event->stream == &stream && event->copies_before > 0) --event->copies_before;
    }
  }
}

Result Enqueue(void* stream, uintptr_t to, uintptr_t from, size_t bytes, uintptr_t device_side) {
  if (!IsOnDevice(device_side, bytes)) return kInvalidValue;
  const auto found = state().streams.find(static_cast<Stream*>(stream));
  if (found == state().streams.end()) return kInvalidHandle;
  found->second->copies.push_back([=] { std::memmove(Reach(to, bytes), Reach(from, bytes), bytes); });
  return kOk;
}

Result Allocate(Allocation::Kind kind, size_t bytes, void** address) {
  if (bytes == 0) return kInvalidValue;
  const int fd = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>((bytes + kPage - 1) / kPage * kPage)) != 0) return kOutOfMemory;
  void* reachable = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (reachable == MAP_FAILED) return kOutOfMemory;
  *address = reachable;
  if (kind == Allocation::Kind::kDevice) {
    *address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*address == MAP_FAILED) return kOutOfMemory;
  }
  state().allocations[reinterpret_cast<uintptr_t>(*address)] = {
      kind, bytes, CurrentDevice(), state().next_id++, static_cast<char*>(reachable), fd};
  return kOk;
}

// As the real one's: what is under way is waited for first.
Result Free(uintptr_t address) {
  for (const auto& [stream, owned] : state().streams) CarryOut(*stream, stream->copies.size());
  const auto found = state().allocations.find(address);
  if (found == state().allocations.end()) return kInvalidValue;
  munmap(found->second.reachable, found->second.bytes);
  if (reinterpret_cast<uintptr_t>(found->second.reachable) != address) {
    munmap(reinterpret_cast<void*>(address), found->second.bytes);
  }
  close(found->second.fd);
  state().allocations.erase(found);
  return kOk;
}

}  // namespace

extern "C" {

void fake_cuda_fail(const char* function, int nth, int result) {
  const std::lock_guard lock(state().mutex);
  state().failures[function] = {nth, result};
}

void fake_cuda_hold(int hold) {
  const std::lock_guard lock(state().mutex);
  state().hold = hold != 0;
}

int fake_cuda_live() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().allocations.size() + state().streams.size() + state().events.size());
}

int fake_cuda_flushes() {
  const std::lock_guard lock(state().mutex);
  return state().flushes;
}

Result cuInit(unsigned) {
  if (const char* text = std::getenv("FAKE_CUDA_FAIL")) {
    const std::string plan = text;
    const size_t first = plan.find(':'), second = plan.find(':', first + 1);
    if (first != std::string::npos && second != std::string::npos) {
      fake_cuda_fail(plan.substr(0, first).c_str(), std::atoi(plan.c_str() + first + 1),
                     std::atoi(plan.c_str() + second + 1));
    }
  }
  const Call call("cuInit");
  if (call.result() == kOk) state().initialized = true;
  return call.result();
}

Result cuDriverGetVersion(int* version) {
  *version = 12020;
  return kOk;
}

Result cuGetErrorName(Result result, const char** name) {
  *name = result == kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kInvalidContext ? "CUDA_ERROR_INVALID_CONTEXT"
          : result == kInvalidValue   ? "CUDA_ERROR_INVALID_VALUE"
                                      : "CUDA_ERROR_OF_THE_FAKE";
  return kOk;
}

Result cuDeviceGetCount(int* count) {
  const Call call("cuDeviceGetCount");
  *count = std::clamp(Number("FAKE_CUDA_DEVICES", 1), 0, 16);
  return call.result();
}

Result cuDeviceGet(int* device, int ordinal) {
  const Call call("cuDeviceGet");
  *device = ordinal;
  return call.result();
}

Result cuDeviceGetName(char* name, int size, int device) {
  const Call call("cuDeviceGetName");
  std::strncpy(name, ("Fake GPU " + std::to_string(device)).c_str(), static_cast<size_t>(size));
  return call.result();
}

Result cuDeviceGetPCIBusId(char* id, int size, int) {
  const Call call("cuDeviceGetPCIBusId");
  const char* text = std::getenv("FAKE_CUDA_PCI_BUS_ID");
  if (call.result() != kOk || text == nullptr) return call.result() != kOk ? call.result() : kInvalidValue;
  std::strncpy(id, text, static_cast<size_t>(size));
  return kOk;
}

Result cuDeviceGetAttribute(int* value, int attribute, int) {
  const Call call("cuDeviceGetAttribute");
  switch (attribute) {
    case 116:
      *value = Number("FAKE_CUDA_RDMA", 1);
      break;
    case 117:
      *value = Number("FAKE_CUDA_FLUSH_OPTIONS", 1);
      break;
    case 118:
      *value = Number("FAKE_CUDA_WRITES_ORDERING", 100);
      break;
    case 124:
      *value = Number("FAKE_CUDA_DMA_BUF", 1);
      break;
    default:
      *value = 0;
  }
  return call.result();
}

Result cuDevicePrimaryCtxRetain(void** context, int device) {
  const Call call("cuDevicePrimaryCtxRetain");
  if (call.result() != kOk) return call.result();
  ++state().primary_users[device];
  *context = &device_context[device];
  return kOk;
}
Result cuDevicePrimaryCtxRelease_v2(int device) {
  const Call call("cuDevicePrimaryCtxRelease_v2");
  if (call.result() == kOk) --state().primary_users[device];
  return call.result();
}
Result cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  const Call call("cuDevicePrimaryCtxGetState");
  *flags = 0;
  *active = state().primary_users[device] > 0 ? 1 : 0;
  return call.result();
}

Result cuCtxPushCurrent_v2(void* context) {
  const Call call("cuCtxPushCurrent_v2");
  if (call.result() == kOk) contexts.push_back(context);
  return call.result();
}
Result cuCtxPopCurrent_v2(void** context) {
  const Call call("cuCtxPopCurrent_v2", true);
  if (call.result() != kOk) return call.result();
  *context = contexts.back();
  contexts.pop_back();
  return kOk;
}

Result cuPointerGetAttributes(unsigned count, int* attributes, void** data, unsigned long long pointer) {
  const Call call("cuPointerGetAttributes");
  if (call.result() != kOk) return call.result();
  const auto* found = Find(pointer, 1);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 2:  // memory type
        *static_cast<unsigned*>(data[i]) = found == nullptr                                  ? 0
                                           : found->second.kind == Allocation::Kind::kPinned ? 1
                                                                                             : 2;
        break;
      case 7:  // buffer id
        *static_cast<unsigned long long*>(data[i]) = found == nullptr ? 0 : found->second.id;
        break;
      case 8:  // managed
        *static_cast<int*>(data[i]) = found != nullptr && found->second.kind == Allocation::Kind::kManaged ? 1 : 0;
        break;
      case 9:  // ordinal
        *static_cast<int*>(data[i]) = found == nullptr ? -2 : found->second.device;
        break;
      default:
        return kInvalidValue;
    }
  }
  return kOk;
}

Result cuMemGetHandleForAddressRange(void* handle, unsigned long long pointer, size_t bytes, int type,
                                     unsigned long long) {
  const Call call("cuMemGetHandleForAddressRange", true);
  if (call.result() != kOk) return call.result();
  if (type != 1 || pointer % kPage != 0 || bytes == 0 || bytes % kPage != 0) return kInvalidValue;
  const auto* found = Find(pointer, 1);
  if (found == nullptr || found->second.kind != Allocation::Kind::kDevice) return kInvalidValue;
  const size_t begins = pointer - found->first, pages = (found->second.bytes + kPage - 1) / kPage;
  if (begins + bytes > pages * kPage) return kInvalidValue;
  // Opened anew: a duplicate would share its position with all others.
  const int fd = open(("/proc/self/fd/" + std::to_string(found->second.fd)).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return kOutOfMemory;
  lseek(fd, static_cast<off_t>(begins), SEEK_SET);
  *static_cast<int*>(handle) = fd;
  return kOk;
}

Result cuFlushGPUDirectRDMAWrites(int target, int scope) {
  const Call call("cuFlushGPUDirectRDMAWrites", true);
  if (call.result() != kOk) return call.result();
  if (target != 0 || (scope != 100 && scope != 200)) return kInvalidValue;
  ++state().flushes;
  return kOk;
}

Result cuMemAlloc_v2(unsigned long long* pointer, size_t bytes) {
  const Call call("cuMemAlloc_v2", true);
  if (call.result() != kOk) return call.result();
  void* address = nullptr;
  const Result result = Allocate(Allocation::Kind::kDevice, bytes, &address);
  *pointer = reinterpret_cast<unsigned long long>(address);
  return result;
}
Result cuMemAllocManaged(unsigned long long* pointer, size_t bytes, unsigned) {
  const Call call("cuMemAllocManaged", true);
  if (call.result() != kOk) return call.result();
  void* address = nullptr;
  const Result result = Allocate(Allocation::Kind::kManaged, bytes, &address);
  *pointer = reinterpret_cast<unsigned long long>(address);
  return result;
}
Result cuMemFree_v2(unsigned long long pointer) {
  const Call call("cuMemFree_v2", true);
  return call.result() != kOk ? call.result() : Free(pointer);
}
Result cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  const Call call("cuMemHostAlloc", true);
  return call.result() != kOk ? call.result() : Allocate(Allocation::Kind::kPinned, bytes, pointer);
}
Result cuMemFreeHost(void* pointer) {
  const Call call("cuMemFreeHost", true);
  return call.result() != kOk ? call.result() : Free(reinterpret_cast<uintptr_t>(pointer));
}

Result cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  const Call call("cuMemcpyDtoHAsync_v2", true);
  return call.result() != kOk ? call.result() : Enqueue(stream, reinterpret_cast<uintptr_t>(to), from, bytes, from);
}
Result cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  const Call call("cuMemcpyHtoDAsync_v2", true);
  return call.result() != kOk ? call.result() : Enqueue(stream, to, reinterpret_cast<uintptr_t>(from), bytes, to);
}
Result cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  const Call call("cuMemcpyDtoH_v2", true);
  if (call.result() != kOk) return call.result();
  if (!IsOnDevice(from, bytes)) return kInvalidValue;
  std::memcpy(to, Reach(from, bytes), bytes);
  return kOk;
}
Result cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
  const Call call("cuMemcpyHtoD_v2", true);
  if (call.result() != kOk) return call.result();
  if (!IsOnDevice(to, bytes)) return kInvalidValue;
  std::memcpy(Reach(to, bytes), from, bytes);
  return kOk;
}

Result cuStreamCreate(void** stream, unsigned) {
  const Call call("cuStreamCreate", true);
  if (call.result() != kOk) return call.result();
  auto fresh = std::make_unique<Stream>();
  *stream = fresh.get();
  state().streams[fresh.get()] = std::move(fresh);
  return kOk;
}
Result cuStreamDestroy_v2(void* stream) {
  const Call call("cuStreamDestroy_v2", true);
  return call.result() != kOk                                  ? call.result()
         : state().streams.erase(static_cast<Stream*>(stream)) ? kOk
                                                               : kInvalidHandle;
}
Result cuStreamSynchronize(void* stream) {
  const Call call("cuStreamSynchronize", true);
  if (call.result() != kOk) return call.result();
  const auto found = state().streams.find(static_cast<Stream*>(stream));
  if (found == state().streams.end()) return kInvalidHandle;
  CarryOut(*found->second, found->second->copies.size());
  return kOk;
}

Result cuEventCreate(void** event, unsigned) {
  const Call call("cuEventCreate", true);
  if (call.result() != kOk) return call.result();
  auto fresh = std::make_unique<Event>();
  *event = fresh.get();
  state().events[fresh.get()] = std::move(fresh);
  return kOk;
}
Result cuEventDestroy_v2(void* event) {
  const Call call("cuEventDestroy_v2", true);
  return call.result() != kOk ? call.result() : state().events.erase(static_cast<Event*>(event)) ? kOk : kInvalidHandle;
}
Result cuEventRecord(void* event, void* stream) {
  const Call call("cuEventRecord", true);
  if (call.result() != kOk) return call.result();
  const auto found = state().events.find(static_cast<Event*>(event));
  const auto on = state().streams.find(static_cast<Stream*>(stream));
  if (found == state().events.end() || on == state().streams.end()) return kInvalidHandle;
  *found->second = {.stream = on->first, .copies_before = on->second->copies.size(), .queries = 0};
  return kOk;
}
Result cuEventQuery(void* event) {
  const Call call("cuEventQuery", true);
  if (call.result() != kOk) return call.result();
  const auto found = state().events.find(static_cast<Event*>(event));
  if (found == state().events.end()) return kInvalidHandle;
  Event& asked = *found->second;
  if (asked.copies_before == 0) return kOk;
  if (state().hold || ++asked.queries < kQueriesUntilDone) return kNotReady;
  CarryOut(*asked.stream, asked.copies_before);
  return kOk;
}

}  // extern "C"
