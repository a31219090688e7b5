#include "gpudirect/primary_context.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/unit/gpudirect/fake_gpu.h"

namespace paceline::gpudirect {
namespace {

using ::testing::HasSubstr;

bool IsActive() {
  unsigned flags = 0;
  int active = -1;
  EXPECT_EQ(Gpu().driver().cuDevicePrimaryCtxGetState(0, &flags, &active), kCudaSuccess);
  return active == 1;
}

std::string WhyNot() { return std::string(PrimaryContext::Create(Gpu().driver(), 0).status().message()); }

TEST(PrimaryContextTest, IsHeldWhileTheObjectLivesAndNotLonger) {
  auto held = PrimaryContext::Create(Gpu().driver(), 0);
  ASSERT_TRUE(held.ok()) << held.status();
  Gpu().driver().cuDevicePrimaryCtxRelease(0);  // the program's own
  EXPECT_TRUE(IsActive());
  held->reset();
  EXPECT_FALSE(IsActive());
  CudaContext context = nullptr;
  Gpu().driver().cuDevicePrimaryCtxRetain(&context, 0);
}

TEST(PrimaryContextTest, IsTheProgramsToMake) {
  Gpu().driver().cuDevicePrimaryCtxRelease(0);
  EXPECT_FALSE(IsActive());
  EXPECT_THAT(WhyNot(), HasSubstr("GPU 0 has no primary context"));
  EXPECT_FALSE(IsActive());
  CudaContext context = nullptr;
  Gpu().driver().cuDevicePrimaryCtxRetain(&context, 0);
  EXPECT_EQ(WhyNot(), "");
}

TEST(PrimaryContextTest, FaultsOfTheDriverAreTold) {
  Gpu().fail("cuDevicePrimaryCtxGetState", 1, 2);
  EXPECT_THAT(WhyNot(), HasSubstr("cuDevicePrimaryCtxGetState: CUDA_ERROR_OUT_OF_MEMORY"));
}

}  // namespace
}  // namespace paceline::gpudirect
