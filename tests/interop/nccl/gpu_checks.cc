// Device memory: registered as NCCL_PTR_CUDA, sent from and received into.
#include "tests/interop/nccl/gpu.h"
#include "tests/interop/nccl/job.h"

namespace paceline::nccl_test {
namespace {

using gpudirect::DevicePointer;

// A buffer of this rank, in device memory or not, that can be filled and looked at.
class Buffer {
 public:
  Buffer(Job& job, Gpu& gpu, void* comm, bool on_gpu, size_t room)
      : job_(job), gpu_(gpu), comm_(comm), on_gpu_(on_gpu), host_(room) {
    if (on_gpu_) device_ = gpu_.Alloc(room);
    const int type = on_gpu_ ? abi::kPointerCuda : abi::kPointerHost;
    Check(job_.net().Register(comm_, data(), room, type, &memory_), "regMr");
  }
  ~Buffer() {
    Check(job_.net().Deregister(comm_, memory_), "deregMr");
    if (on_gpu_) gpu_.Free(device_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() { return on_gpu_ ? reinterpret_cast<void*>(device_) : host_.data(); }
  void* memory() const { return memory_; }
  void Set(size_t bytes, uint32_t rank, uint32_t message) {
    std::fill(host_.begin(), host_.end(), uint8_t{0xee});
    Fill(host_.data(), bytes, rank, message);
    if (on_gpu_) gpu_.Write(device_, host_.data(), host_.size());
  }
  bool Is(size_t bytes, uint32_t rank, uint32_t message) {
    if (on_gpu_) gpu_.Read(host_.data(), device_, host_.size());
    for (size_t i = bytes; i < host_.size(); ++i) {
      if (host_[i] != 0xee) return false;
    }
    return IsFilled(host_.data(), bytes, rank, message);
  }

 private:
  Job& job_;
  Gpu& gpu_;
  void* const comm_;
  const bool on_gpu_;
  std::vector<uint8_t> host_;
  DevicePointer device_ = 0;
  void* memory_ = nullptr;
};

}  // namespace

void CheckGpu(Job& job) {
  abi::PropertiesV12 properties{};
  Check(job.net().Properties(job.device(), &properties), "getProperties");
  Expect((properties.pointer_support & abi::kPointerCuda) != 0, "the plugin does not offer NCCL_PTR_CUDA");
  Gpu gpu;
  const uint32_t next = (job.rank() + 1) % job.world(), previous = (job.rank() + job.world() - 1) % job.world();
  Comms comms = job.Connect([&](uint32_t from, uint32_t to) { return to == (from + 1) % job.world(); });
  {
    constexpr size_t kRoom = 300'000;
    // More in flight than pinned memory holds at a time, device and host memory in turn, lengths of all kinds.
    constexpr size_t kMessages = 64;
    std::vector<std::unique_ptr<Buffer>> from, to;
    const auto bytes_of = [](size_t m) { return m * 4'567 % kRoom / (m % 5 == 4 ? kRoom : 1); };
    Proxy proxy(&job.net());
    for (size_t m = 0; m < kMessages; ++m) {
      const auto message = static_cast<uint32_t>(m);
      from.push_back(std::make_unique<Buffer>(job, gpu, comms.send[next], m % 3 != 0, kRoom));
      to.push_back(std::make_unique<Buffer>(job, gpu, comms.receive[previous], m % 4 != 0, kRoom));
      from[m]->Set(bytes_of(m), job.rank(), message);
      to[m]->Set(0, 0, 0);
      proxy.Receive(
          comms.receive[previous], {{.data = to[m]->data(), .bytes = kRoom, .memory = to[m]->memory()}},
          [&, m, message](const std::vector<int>& sizes) {
            Expect(sizes[0] == static_cast<int>(bytes_of(m)), "a size of a message to or from device memory");
            Expect(to[m]->Is(bytes_of(m), previous, message),
                   "message " + std::to_string(m) + " is not in place when test says so");
          },
          true);
      proxy.Send(comms.send[next], {.data = from[m]->data(), .bytes = bytes_of(m), .memory = from[m]->memory()});
    }
    proxy.Drain();
  }
  job.Barrier();
  job.Close(comms);
}

// All ranks post their receives first, and their sends in another order of tags: nothing of what is posted may wait
// for memory that only something behind it would give back.
void CheckGpuAhead(Job& job) {
  Gpu gpu;
  const uint32_t next = (job.rank() + 1) % job.world(), previous = (job.rank() + job.world() - 1) % job.world();
  Comms comms = job.Connect([&](uint32_t from, uint32_t to) { return to == (from + 1) % job.world(); });
  {
    // 80 MiB a tag: more than staging, and than the peer stores of messages that have met no receive.
    constexpr size_t kBytes = 4 << 20, kEach = 20;
    constexpr uint32_t kTags = 2;
    Proxy proxy(&job.net());
    // The messages of a tag are all alike, from one buffer into one.
    std::vector<std::unique_ptr<Buffer>> from, to;
    for (uint32_t tag = 0; tag < kTags; ++tag) {
      from.push_back(std::make_unique<Buffer>(job, gpu, comms.send[next], true, kBytes));
      to.push_back(std::make_unique<Buffer>(job, gpu, comms.receive[previous], true, kBytes));
      from[tag]->Set(kBytes, job.rank(), tag);
      to[tag]->Set(0, 0, 0);
    }
    for (uint32_t tag = 0; tag < kTags; ++tag) {
      for (size_t i = 0; i < kEach; ++i) {
        proxy.Receive(
            comms.receive[previous],
            {{.data = to[tag]->data(), .bytes = kBytes, .tag = static_cast<int>(tag), .memory = to[tag]->memory()}},
            [&, tag](const std::vector<int>&) {
              Expect(to[tag]->Is(kBytes, previous, tag), "a message is not in place when test says so");
            });
      }
    }
    for (size_t i = 0; i < kTags * kEach; ++i) proxy.Progress();
    job.Barrier();
    for (uint32_t tag = kTags; tag-- > 0;) {
      for (size_t i = 0; i < kEach; ++i) {
        proxy.Send(
            comms.send[next],
            {.data = from[tag]->data(), .bytes = kBytes, .tag = static_cast<int>(tag), .memory = from[tag]->memory()});
      }
    }
    proxy.Drain();
  }
  job.Barrier();
  job.Close(comms);
}

}  // namespace paceline::nccl_test
