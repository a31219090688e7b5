#include "transport/lane/shm/shm_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "transport/lane/shm/shm_lane.h"

namespace paceline {
namespace {

constexpr uint64_t kRing = ShmMemory::kLeastRing;

FileDescriptor Memory(uint64_t bytes, int seals) {
  FileDescriptor fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(ShmMemory, BothSidesSeeTheSameAndTheRingGoesOnBehindItsEnd) {
  FileDescriptor descriptor;
  auto mine = ShmMemory::Create(kRing, &descriptor);
  ASSERT_TRUE(mine.ok()) << mine.status();
  auto theirs = ShmMemory::Map(descriptor, kRing);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  mine->ring().control->written = 42;
  mine->ring().packets[kRing + 5] = 7;
  EXPECT_EQ(theirs->ring().control->written, 42u);
  EXPECT_EQ(theirs->ring().packets[5], 7);
  EXPECT_EQ(theirs->ring().packets[kRing + 5], 7);
}

TEST(ShmMemory, NobodyCanTakeItAway) {
  FileDescriptor descriptor;
  auto memory = ShmMemory::Create(kRing, &descriptor);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(ftruncate(descriptor.get(), 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(ShmMemory, WhatCouldShrinkOrHasAnotherSizeIsRefused) {
  constexpr int kAll = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_TRUE(ShmMemory::Map(Memory(kShmControlBytes + kRing, kAll), kRing).ok());
  EXPECT_FALSE(ShmMemory::Map(Memory(kShmControlBytes + kRing, F_SEAL_GROW), kRing).ok());
  EXPECT_FALSE(ShmMemory::Map(Memory(kShmControlBytes + kRing - 1, kAll), kRing).ok());
  EXPECT_FALSE(ShmMemory::Map(Memory(kRing, kAll), 2 * kRing).ok());
  EXPECT_FALSE(ShmMemory::Map(FileDescriptor(open("/dev/null", O_RDWR)), kRing).ok());
  EXPECT_FALSE(ShmMemory::Map(FileDescriptor(), kRing).ok());
}

TEST(ShmMemory, SizesThatCannotBeAreRefused) {
  FileDescriptor descriptor;
  for (const uint64_t bytes : {uint64_t{0}, kRing / 2, kRing + 64, 2 * ShmMemory::kMostRing, uint64_t{1} << 63}) {
    EXPECT_FALSE(ShmMemory::Create(bytes, &descriptor).ok()) << bytes;
  }
}

// `ulimit -f` is of memory without a name too, and the kernel kills who goes beyond.
TEST(ShmMemory, TheLimitOfFilesIsRespected) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{kRing, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  FileDescriptor descriptor;
  const auto memory = ShmMemory::Create(kRing, &descriptor);
  const absl::Status whole = CheckShmLane();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(whole.message().find("ulimit -f"), std::string::npos) << whole;
  EXPECT_TRUE(ShmMemory::Create(kRing, &descriptor).ok());
}

}  // namespace
}  // namespace paceline
