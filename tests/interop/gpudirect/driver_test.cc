// What Paceline asks of the CUDA driver, asked of the one that the loader finds: a real one with a real GPU, or the
// fake one that everything else is tested on, which has to answer alike. Without any the tests skip themselves.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <numeric>
#include <vector>

#include "gpudirect/cuda_driver.h"
#include "gpudirect/device_copy.h"
#include "gpudirect/dma_buf.h"
#include "gpudirect/memory_kind.h"
#include "gpudirect/primary_context.h"
#include "gpudirect/registration_path.h"
#include "gpudirect/staging.h"

namespace paceline::gpudirect {
namespace {

using ::testing::HasSubstr;

class CudaDriverAnswersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    driver_ = CudaDriver::Get(&reason);
    if (driver_ == nullptr) GTEST_SKIP() << reason;
    library_ = dlopen("libcuda.so.1", RTLD_NOW);
    ASSERT_EQ(driver_->cuDeviceGet(&device_, 0), kCudaSuccess);
    ASSERT_EQ(driver_->cuDevicePrimaryCtxRetain(&context_, device_), kCudaSuccess);
    ASSERT_EQ(driver_->cuCtxPushCurrent(context_), kCudaSuccess);
  }
  void TearDown() override {
    if (context_ == nullptr) return;
    CudaContext popped;
    EXPECT_EQ(driver_->cuCtxPopCurrent(&popped), kCudaSuccess);
    EXPECT_EQ(driver_->cuDevicePrimaryCtxRelease(device_), kCudaSuccess);
  }

  template <typename... Arguments>
  CudaResult Call(const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<CudaResult (*)(Arguments...)>(dlsym(library_, name));
    return function == nullptr ? kCudaInvalidValue : function(arguments...);
  }
  DevicePointer Alloc(size_t bytes) {
    DevicePointer pointer = 0;
    EXPECT_EQ(Call("cuMemAlloc_v2", &pointer, bytes), kCudaSuccess);
    return pointer;
  }
  void Free(DevicePointer pointer) { EXPECT_EQ(Call("cuMemFree_v2", pointer), kCudaSuccess); }
  MemoryInfo InfoOf(DevicePointer pointer) { return FindMemory(*driver_, reinterpret_cast<void*>(pointer)); }
  int Attribute(int attribute) {
    int value = 0;
    EXPECT_EQ(driver_->cuDeviceGetAttribute(&value, attribute, device_), kCudaSuccess);
    return value;
  }

  const CudaDriver* driver_ = nullptr;
  void* library_ = nullptr;
  int device_ = 0;
  CudaContext context_ = nullptr;
};

std::vector<uint8_t> Counted(size_t bytes, uint8_t first) {
  std::vector<uint8_t> values(bytes);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_F(CudaDriverAnswersTest, KindsOfMemory) {
  const DevicePointer first = Alloc(1 << 20), second = Alloc(4096);
  for (const DevicePointer at : {first, first + 12'345, first + (1 << 20) - 1}) {
    EXPECT_EQ(InfoOf(at).kind, MemoryKind::kDevice);
    EXPECT_EQ(InfoOf(at).device, 0);
    EXPECT_EQ(InfoOf(at).buffer_id, InfoOf(first).buffer_id);
  }
  EXPECT_NE(InfoOf(first).buffer_id, 0U);
  EXPECT_NE(InfoOf(second).buffer_id, InfoOf(first).buffer_id);
  const uint64_t before = InfoOf(second).buffer_id;
  Free(second);
  const DevicePointer again = Alloc(4096);
  EXPECT_NE(InfoOf(again).buffer_id, before) << "a buffer at the same place is another";
  Free(again);
  Free(first);

  void* pinned = nullptr;
  ASSERT_EQ(driver_->cuMemHostAlloc(&pinned, 8192, 0), kCudaSuccess);
  EXPECT_EQ(FindMemory(*driver_, pinned).kind, MemoryKind::kPinned);
  EXPECT_EQ(driver_->cuMemFreeHost(pinned), kCudaSuccess);
  DevicePointer managed = 0;
  ASSERT_EQ(Call("cuMemAllocManaged", &managed, size_t{1 << 16}, 1U), kCudaSuccess);
  EXPECT_EQ(InfoOf(managed).kind, MemoryKind::kManaged);
  Free(managed);
  std::vector<uint8_t> ordinary(100);
  EXPECT_EQ(FindMemory(*driver_, ordinary.data()).kind, MemoryKind::kHost);
}

TEST_F(CudaDriverAnswersTest, APrimaryContextIsHeldAndNotMade) {
  EXPECT_TRUE(PrimaryContext::Create(*driver_, 0).ok());
  EXPECT_THAT(std::string(PrimaryContext::Create(*driver_, driver_->device_count()).status().message()),
              HasSubstr("GPU"));
  CudaContext popped;
  ASSERT_EQ(driver_->cuCtxPopCurrent(&popped), kCudaSuccess);
  ASSERT_EQ(driver_->cuDevicePrimaryCtxRelease(device_), kCudaSuccess);
  const bool made = PrimaryContext::Create(*driver_, 0).ok();
  unsigned flags = 0;
  int active = 0;
  EXPECT_EQ(driver_->cuDevicePrimaryCtxGetState(device_, &flags, &active), kCudaSuccess);
  EXPECT_FALSE(made);
  EXPECT_EQ(active, 0);
  ASSERT_EQ(driver_->cuDevicePrimaryCtxRetain(&context_, device_), kCudaSuccess);
  ASSERT_EQ(driver_->cuCtxPushCurrent(context_), kCudaSuccess);
}

TEST_F(CudaDriverAnswersTest, WhatWasCopiedIsThereWhenTheCallReturns) {
  auto copy = DeviceCopy::Create(*driver_, 0);
  ASSERT_TRUE(copy.ok()) << copy.status();
  const DevicePointer memory = Alloc(1 << 20);
  for (const size_t bytes : {1, 1408, 4095, 1 << 20}) {
    const std::vector<uint8_t> sent = Counted(bytes, static_cast<uint8_t>(bytes));
    std::vector<uint8_t> back(bytes);
    EXPECT_TRUE((*copy)->ToDevice(memory, sent.data(), bytes).ok());
    EXPECT_TRUE((*copy)->ToHost(back.data(), memory, bytes).ok());
    EXPECT_EQ(back, sent);
  }
  Free(memory);
  std::vector<uint8_t> back(8);
  EXPECT_FALSE((*copy)->ToHost(back.data(), memory, back.size()).ok()) << "the memory is gone";
}

TEST_F(CudaDriverAnswersTest, StagedCopiesOverlapAndStayWithinTheirPool) {
  constexpr size_t kBytes = 256 << 10, kBuffers = 16;
  auto staging = Staging::Create(*driver_, 0, kBytes * kBuffers);
  ASSERT_TRUE(staging.ok()) << staging.status();
  const DevicePointer memory = Alloc(kBytes * kBuffers);
  std::vector<void*> buffers;
  while (void* buffer = (*staging)->Take(kBytes)) buffers.push_back(buffer);
  ASSERT_EQ(buffers.size(), kBuffers);
  const auto wait = [&](const std::vector<CudaEvent>& events) {
    for (CudaEvent event : events) {
      Staging::State state = Staging::State::kPending;
      while ((state = (*staging)->Poll(event)) == Staging::State::kPending) sched_yield();
      EXPECT_EQ(state, Staging::State::kDone);
    }
  };
  std::vector<CudaEvent> events;
  for (size_t i = 0; i < kBuffers; ++i) {
    const std::vector<uint8_t> contents = Counted(kBytes, static_cast<uint8_t>(i));
    std::copy(contents.begin(), contents.end(), static_cast<uint8_t*>(buffers[i]));
    auto event = (*staging)->CopyToDevice(memory + i * kBytes, buffers[i], kBytes);
    ASSERT_TRUE(event.ok()) << event.status();
    events.push_back(*event);
  }
  wait(events);
  events.clear();
  for (size_t i = 0; i < kBuffers; ++i) {
    auto event = (*staging)->CopyToHost(buffers[kBuffers - 1 - i], memory + i * kBytes, kBytes);
    ASSERT_TRUE(event.ok()) << event.status();
    events.push_back(*event);
  }
  wait(events);
  for (size_t i = 0; i < kBuffers; ++i) {
    const auto* data = static_cast<const uint8_t*>(buffers[kBuffers - 1 - i]);
    EXPECT_EQ(std::vector<uint8_t>(data, data + kBytes), Counted(kBytes, static_cast<uint8_t>(i)));
    (*staging)->Give(buffers[kBuffers - 1 - i]);
  }
  EXPECT_LE((*staging)->pinned_bytes(), kBytes * kBuffers);
  Free(memory);
}

TEST_F(CudaDriverAnswersTest, ADmaBufHoldsTheRange) {
  if (Attribute(kDeviceDmaBufSupported) == 0) GTEST_SKIP() << "the GPU or the kernel gives out no dma-buf";
  auto gpu = PrimaryContext::Create(*driver_, 0);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const DevicePointer memory = Alloc(4 << 20);
  constexpr size_t kAt = 12'345, kBytes = 100'000;
  auto exported = DmaBuf::Export(**gpu, memory + kAt, kBytes);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->offset(), kAt % 4096);
  const auto size = static_cast<size_t>(lseek(exported->descriptor(), 0, SEEK_END));
  EXPECT_GE(size, exported->offset() + kBytes);
  EXPECT_EQ(size % 4096, 0U);
  EXPECT_FALSE(DmaBuf::Export(**gpu, 4096, 4096).ok()) << "no memory of a GPU";
  Free(memory);
}

TEST_F(CudaDriverAnswersTest, TheWayToACardIsAsTheDriverSays) {
  const CardAbilities card{.places = true};
  const RegistrationChoice choice = ChooseRegistration(*driver_, 0, card);
  RecordProperty("way", RegistrationPathName(choice.path));
  RecordProperty("reason", choice.reason);
  std::printf("  by a card that takes dma-bufs: %s (%s)%s\n", RegistrationPathName(choice.path), choice.reason.c_str(),
              choice.needs_flush ? ", flushed" : "");
  EXPECT_EQ(choice.path == RegistrationPath::kDmaBuf, Attribute(kDeviceDmaBufSupported) != 0);
  EXPECT_EQ(ChooseRegistration(*driver_, 0, {}).path, RegistrationPath::kStaging);
  if ((Attribute(kDeviceFlushWritesOptions) & kFlushByHost) == 0) return;
  auto gpu = PrimaryContext::Create(*driver_, 0);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_TRUE(FlushRemoteWrites(**gpu).ok());
}

}  // namespace
}  // namespace paceline::gpudirect
