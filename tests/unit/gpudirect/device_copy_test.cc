#include "gpudirect/device_copy.h"

#include <gmock/gmock.h>

#include <numeric>

#include "tests/unit/gpudirect/fake_gpu.h"

namespace paceline::gpudirect {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<DeviceCopy> MustCreate() {
  auto copy = DeviceCopy::Create(Gpu().driver(), 0);
  EXPECT_TRUE(copy.ok()) << copy.status();
  return *std::move(copy);
}

TEST(DeviceCopyTest, WhatWasCopiedIsThereWhenTheCallReturns) {
  const int before = Gpu().live();
  {
    const auto copy = MustCreate();
    std::vector<uint8_t> contents(10'000), back(contents.size());
    std::iota(contents.begin(), contents.end(), uint8_t{1});
    const DevicePointer memory = Gpu().Alloc(contents.size());
    Gpu().hold(1);  // who only asks would wait for ever
    EXPECT_TRUE(copy->ToDevice(memory, contents.data(), contents.size()).ok());
    EXPECT_EQ(Gpu().Read(memory, contents.size()), contents);
    EXPECT_TRUE(copy->ToHost(back.data(), memory, back.size()).ok());
    EXPECT_EQ(back, contents);
    Gpu().hold(0);
    Gpu().Free(memory);
  }
  EXPECT_EQ(Gpu().live(), before);
}

TEST(DeviceCopyTest, FaultsOfTheDriverAreTold) {
  EXPECT_THAT(std::string(DeviceCopy::Create(Gpu().driver(), 1).status().message()), HasSubstr("GPU 1"));
  Gpu().fail("cuDevicePrimaryCtxRetain", 1, 2);
  EXPECT_THAT(std::string(DeviceCopy::Create(Gpu().driver(), 0).status().message()),
              HasSubstr("cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY"));
  const auto copy = MustCreate();
  const DevicePointer memory = Gpu().Alloc(100);
  std::vector<uint8_t> host(100);
  Gpu().fail("cuMemcpyDtoHAsync_v2", 1, 700);
  EXPECT_THAT(std::string(copy->ToHost(host.data(), memory, 100).message()), HasSubstr("cuMemcpyDtoHAsync"));
  Gpu().fail("cuMemcpyHtoDAsync_v2", 1, 700);
  EXPECT_THAT(std::string(copy->ToDevice(memory, host.data(), 100).message()), HasSubstr("cuMemcpyHtoDAsync"));
  for (const bool to_host : {true, false}) {
    Gpu().fail("cuStreamSynchronize", 1, 700);
    const absl::Status failed =
        to_host ? copy->ToHost(host.data(), memory, 100) : copy->ToDevice(memory, host.data(), 100);
    EXPECT_THAT(std::string(failed.message()), HasSubstr("cuStreamSynchronize"));
  }
  EXPECT_TRUE(copy->ToHost(host.data(), memory, 100).ok()) << "one failure is not the next one's";
  Gpu().Free(memory);
}

}  // namespace
}  // namespace paceline::gpudirect
