// Memory of a GPU in the plugin, over the verbs lane: cards in memory behind a libibverbs of the tests, device memory
// of the fake CUDA driver, which the processor cannot touch. Both ends are in this process, each on a card of its own.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include "gpudirect/dma_buf.h"
#include "tests/unit/api/nccl/plugin_fixture.h"
#include "tests/unit/gpudirect/fake_gpu.h"

namespace paceline::nccl_test {
namespace {

using gpudirect::DevicePointer;
using gpudirect::Gpu;

constexpr size_t kBytes = 300'000;

std::vector<uint8_t> Pattern(size_t bytes, uint8_t first) {
  std::vector<uint8_t> pattern(bytes);
  std::iota(pattern.begin(), pattern.end(), first);
  return pattern;
}

size_t OpenDescriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class GpuTest : public PluginFixture {
 protected:
  void Begin(int version = 0) {
    // Loaded before the plugin asks for them, both libraries are those that it finds under their names.
    void* library = dlopen(PACELINE_FAKE_IBVERBS, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    violation_ = reinterpret_cast<const char* (*)()>(dlsym(library, "fake_verbs_violation"));
    objects_ = reinterpret_cast<size_t (*)()>(dlsym(library, "fake_verbs_objects"));
    Gpu();
    Set("PACELINE_LANE", "verbs");
    Set("PACELINE_HCA", "fake");
    {
      const std::lock_guard lock(log_mutex);
      logged.clear();
    }
    Start(version, nullptr);
  }
  void TearDown() override {
    PluginFixture::TearDown();
    for (const DevicePointer memory : memory_) Gpu().Free(memory);
    if (violation_ != nullptr) {
      EXPECT_STREQ(violation_(), "");
    }
  }

  abi::PropertiesV12 Properties(int device = 0) {
    abi::PropertiesV12 properties{};
    EXPECT_EQ(net_->Properties(device, &properties), Result::kSuccess);
    return properties;
  }

  // Device memory of `bytes`, which all hold `fill`.
  DevicePointer Alloc(size_t bytes, uint8_t fill) {
    memory_.push_back(Gpu().Alloc(bytes));
    Gpu().Write(memory_.back(), std::vector<uint8_t>(bytes, fill));
    return memory_.back();
  }
  void* Register(void* comm, DevicePointer memory, size_t bytes) {
    void* handle = nullptr;
    EXPECT_EQ(net_->Register(comm, reinterpret_cast<void*>(memory), bytes, abi::kPointerCuda, &handle),
              Result::kSuccess)
        << LastLog();
    return handle;
  }
  // As NCCL does: the descriptor is closed at once.
  void* RegisterDmaBuf(void* comm, DevicePointer memory, size_t bytes) {
    const auto context = gpudirect::PrimaryContext::Create(Gpu().driver(), 0);
    const auto buffer = gpudirect::DmaBuf::Export(**context, memory, bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    void* handle = nullptr;
    EXPECT_EQ(net_->RegisterDmaBuf(comm, reinterpret_cast<void*>(memory), bytes, abi::kPointerCuda, buffer->offset(),
                                   buffer->descriptor(), &handle),
              Result::kSuccess)
        << LastLog();
    return handle;
  }
  void Deregister(void* comm, void* handle) { EXPECT_EQ(net_->Deregister(comm, handle), Result::kSuccess); }

  struct Piece {
    DevicePointer memory;
    size_t bytes;
    void* handle;
  };
  void Move(const Piece& from, const Piece& to) {
    void *send = nullptr, *receive = nullptr;
    const Slot into{.data = reinterpret_cast<void*>(to.memory), .bytes = to.bytes, .memory = to.handle};
    ASSERT_EQ(net_->Receive(receive_, &into, 1, &receive), Result::kSuccess) << LastLog();
    const Slot out_of{.data = reinterpret_cast<void*>(from.memory), .bytes = from.bytes, .memory = from.handle};
    ASSERT_EQ(net_->Send(send_, out_of, &send), Result::kSuccess) << LastLog();
    int bytes = -1;
    EXPECT_EQ(Await(send), Result::kSuccess) << LastLog();
    EXPECT_EQ(Await(receive, &bytes), Result::kSuccess) << LastLog();
    EXPECT_EQ(bytes, static_cast<int>(from.bytes));
  }
  // From one whole buffer of kBytes into another, registered by regMr, checked byte by byte.
  void MoveAll() {
    const DevicePointer from = Alloc(kBytes, 0), to = Alloc(kBytes, 9);
    const std::vector<uint8_t> contents = Pattern(kBytes, 1);
    Gpu().Write(from, contents);
    void *out = Register(send_, from, kBytes), *in = Register(receive_, to, kBytes);
    Move({from, kBytes, out}, {to, kBytes, in});
    EXPECT_EQ(Gpu().Read(to, kBytes), contents);
    Deregister(send_, out);
    Deregister(receive_, in);
  }
  // Of both cards, registrations among them.
  size_t Objects() const { return objects_(); }
  // How often the driver flushes for an iflush that is done at once.
  int FlushesOf(DevicePointer memory, void* handle) {
    const Slot slot{.data = reinterpret_cast<void*>(memory), .bytes = 100, .memory = handle};
    const int before = Gpu().flushes();
    void* request = &request;
    EXPECT_EQ(net_->Flush(receive_, &slot, 1, &request), Result::kSuccess);
    EXPECT_EQ(request, nullptr);
    return Gpu().flushes() - before;
  }
  // From here on (false: no longer) a copy between device and host fails, and with it whoever needs one.
  static void ForbidCopies(bool forbidden) {
    for (const char* copy : {"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"}) Gpu().fail(copy, forbidden ? 1 : -1, 700);
  }

 private:
  std::vector<DevicePointer> memory_;
  const char* (*violation_)() = nullptr;
  size_t (*objects_)() = nullptr;
};

class GpuVersionTest : public GpuTest, public ::testing::WithParamInterface<int> {};

TEST_P(GpuVersionTest, TheCardReadsAndWritesDeviceMemoryByItself) {
  Begin(GetParam());
  EXPECT_EQ(Properties().pointer_support, abi::kPointerHost | abi::kPointerCuda | abi::kPointerDmaBuf);
  EXPECT_TRUE(WasLogged("fake0:1: memory of GPU 0: dma-buf"));
  Connect(0, 1);
  constexpr size_t kBefore = 1000;  // dma-bufs begin with a page, this memory does not
  const DevicePointer from = Alloc(kBefore + kBytes, 0) + kBefore, to = Alloc(kBefore + kBytes, 9) + kBefore;
  const std::vector<uint8_t> contents = Pattern(kBytes, 1);
  Gpu().Write(from, contents);
  for (const bool by_descriptor : {false, true}) {
    const size_t descriptors = OpenDescriptors();
    void* const out = by_descriptor ? RegisterDmaBuf(send_, from, kBytes) : Register(send_, from, kBytes);
    void* const in = by_descriptor ? RegisterDmaBuf(receive_, to, kBytes) : Register(receive_, to, kBytes);
    Gpu().Write(to, std::vector<uint8_t>(kBytes, 9));
    ForbidCopies(true);
    Move({from, kBytes, out}, {to, kBytes, in});
    EXPECT_EQ(Gpu().Read(to, kBytes), contents);
    std::vector<uint8_t> expected(kBytes, 9);
    Gpu().Write(to, expected);
    // What would fit into a packet or a work request too, from and to odd places.
    const std::pair<size_t, size_t> pieces[] = {{1, 1}, {4097, 100}, {5001, 3000}};
    for (const auto& [offset, bytes] : pieces) {
      Move({from + offset, bytes, out}, {to + 2 * offset, bytes, in});
      std::copy_n(contents.begin() + static_cast<ptrdiff_t>(offset), bytes,
                  expected.begin() + static_cast<ptrdiff_t>(2 * offset));
    }
    EXPECT_EQ(Gpu().Read(to, kBytes), expected);
    ForbidCopies(false);
    Deregister(send_, out);
    Deregister(receive_, in);
    EXPECT_EQ(OpenDescriptors(), descriptors) << "of dma-bufs";
  }
  EXPECT_FALSE(WasLogged("staged"));
}

INSTANTIATE_TEST_SUITE_P(Versions, GpuVersionTest, ::testing::Values(6, 8, 9, 10, 11, 12));

TEST_F(GpuTest, HostMemoryAndDeviceMemoryMeet) {
  Begin();
  Connect(0, 1);
  std::vector<uint8_t> host(kBytes, 9);
  const std::vector<uint8_t> contents = Pattern(kBytes, 1);
  const DevicePointer device = Alloc(kBytes, 0);
  Gpu().Write(device, contents);
  void *out = Register(send_, device, kBytes), *in = nullptr;
  ASSERT_EQ(net_->Register(receive_, host.data(), kBytes, abi::kPointerHost, &in), Result::kSuccess);
  ForbidCopies(true);
  Move({device, kBytes, out}, {reinterpret_cast<DevicePointer>(host.data()), kBytes, in});
  ForbidCopies(false);
  EXPECT_EQ(host, contents);
  Deregister(send_, out);
  Deregister(receive_, in);
}

TEST_F(GpuTest, AVirtualDeviceGivesDeviceMemoryToAllItsCards) {
  Begin();
  int device = -1;
  ASSERT_EQ(net_->MakeVirtualDevice(&device, 0, 2), Result::kSuccess);
  EXPECT_NE(Properties(device).pointer_support & abi::kPointerDmaBuf, 0);
  Connect(device);
  ForbidCopies(true);
  MoveAll();
  ForbidCopies(false);
}

TEST_F(GpuTest, AVirtualDeviceGoesByWhatAllItsCardsCanDo) {
  Set("FAKE_VERBS_DMA_BUF", "fake0");
  Begin();
  int device = -1;
  ASSERT_EQ(net_->MakeVirtualDevice(&device, 0, 2), Result::kSuccess);
  EXPECT_NE(Properties(0).pointer_support & abi::kPointerDmaBuf, 0);
  EXPECT_EQ(Properties(1).pointer_support, abi::kPointerHost);
  EXPECT_EQ(Properties(device).pointer_support, abi::kPointerHost);
}

TEST_F(GpuTest, WhatNoCardReachesIsTakenOnlyWithStagingAndTheLogSaysWhy) {
  Set("FAKE_VERBS_DMA_BUF", "none");
  Begin();
  EXPECT_EQ(Properties().pointer_support, abi::kPointerHost);
  EXPECT_TRUE(WasLogged("memory of GPU 0: not taken (the card takes no dma-buf (ibv_reg_dmabuf_mr"));
  EXPECT_EQ(net_->Finalize(communicator_), Result::kSuccess);
  Set("PACELINE_GPU_STAGING", "1");
  ASSERT_EQ(net_->Init(&communicator_, 1, abi::kUndefined, Record, nullptr), Result::kSuccess);
  EXPECT_EQ(Properties().pointer_support, abi::kPointerHost | abi::kPointerCuda);
  Connect(0, 1);
  MoveAll();
  EXPECT_TRUE(WasLogged("memory of GPU 0 is staged: the card takes no dma-buf"));
}

TEST_F(GpuTest, MemoryThatACardDoesNotTakeIsStaged) {
  Set("FAKE_VERBS_DMA_BUF", "full");
  Begin();
  EXPECT_NE(Properties().pointer_support & abi::kPointerDmaBuf, 0);
  EXPECT_LE(Properties().max_p2p_bytes, size_t{32} << 20) << "more than staging takes";
  Connect(0, 1);
  MoveAll();
  EXPECT_TRUE(WasLogged("memory of GPU 0 is staged: no card takes"));
}

TEST_F(GpuTest, MemoryOfWhichThereIsNoDmaBufIsStaged) {
  Begin();
  Connect(0, 1);
  const DevicePointer from = Alloc(100, 5), to = Alloc(100, 9);
  Gpu().fail("cuMemGetHandleForAddressRange", 1, 2);
  void *out = Register(send_, from, 100), *in = Register(receive_, to, 100);
  EXPECT_TRUE(WasLogged("memory of GPU 0 is staged: cuMemGetHandleForAddressRange: CUDA_ERROR_OUT_OF_MEMORY"));
  Move({from, 100, out}, {to, 100, in});
  EXPECT_EQ(Gpu().Read(to, 100), std::vector<uint8_t>(100, 5));
  Deregister(send_, out);
  Deregister(receive_, in);
}

TEST_F(GpuTest, MemoryRegisteredWithAnotherDeviceIsStaged) {
  Begin();
  Connect(0, 1);
  const DevicePointer from = Alloc(100, 5), to = Alloc(100, 9);
  void *out = Register(receive_, from, 100), *in = Register(send_, to, 100);
  Move({from, 100, out}, {to, 100, in});
  EXPECT_EQ(Gpu().Read(to, 100), std::vector<uint8_t>(100, 5));
  Deregister(send_, out);
  Deregister(receive_, in);
}

TEST_F(GpuTest, MemoryThatIsRegisteredOftenIsGivenToTheCardOnce) {
  Begin();
  Connect(0, 1);
  const DevicePointer from = Alloc(kBytes, 5), to = Alloc(kBytes, 9);
  const std::vector<uint8_t> contents = Pattern(kBytes, 3);
  Gpu().Write(from, contents);
  const size_t before = Objects();
  void *out = Register(send_, from, kBytes), *in = Register(receive_, to, kBytes);
  EXPECT_EQ(Objects(), before + 2);
  void *again = Register(send_, from, kBytes), *inside = Register(receive_, to + 5000, kBytes - 5000);
  void* given = RegisterDmaBuf(send_, from, kBytes);
  EXPECT_EQ(Objects(), before + 2);
  // It is the card's until the last of them goes.
  for (void* handle : {out, given}) Deregister(send_, handle);
  Deregister(receive_, in);
  EXPECT_EQ(Objects(), before + 2);
  ForbidCopies(true);
  Move({from, 100'000, again}, {to + 5000, kBytes - 5000, inside});
  ForbidCopies(false);
  EXPECT_EQ(Gpu().Read(to + 5000, 100'000), std::vector<uint8_t>(contents.begin(), contents.begin() + 100'000));
  const size_t with_paths = Objects();
  Deregister(send_, again);
  Deregister(receive_, inside);
  EXPECT_EQ(Objects(), with_paths - 2);
}

TEST_F(GpuTest, FlushesWhereTheGpuNeedsIt) {
  Set("FAKE_CUDA_WRITES_ORDERING", "0");
  Begin();
  EXPECT_EQ(Properties().force_flush, 1);
  Connect(0, 1);
  const DevicePointer memory = Alloc(100, 5);
  void* const handle = Register(receive_, memory, 100);
  EXPECT_EQ(FlushesOf(memory, handle), 1);
  Gpu().fail("cuFlushGPUDirectRDMAWrites", 1, 700);
  const Slot slot{.data = reinterpret_cast<void*>(memory), .bytes = 100, .memory = handle};
  void* request = nullptr;
  EXPECT_EQ(net_->Flush(receive_, &slot, 1, &request), Result::kCudaError);
  EXPECT_THAT(LastLog(), ::testing::HasSubstr("cuFlushGPUDirectRDMAWrites"));
  Deregister(receive_, handle);
}

TEST_F(GpuTest, FlushesNothingWhereTheGpuSeesToIt) {
  Begin();
  EXPECT_EQ(Properties().force_flush, 0);
  Connect(0, 1);
  const DevicePointer memory = Alloc(100, 5);
  void* const handle = Register(receive_, memory, 100);
  EXPECT_EQ(FlushesOf(memory, handle), 0);
  Deregister(receive_, handle);
}

TEST_F(GpuTest, WhatTheHostCannotFlushIsNotGivenToTheCard) {
  Set("FAKE_CUDA_WRITES_ORDERING", "0");
  Set("FAKE_CUDA_FLUSH_OPTIONS", "2");
  Set("PACELINE_GPU_STAGING", "1");
  Begin();
  EXPECT_EQ(Properties().pointer_support, abi::kPointerHost | abi::kPointerCuda);
  EXPECT_TRUE(WasLogged("memory of GPU 0: staging (what a card writes into this GPU has to be flushed"));
  Connect(0, 1);
  MoveAll();
}

TEST_F(GpuTest, EncryptedPayloadIsNotOffered) {
  const std::string key = ::testing::TempDir() + "/nccl_gpu_test.key";
  std::ofstream(key) << std::string(64, 'a') << "\n";
  std::filesystem::permissions(key, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Set("PACELINE_KEY_FILE", key);
  Set("PACELINE_ENCRYPT", "1");
  Begin();
  EXPECT_EQ(Properties().pointer_support, abi::kPointerHost);
  EXPECT_TRUE(WasLogged("memory of GPU 0: not taken (encrypted payload goes in packets"));
}

}  // namespace
}  // namespace paceline::nccl_test
