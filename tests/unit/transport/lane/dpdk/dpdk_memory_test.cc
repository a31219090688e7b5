// Memory that is lent to a port: what of it a card may read, and for how long. No card is needed: DPDK's questions to
// the IOMMU and to drivers are answered by this program, which keeps what would be mapped.
#include "transport/lane/dpdk/dpdk_memory.h"

#include <gmock/gmock.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_vfio.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <optional>

#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

// What is mapped, by address; each at its own. `device`: of a driver of its own.
std::map<uint64_t, uint64_t>& Mapped(const rte_device* device = nullptr) {
  static std::map<const rte_device*, std::map<uint64_t, uint64_t>> mapped;
  return mapped[device];
}
bool refuses = false;
int times_mapped = 0;

constexpr size_t kPage = 4096;

class DpdkMemoryTest : public DpdkTest {
 protected:
  static constexpr size_t kPages = 64;
  DpdkMemoryTest()
      : base_(static_cast<uint8_t*>(
            mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~DpdkMemoryTest() override {
    EXPECT_TRUE(Mapped().empty()) << "nothing stays behind";
    munmap(base_, kPages * kPage);
  }
  // From the beginning of the pages, in bytes.
  LaneMemory At(size_t offset, size_t bytes) const { return {.base = base_ + offset, .bytes = bytes}; }
  static void Free(rte_mbuf_ext_shared_info* info) {  // as the driver does with a buffer
    if (rte_mbuf_ext_refcnt_update(info, -1) == 0) info->free_cb(nullptr, info->fcb_opaque);
  }
  std::map<uint64_t, uint64_t> Pages(size_t first, size_t count) const {
    return {{reinterpret_cast<uint64_t>(base_) + first * kPage, count * kPage}};
  }

  uint8_t* base_;
};

TEST_F(DpdkMemoryTest, WholePagesInsideAreMapped) {
  DpdkMemory memory;
  ASSERT_TRUE(memory.Lend(At(100, 10 * kPage)).ok());
  EXPECT_EQ(Mapped(), Pages(1, 9));
  EXPECT_EQ(memory.Find(base_ + kPage - 1, 100), nullptr);
  EXPECT_NE(memory.Find(base_ + kPage, 9 * kPage), nullptr);
  EXPECT_EQ(memory.Find(base_ + kPage, 9 * kPage + 1), nullptr);
  EXPECT_NE(memory.Find(base_ + 10 * kPage - 1, 1), nullptr);
  EXPECT_EQ(memory.Find(base_ + 10 * kPage, 1), nullptr);
  memory.Return(At(100, 10 * kPage));
  EXPECT_TRUE(Mapped().empty());
  EXPECT_EQ(memory.Find(base_ + kPage, 1), nullptr);
}

TEST_F(DpdkMemoryTest, WhatHasNoPageOrIsOfAGpuIsNotTaken) {
  DpdkMemory memory;
  EXPECT_FALSE(memory.Lend(At(1, 2 * kPage - 2)).ok());
  EXPECT_FALSE(memory.Lend(At(0, 0)).ok());
  LaneMemory device = At(0, kPage);
  device.device = 0;
  EXPECT_FALSE(memory.Lend(device).ok());
}

TEST_F(DpdkMemoryTest, AmongManyRegionsTheRightOneIsFound) {
  DpdkMemory memory;
  for (const size_t page : {7u, 1u, 30u, 12u, 4u}) ASSERT_TRUE(memory.Lend(At(page * kPage, 2 * kPage)).ok());
  for (int round = 0; round < 2; ++round) {
    for (size_t page = 0; page < 40; ++page) {
      const bool lent = page == 7 || page == 8 || page == 1 || page == 2 || page == 30 || page == 31 || page == 12 ||
                        page == 13 || page == 4 || page == 5;
      EXPECT_EQ(memory.Find(base_ + page * kPage + 5, 100) != nullptr, lent) << page;
    }
  }
  EXPECT_NE(memory.Find(base_ + kPage, 1), memory.Find(base_ + 4 * kPage, 1)) << "each has loans of its own";
}

TEST_F(DpdkMemoryTest, TheSameRegionTwiceIsMappedOnceAndUntilBothAreBack) {
  DpdkMemory memory;
  ASSERT_TRUE(memory.Lend(At(0, 4 * kPage)).ok());
  ASSERT_TRUE(memory.Lend(At(0, 4 * kPage)).ok());
  memory.Return(At(0, 4 * kPage));
  EXPECT_EQ(Mapped(), Pages(0, 4));
  EXPECT_NE(memory.Find(base_, 1), nullptr);
  memory.Return(At(0, 4 * kPage));
  EXPECT_TRUE(Mapped().empty());
}

TEST_F(DpdkMemoryTest, OfRegionsThatOverlapOneIsMapped) {
  for (const auto& [first, count] : {std::pair{3u, 2u}, {7u, 2u}, {5u, 1u}, {2u, 9u}, {4u, 3u}}) {
    DpdkMemory memory;
    ASSERT_TRUE(memory.Lend(At(4 * kPage, 4 * kPage)).ok());
    const LaneMemory second = At(first * kPage, count * kPage);
    ASSERT_TRUE(memory.Lend(second).ok());
    ASSERT_TRUE(memory.Lend(second).ok());
    EXPECT_EQ(Mapped(), Pages(4, 4));
    EXPECT_TRUE(memory.has_changes());
    memory.Return(At(4 * kPage, 4 * kPage));
    EXPECT_EQ(Mapped(), Pages(first, count)) << "the other has its turn";
    EXPECT_FALSE(memory.has_changes());
    memory.Return(second);
    EXPECT_NE(memory.Find(static_cast<uint8_t*>(second.base), 1), nullptr) << "it was lent twice";
    memory.Return(second);
    EXPECT_TRUE(Mapped().empty());
  }
  DpdkMemory memory;
  ASSERT_TRUE(memory.Lend(At(4 * kPage, 4 * kPage)).ok());
  ASSERT_TRUE(memory.Lend(At(8 * kPage, kPage)).ok());
  ASSERT_TRUE(memory.Lend(At(3 * kPage, kPage)).ok());
  EXPECT_EQ(Mapped().size(), 3u) << "neighbours do not overlap";
}

TEST_F(DpdkMemoryTest, WhatWaitsAndIsGivenBackIsNeverMapped) {
  DpdkMemory memory;
  ASSERT_TRUE(memory.Lend(At(0, 4 * kPage)).ok());
  ASSERT_TRUE(memory.Lend(At(0, 2 * kPage)).ok());
  memory.Return(At(0, 2 * kPage));
  EXPECT_FALSE(memory.has_changes());
  memory.Return(At(0, 4 * kPage));
  EXPECT_TRUE(Mapped().empty());
}

// Mapping it would succeed, and unmapping it take it from DPDK.
TEST_F(DpdkMemoryTest, MemoryOfDpdksIsNotTaken) {
  DpdkMemory memory;
  void* const own = rte_malloc(nullptr, 8 * kPage, kPage);
  ASSERT_NE(own, nullptr);
  EXPECT_FALSE(memory.Lend({.base = own, .bytes = 8 * kPage}).ok());
  rte_free(own);
  ASSERT_EQ(rte_extmem_register(base_ + 8 * kPage, 8 * kPage, nullptr, 0, kPage), 0);
  for (const size_t first : {1u, 9u, 15u}) EXPECT_FALSE(memory.Lend(At(first * kPage, 8 * kPage)).ok()) << first;
  EXPECT_TRUE(memory.Lend(At(0, 8 * kPage)).ok());
  EXPECT_TRUE(memory.Lend(At(16 * kPage, 8 * kPage)).ok());
  EXPECT_EQ(rte_extmem_unregister(base_ + 8 * kPage, 8 * kPage), 0);
}

TEST_F(DpdkMemoryTest, PagesStayMappedWhileABufferRefersToThem) {
  DpdkMemory memory;
  ASSERT_TRUE(memory.Lend(At(0, 4 * kPage)).ok());
  const PayloadLoans* loans = memory.Find(base_, 100);
  rte_mbuf_ext_shared_info* first = loans->Add();
  rte_mbuf_ext_shared_info* second = loans->Add();
  memory.Return(At(0, 4 * kPage));
  EXPECT_EQ(memory.Find(base_, 100), nullptr) << "nothing more is to be read from it";
  EXPECT_TRUE(memory.has_changes());
  Free(first);
  memory.MakeChanges();
  EXPECT_EQ(Mapped(), Pages(0, 4));
  // Other pages may be at these addresses meanwhile: the mapping is not theirs.
  EXPECT_TRUE(memory.Lend(At(0, 4 * kPage)).ok());
  EXPECT_EQ(memory.Find(base_, 100), nullptr);
  const int mapped = times_mapped;
  Free(second);
  memory.MakeChanges();
  EXPECT_FALSE(memory.has_changes());
  EXPECT_EQ(times_mapped, mapped + 1) << "anew";
  EXPECT_NE(memory.Find(base_, 100), nullptr);
  memory.Return(At(0, 4 * kPage));
}

TEST_F(DpdkMemoryTest, PortsShareWhatIsMapped) {
  DpdkMemory a, b;
  ASSERT_TRUE(a.Lend(At(0, 4 * kPage)).ok());
  ASSERT_TRUE(b.Lend(At(0, 4 * kPage)).ok());
  rte_mbuf_ext_shared_info* of_b = b.Find(base_, 1)->Add();
  a.Return(At(0, 4 * kPage));
  EXPECT_EQ(Mapped(), Pages(0, 4));
  EXPECT_NE(b.Find(base_, 1), nullptr);
  b.Return(At(0, 4 * kPage));
  EXPECT_EQ(Mapped(), Pages(0, 4));
  // Registered anew before b's card has read the last of it.
  EXPECT_TRUE(a.Lend(At(0, 4 * kPage)).ok());
  EXPECT_EQ(a.Find(base_, 1), nullptr);
  Free(of_b);
  b.MakeChanges();
  EXPECT_TRUE(Mapped().empty());
  a.MakeChanges();
  EXPECT_NE(a.Find(base_, 1), nullptr);
  a.Return(At(0, 4 * kPage));
}

TEST_F(DpdkMemoryTest, CardsWithDriversOfTheirOwnHaveAMappingEach) {
  rte_device* const first = reinterpret_cast<rte_device*>(base_);
  rte_device* const second = reinterpret_cast<rte_device*>(base_ + 1);
  DpdkMemory shared, a({.device = first}), b({.device = second});
  for (DpdkMemory* memory : {&shared, &a, &b}) ASSERT_TRUE(memory->Lend(At(0, 4 * kPage)).ok());
  for (const rte_device* device : {static_cast<rte_device*>(nullptr), first, second}) {
    EXPECT_EQ(Mapped(device), Pages(0, 4));
  }
  rte_mbuf_ext_shared_info* of_b = b.Find(base_, 1)->Add();
  for (DpdkMemory* memory : {&shared, &a, &b}) memory->Return(At(0, 4 * kPage));
  EXPECT_TRUE(Mapped().empty());
  EXPECT_TRUE(Mapped(first).empty());
  EXPECT_EQ(Mapped(second), Pages(0, 4));
  // Other pages may be there: for the card that has read the old ones at once, for the other when it has.
  EXPECT_TRUE(a.Lend(At(0, 4 * kPage)).ok());
  EXPECT_EQ(Mapped(first), Pages(0, 4));
  EXPECT_TRUE(b.Lend(At(0, 4 * kPage)).ok());
  EXPECT_EQ(b.Find(base_, 1), nullptr);
  Free(of_b);
  b.MakeChanges();
  EXPECT_NE(b.Find(base_, 1), nullptr);
  b.Return(At(0, 4 * kPage));
  EXPECT_TRUE(Mapped(second).empty());
  // What overlaps waits, whichever card's it is.
  EXPECT_TRUE(b.Lend(At(2 * kPage, 4 * kPage)).ok());
  EXPECT_TRUE(Mapped(second).empty());
  a.Return(At(0, 4 * kPage));
  b.MakeChanges();
  EXPECT_EQ(Mapped(second), Pages(2, 4));
  b.Return(At(2 * kPage, 4 * kPage));
  EXPECT_TRUE(Mapped(second).empty());
}

TEST_F(DpdkMemoryTest, MemoryOfAGpuIsForCardsThatTakeIt) {
  rte_device* const card = reinterpret_cast<rte_device*>(base_);
  ASSERT_EQ(mprotect(base_, kPages * kPage, PROT_NONE), 0);
  LaneMemory gpu = At(100, 4 * kPage);
  gpu.device = 0;
  EXPECT_FALSE(DpdkMemory({.device = card}).Lend(gpu).ok());
  DpdkMemory memory({.device = card, .takes_devices = true});
  ASSERT_TRUE(memory.Lend(gpu).ok());
  EXPECT_EQ(Mapped(card), Pages(1, 3));
  EXPECT_NE(memory.Find(base_ + kPage, 3 * kPage), nullptr);
  memory.Return(gpu);
  EXPECT_TRUE(Mapped(card).empty());
}

TEST_F(DpdkMemoryTest, AtTheEndNothingStaysMapped) {
  auto memory = std::make_unique<DpdkMemory>();
  ASSERT_TRUE(memory->Lend(At(2 * kPage, 5 * kPage)).ok());
  memory->UnmapAll();
  EXPECT_TRUE(Mapped().empty());
  ASSERT_TRUE(memory->Lend(At(0, kPage)).ok());
  ASSERT_TRUE(memory->Lend(At(2 * kPage, kPage)).ok());
  rte_mbuf_ext_shared_info* late = memory->Find(base_, 1)->Add();
  memory->Return(At(0, kPage));
  memory.reset();
  EXPECT_TRUE(Mapped().empty());
  EXPECT_EQ(rte_mbuf_ext_refcnt_read(late), 1);  // of a buffer that another port still has
  Free(late);
}

TEST_F(DpdkMemoryTest, WhatTheIommuRefusesIsSaidAndNotTaken) {
  DpdkMemory memory;
  refuses = true;
  const absl::Status status = memory.Lend(At(0, kPage));
  refuses = false;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the IOMMU does not map it (Cannot allocate memory)"));
  EXPECT_EQ(memory.Find(base_, 1), nullptr);
  EXPECT_TRUE(memory.Lend(At(0, kPage)).ok()) << "nothing of the attempt is left";
  memory.Return(At(0, kPage));
  refuses = true;
  const absl::Status other = DpdkMemory({.device = reinterpret_cast<rte_device*>(base_)}).Lend(At(0, kPage));
  refuses = false;
  EXPECT_THAT(std::string(other.message()), HasSubstr("the driver does not map it (No such file or directory)"));
  EXPECT_TRUE(memory.Lend(At(0, 2 * kPage)).ok());
  EXPECT_NE(memory.Find(base_, 1), nullptr) << "what was refused is in nobody's way";
}

TEST_F(DpdkMemoryTest, PortsMadeOfSoftwareHaveNoMemoryMapped) {
  EXPECT_FALSE(DpdkMemory::CanMapFor("net_ring_pl_a0"));
  EXPECT_FALSE(DpdkMemory::CanMapFor(""));
  EXPECT_FALSE(DpdkMemory::CanMapFor("0000:ff:1f.7"));
}

}  // namespace
}  // namespace paceline

// The linker takes these for DPDK's.
extern "C" {

int rte_vfio_container_dma_map(int container, uint64_t address, uint64_t iova, uint64_t bytes) {
  EXPECT_EQ(container, RTE_VFIO_DEFAULT_CONTAINER_FD);
  EXPECT_EQ(address, iova);
  if (paceline::refuses) {
    rte_errno = ENOENT;  // as DPDK: of something before, or nothing
    errno = ENOMEM;
    return -1;
  }
  ++paceline::times_mapped;
  EXPECT_TRUE(paceline::Mapped().emplace(address, bytes).second);
  return 0;
}

int rte_vfio_container_dma_unmap(int container, uint64_t address, uint64_t iova, uint64_t bytes) {
  EXPECT_EQ(container, RTE_VFIO_DEFAULT_CONTAINER_FD);
  EXPECT_EQ(address, iova);
  const auto found = paceline::Mapped().find(address);
  EXPECT_TRUE(found != paceline::Mapped().end() && found->second == bytes);
  if (found != paceline::Mapped().end()) paceline::Mapped().erase(found);
  return 0;
}

int rte_dev_dma_map(rte_device* device, void* address, uint64_t iova, size_t bytes) {
  EXPECT_EQ(reinterpret_cast<uint64_t>(address), iova);
  if (paceline::refuses) {
    rte_errno = ENOENT;
    return -1;
  }
  EXPECT_TRUE(paceline::Mapped(device).emplace(iova, bytes).second);
  return 0;
}

int rte_dev_dma_unmap(rte_device* device, void* address, uint64_t iova, size_t bytes) {
  EXPECT_EQ(reinterpret_cast<uint64_t>(address), iova);
  const auto found = paceline::Mapped(device).find(iova);
  EXPECT_TRUE(found != paceline::Mapped(device).end() && found->second == bytes);
  if (found != paceline::Mapped(device).end()) paceline::Mapped(device).erase(found);
  return 0;
}

}  // extern "C"
