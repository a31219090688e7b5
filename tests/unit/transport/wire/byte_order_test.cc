#include "transport/wire/byte_order.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace paceline::wire {
namespace {

TEST(ByteOrderTest, WritesLittleEndianAndReadsItBack) {
  std::array<uint8_t, 21> buffer{};
  Writer writer(buffer);
  writer.U8(0x01);
  writer.U16(0x0302);
  writer.U32(0x07060504);
  writer.U48(0x0d0c0b0a0908);
  writer.U64(0x1514131211100f0e);
  ASSERT_FALSE(writer.failed());
  EXPECT_EQ(writer.size(), 21u);
  for (size_t i = 0; i < buffer.size(); ++i) EXPECT_EQ(buffer[i], i + 1);
  Reader reader(buffer);
  EXPECT_EQ(reader.U8(), 0x01u);
  EXPECT_EQ(reader.U16(), 0x0302u);
  EXPECT_EQ(reader.U32(), 0x07060504u);
  EXPECT_EQ(reader.U48(), 0x0d0c0b0a0908u);
  EXPECT_EQ(reader.U64(), 0x1514131211100f0eu);
  EXPECT_FALSE(reader.failed());
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(ByteOrderTest, AReaderThatHasRunOutGivesZerosAndStaysFailed) {
  const std::vector<uint8_t> bytes = {1, 2, 3};
  Reader reader(bytes);
  EXPECT_EQ(reader.U32(), 0u);
  EXPECT_TRUE(reader.failed());
  EXPECT_EQ(reader.U8(), 0u);
  EXPECT_TRUE(reader.Bytes(1).empty());
  EXPECT_TRUE(reader.failed());
}

TEST(ByteOrderTest, AWriterNeverPassesItsEnd) {
  std::array<uint8_t, 8> buffer{};
  Writer writer(std::span<uint8_t>(buffer).first(5));
  writer.U32(0x01010101);
  writer.U16(0x0202);
  EXPECT_TRUE(writer.failed());
  EXPECT_EQ(writer.size(), 4u);
  EXPECT_EQ(buffer[4], 0u);
  EXPECT_EQ(buffer[5], 0u);
}

TEST(ByteOrderTest, WritingNoBytesIsNothing) {
  Writer writer({});
  writer.Bytes({});
  EXPECT_FALSE(writer.failed());
}

}  // namespace
}  // namespace paceline::wire
