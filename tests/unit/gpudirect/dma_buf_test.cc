#include "gpudirect/dma_buf.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/unit/gpudirect/fake_gpu.h"

namespace paceline::gpudirect {
namespace {

using ::testing::HasSubstr;

constexpr size_t kPage = 4096;

class DmaBufTest : public ::testing::Test {
 protected:
  DmaBufTest() : context_(*PrimaryContext::Create(Gpu().driver(), 0)) {}

  // What a card does that has been given the dma-buf.
  static void WriteByCard(const DmaBuf& buffer, const std::vector<uint8_t>& bytes) {
    const auto begins = lseek(buffer.descriptor(), 0, SEEK_CUR);
    EXPECT_EQ(pwrite(buffer.descriptor(), bytes.data(), bytes.size(), begins + static_cast<off_t>(buffer.offset())),
              static_cast<ssize_t>(bytes.size()));
  }

  const std::unique_ptr<PrimaryContext> context_;
};

TEST_F(DmaBufTest, HoldsTheRangeWhereverItBegins) {
  const size_t bytes = 10 * kPage - 100;  // the allocation does not end with a page
  const DevicePointer memory = Gpu().Alloc(bytes);
  struct Range {
    size_t first, bytes;
  };
  for (const Range range : {Range{0, bytes}, Range{0, 1}, Range{1, 10}, Range{kPage, kPage},
                            Range{3 * kPage + 5, kPage}, Range{bytes - 7, 7}}) {
    Gpu().Write(memory, std::vector<uint8_t>(bytes, 1));
    const auto buffer = DmaBuf::Export(*context_, memory + range.first, range.bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.status() << " for " << range.bytes << " from " << range.first;
    WriteByCard(*buffer, std::vector<uint8_t>(range.bytes, 2));
    std::vector<uint8_t> expected(bytes, 1);
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(range.first), range.bytes, uint8_t{2});
    EXPECT_EQ(Gpu().Read(memory, bytes), expected) << range.bytes << " from " << range.first;
  }
  Gpu().Free(memory);
}

TEST_F(DmaBufTest, OwnsItsDescriptor) {
  const DevicePointer memory = Gpu().Alloc(kPage);
  int descriptor = -1;
  {
    auto buffer = DmaBuf::Export(*context_, memory, kPage);
    ASSERT_TRUE(buffer.ok());
    descriptor = buffer->descriptor();
    const DmaBuf moved = *std::move(buffer);
    EXPECT_EQ(moved.descriptor(), descriptor);
    EXPECT_GE(fcntl(descriptor, F_GETFD), 0);
  }
  EXPECT_LT(fcntl(descriptor, F_GETFD), 0);
  Gpu().Free(memory);
}

TEST_F(DmaBufTest, SaysWhyThereIsNone) {
  int ordinary = 0;
  EXPECT_THAT(std::string(DmaBuf::Export(*context_, reinterpret_cast<DevicePointer>(&ordinary), 4).status().message()),
              HasSubstr("cuMemGetHandleForAddressRange: CUDA_ERROR_INVALID_VALUE"));
  EXPECT_FALSE(PrimaryContext::Create(Gpu().driver(), 7).ok());
}

}  // namespace
}  // namespace paceline::gpudirect
