#include "gpudirect/staging.h"

#include <gmock/gmock.h>

#include <numeric>

#include "tests/unit/gpudirect/fake_gpu.h"

namespace paceline::gpudirect {
namespace {

using ::testing::HasSubstr;

constexpr size_t kPool = 64 * 1024;

std::unique_ptr<Staging> MustCreate() {
  auto staging = Staging::Create(Gpu().driver(), 0, kPool);
  EXPECT_TRUE(staging.ok()) << staging.status();
  return *std::move(staging);
}

Staging::State Await(Staging& staging, CudaEvent event) {
  for (int i = 0; i < 100; ++i) {
    if (const auto state = staging.Poll(event); state != Staging::State::kPending) return state;
  }
  return Staging::State::kPending;
}

TEST(StagingTest, CopiesBothWaysOverlap) {
  const auto staging = MustCreate();
  std::vector<uint8_t> contents(10'000);
  std::iota(contents.begin(), contents.end(), uint8_t{1});
  const DevicePointer from = Gpu().Alloc(contents.size()), to = Gpu().Alloc(contents.size());
  Gpu().Write(from, contents);
  void* buffer = staging->Take(contents.size());
  ASSERT_NE(buffer, nullptr);
  const auto out = staging->CopyToHost(buffer, from, contents.size());
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(staging->Poll(*out), Staging::State::kPending) << "a copy is asked for, not waited for";
  // A second copy may be started while the first is under way, and ends after it.
  const auto in = staging->CopyToDevice(to, buffer, contents.size());
  ASSERT_TRUE(in.ok());
  EXPECT_EQ(Await(*staging, *in), Staging::State::kDone);
  EXPECT_EQ(Await(*staging, *out), Staging::State::kDone);
  EXPECT_EQ(Gpu().Read(to, contents.size()), contents);
  staging->Give(buffer);
  Gpu().Free(from);
  Gpu().Free(to);
}

TEST(StagingTest, ThePoolIsBoundedAndUsedAgain) {
  const auto staging = MustCreate();
  EXPECT_TRUE(staging->Fits(kPool));
  EXPECT_FALSE(staging->Fits(kPool + 1));
  EXPECT_EQ(staging->Take(kPool + 1), nullptr);
  void* half = staging->Take(kPool / 2);
  void* other = staging->Take(kPool / 2 - 5);
  ASSERT_TRUE(half != nullptr && other != nullptr);
  EXPECT_EQ(staging->Take(1), nullptr);
  EXPECT_EQ(staging->pinned_bytes(), kPool);
  staging->Give(half);
  EXPECT_EQ(staging->Take(kPool / 2), half) << "a buffer of the right size is there already";
  staging->Give(half);
  EXPECT_NE(staging->Take(100), nullptr) << "unused buffers of other sizes make room";
  EXPECT_LE(staging->pinned_bytes(), kPool);
}

TEST(StagingTest, ABufferBesideThePoolNeedsNoneOfItAndIsCopiedFromAndTo) {
  const auto staging = MustCreate();
  void* whole = staging->Take(kPool);
  ASSERT_NE(whole, nullptr);
  void* buffer = staging->TakeBesidePool(100);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(staging->pinned_bytes(), kPool);
  const DevicePointer from = Gpu().Alloc(100), to = Gpu().Alloc(100);
  Gpu().Write(from, std::vector<uint8_t>(100, 7));
  const auto out = staging->CopyToHost(buffer, from, 100);
  const auto in = staging->CopyToDevice(to, buffer, 100);
  ASSERT_TRUE(out.ok() && in.ok());
  EXPECT_EQ(Await(*staging, *out), Staging::State::kDone);
  EXPECT_EQ(Await(*staging, *in), Staging::State::kDone);
  EXPECT_EQ(Gpu().Read(to, 100), std::vector<uint8_t>(100, 7));
  staging->Give(buffer);
  EXPECT_EQ(staging->Take(1), nullptr) << "what comes back did not come from the pool";
  EXPECT_EQ(staging->TakeBesidePool(size_t{1} << 62), nullptr);
  Gpu().Free(from);
  Gpu().Free(to);
}

TEST(StagingTest, NothingIsLeftBehind) {
  const int before = Gpu().live();
  {
    const auto staging = MustCreate();
    const DevicePointer memory = Gpu().Alloc(100);
    void* buffer = staging->Take(100);
    const auto copy = staging->CopyToHost(buffer, memory, 100);
    EXPECT_TRUE(copy.ok());
    EXPECT_EQ(Await(*staging, *copy), Staging::State::kDone);
    Gpu().Free(memory);
  }
  EXPECT_EQ(Gpu().live(), before);
}

TEST(StagingTest, EventsAreNotLostWhereRecordingFailsOrACopyIsStillUnderWay) {
  const int before = Gpu().live();
  const DevicePointer memory = Gpu().Alloc(100);
  {
    const auto staging = MustCreate();
    void* buffer = staging->Take(100);
    Gpu().fail("cuEventRecord", 1, 700);
    EXPECT_FALSE(staging->CopyToDevice(memory, buffer, 100).ok());
    const int one_event = Gpu().live();
    Gpu().fail("cuEventRecord", 1, 700);
    EXPECT_FALSE(staging->CopyToDevice(memory, buffer, 100).ok());
    EXPECT_EQ(Gpu().live(), one_event) << "the same event serves the next copy";
    EXPECT_TRUE(staging->CopyToDevice(memory, buffer, 100).ok());
    EXPECT_TRUE(staging->CopyToHost(buffer, memory, 100).ok());  // nobody asks for either
  }
  Gpu().Free(memory);
  EXPECT_EQ(Gpu().live(), before);
}

TEST(StagingTest, AnAbandonedCopyRunsNoMore) {
  const auto staging = MustCreate();
  const DevicePointer memory = Gpu().Alloc(100);
  void* buffer = staging->Take(100);
  Gpu().hold(1);
  const auto copy = staging->CopyToHost(buffer, memory, 100);
  ASSERT_TRUE(copy.ok());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(staging->Poll(*copy), Staging::State::kPending);
  Gpu().Write(memory, std::vector<uint8_t>(100, 1));
  staging->Abandon(*copy);
  Gpu().hold(0);
  std::fill_n(static_cast<uint8_t*>(buffer), 100, uint8_t{9});
  const auto next = staging->CopyToDevice(memory, buffer, 100);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(Await(*staging, *next), Staging::State::kDone);
  EXPECT_EQ(Gpu().Read(memory, 100), std::vector<uint8_t>(100, 9)) << "the abandoned copy came later";
  Gpu().Free(memory);
}

TEST(StagingTest, FaultsOfTheDriverAreTold) {
  EXPECT_THAT(std::string(Staging::Create(Gpu().driver(), 1, kPool).status().message()), HasSubstr("GPU 1"));
  Gpu().fail("cuStreamCreate", 1, 2);
  EXPECT_THAT(std::string(Staging::Create(Gpu().driver(), 0, kPool).status().message()),
              HasSubstr("cuStreamCreate: CUDA_ERROR_OUT_OF_MEMORY"));
  const auto staging = MustCreate();
  Gpu().fail("cuMemHostAlloc", 1, 2);
  EXPECT_EQ(staging->Take(100), nullptr);
  void* buffer = staging->Take(100);
  ASSERT_NE(buffer, nullptr);
  const DevicePointer memory = Gpu().Alloc(100);
  Gpu().fail("cuMemcpyDtoHAsync_v2", 1, 700);
  EXPECT_THAT(std::string(staging->CopyToHost(buffer, memory, 100).status().message()), HasSubstr("(700)"));
  Gpu().fail("cuEventRecord", 1, 700);
  EXPECT_FALSE(staging->CopyToDevice(memory, buffer, 100).ok());
  const auto copy = staging->CopyToHost(buffer, memory, 100);
  ASSERT_TRUE(copy.ok());
  Gpu().fail("cuEventQuery", 1, 700);
  EXPECT_EQ(staging->Poll(*copy), Staging::State::kFailed);
  Gpu().Free(memory);
}

}  // namespace
}  // namespace paceline::gpudirect
