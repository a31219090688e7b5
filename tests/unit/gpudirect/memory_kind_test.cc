#include "gpudirect/memory_kind.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/unit/gpudirect/fake_gpu.h"

namespace paceline::gpudirect {
namespace {

using ::testing::HasSubstr;

void* Pointer(DevicePointer pointer) { return reinterpret_cast<void*>(pointer); }

TEST(CudaDriverTest, SaysWhyThereIsNone) {
  const auto missing = CudaDriver::Load("libcuda_that_is_not_there.so.1");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("libcuda_that_is_not_there.so.1"));
  const auto broken = CudaDriver::Load("/proc/self/cmdline");
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(std::string(broken.status().message()), HasSubstr("/proc/self/cmdline: "));
  const auto other = CudaDriver::Load("libm.so.6");
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("lacks the function cuInit"));
}

// Freed memory would not hold what it held.
TEST(CudaDriverTest, OutlivesWhatHasStaticStorage) {
  static const CudaDriver* driver = nullptr;
  static CudaResult (*init)(unsigned) = nullptr;
  EXPECT_EXIT(
      {
        Gpu();  // the loader finds it by its name from here on
        std::atexit([] { std::_Exit(driver != nullptr && driver->cuInit == init ? 0 : 1); });
        driver = CudaDriver::Get();
        if (driver != nullptr) init = driver->cuInit;
        std::exit(2);
      },
      testing::ExitedWithCode(0), "");
}

TEST(CudaDriverTest, AFailedInitIsNamed) {
  Gpu().fail("cuInit", 1, 2);
  const auto driver = CudaDriver::Load(PACELINE_FAKE_CUDA);
  ASSERT_FALSE(driver.ok());
  EXPECT_THAT(std::string(driver.status().message()), HasSubstr("cuInit: CUDA_ERROR_OUT_OF_MEMORY (2)"));
  setenv("FAKE_CUDA_DEVICES", "0", 1);
  EXPECT_THAT(std::string(CudaDriver::Load(PACELINE_FAKE_CUDA).status().message()), HasSubstr("no device"));
  unsetenv("FAKE_CUDA_DEVICES");
}

TEST(MemoryKindTest, EachKindIsKnown) {
  const CudaDriver& driver = Gpu().driver();
  int ordinary = 0;
  EXPECT_EQ(FindMemory(driver, &ordinary).kind, MemoryKind::kHost);
  EXPECT_EQ(FindMemory(driver, &ordinary).device, -1);

  const DevicePointer device = Gpu().Alloc(1000), managed = Gpu().AllocManaged(1000);
  EXPECT_EQ(FindMemory(driver, Pointer(device)).kind, MemoryKind::kDevice);
  EXPECT_EQ(FindMemory(driver, Pointer(device + 999)).kind, MemoryKind::kDevice);
  EXPECT_EQ(FindMemory(driver, Pointer(device)).device, 0);
  EXPECT_EQ(FindMemory(driver, Pointer(managed)).kind, MemoryKind::kManaged);
  void* pinned = nullptr;
  {
    const CudaScope scope(driver, Gpu().context());
    ASSERT_EQ(driver.cuMemHostAlloc(&pinned, 1000, 0), kCudaSuccess);
  }
  EXPECT_EQ(FindMemory(driver, pinned).kind, MemoryKind::kPinned);
  {
    const CudaScope scope(driver, Gpu().context());
    driver.cuMemFreeHost(pinned);
  }
  Gpu().Free(device);
  Gpu().Free(managed);
  EXPECT_EQ(FindMemory(driver, Pointer(device)).kind, MemoryKind::kHost);
}

TEST(MemoryKindTest, AnAllocationHasAnIdOfItsOwn) {
  const DevicePointer first = Gpu().Alloc(4096);
  const uint64_t id = FindMemory(Gpu().driver(), Pointer(first)).buffer_id;
  EXPECT_NE(id, 0u);
  EXPECT_EQ(FindMemory(Gpu().driver(), Pointer(first + 100)).buffer_id, id);
  Gpu().Free(first);
  const DevicePointer second = Gpu().Alloc(4096);
  EXPECT_NE(FindMemory(Gpu().driver(), Pointer(second)).buffer_id, id);
  Gpu().Free(second);
}

}  // namespace
}  // namespace paceline::gpudirect
