#include "gpudirect/registration_path.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/unit/gpudirect/fake_gpu.h"

namespace paceline::gpudirect {
namespace {

using ::testing::HasSubstr;

const CardAbilities kCard = {.places = true};
const CardAbilities kOldCard = {.places = true, .dma_buf_problem = "too old", .peer_memory = true};

class RegistrationPathTest : public ::testing::Test {
 protected:
  ~RegistrationPathTest() override {
    for (const char* name :
         {"FAKE_CUDA_DMA_BUF", "FAKE_CUDA_RDMA", "FAKE_CUDA_WRITES_ORDERING", "FAKE_CUDA_FLUSH_OPTIONS"}) {
      unsetenv(name);
    }
  }
  static void ExpectStaged(const RegistrationChoice& choice, const std::string& reason) {
    EXPECT_EQ(choice.path, RegistrationPath::kStaging);
    EXPECT_THAT(choice.reason, HasSubstr(reason));
  }
};

TEST_F(RegistrationPathTest, IsDmaBufWhereGpuAndCardHaveThem) {
  EXPECT_EQ(ChooseRegistration(Gpu().driver(), 0, kCard).path, RegistrationPath::kDmaBuf);
  ExpectStaged(ChooseRegistration(Gpu().driver(), 0, {.peer_memory = true}), "places data by the processor");
  ExpectStaged(ChooseRegistration(Gpu().driver(), 0, {.places = true, .dma_buf_problem = "too old"}),
               "the card takes no dma-buf (too old), and the module");
  setenv("FAKE_CUDA_DMA_BUF", "0", 1);
  ExpectStaged(ChooseRegistration(Gpu().driver(), 0, kCard), "nvidia_peermem is not loaded");
}

TEST_F(RegistrationPathTest, IsPeerMemoryWhereTheModuleIsLoadedAndTheGpuLetsIt) {
  const RegistrationChoice choice = ChooseRegistration(Gpu().driver(), 0, kOldCard);
  EXPECT_EQ(choice.path, RegistrationPath::kPeerMemory);
  EXPECT_THAT(choice.reason, HasSubstr("the card takes no dma-buf (too old)"));
  EXPECT_EQ(ChooseRegistration(Gpu().driver(), 0, {.places = true, .peer_memory = true}).path,
            RegistrationPath::kDmaBuf)
      << "which needs no module beside the driver";
  setenv("FAKE_CUDA_RDMA", "0", 1);
  ExpectStaged(ChooseRegistration(Gpu().driver(), 0, kOldCard), "the GPU has no GPUDirect RDMA");
}

TEST_F(RegistrationPathTest, OnlyWhatKernelsSeeGoesByTheCard) {
  EXPECT_FALSE(ChooseRegistration(Gpu().driver(), 0, kCard).needs_flush);
  setenv("FAKE_CUDA_WRITES_ORDERING", "0", 1);
  for (const CardAbilities& card : {kCard, kOldCard}) {
    const RegistrationChoice choice = ChooseRegistration(Gpu().driver(), 0, card);
    EXPECT_NE(choice.path, RegistrationPath::kStaging);
    EXPECT_TRUE(choice.needs_flush);
  }
  setenv("FAKE_CUDA_FLUSH_OPTIONS", "2", 1);  // by a stream only
  ExpectStaged(ChooseRegistration(Gpu().driver(), 0, kCard), "the host cannot");
  setenv("FAKE_CUDA_WRITES_ORDERING", "200", 1);
  EXPECT_EQ(ChooseRegistration(Gpu().driver(), 0, kCard).path, RegistrationPath::kDmaBuf);
}

TEST_F(RegistrationPathTest, FlushesByTheDriver) {
  const auto context = PrimaryContext::Create(Gpu().driver(), 0);
  ASSERT_TRUE(context.ok()) << context.status();
  const int before = Gpu().flushes();
  EXPECT_TRUE(FlushRemoteWrites(**context).ok());
  EXPECT_EQ(Gpu().flushes(), before + 1);
  Gpu().fail("cuFlushGPUDirectRDMAWrites", 1, 700);
  EXPECT_THAT(std::string(FlushRemoteWrites(**context).message()), HasSubstr("cuFlushGPUDirectRDMAWrites"));
}

}  // namespace
}  // namespace paceline::gpudirect
