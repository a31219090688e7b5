#include "transport/wire/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace paceline::wire {
namespace {

// RFC 3720, appendix B.4.
TEST(ChecksumTest, KnownValues) {
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0x00)), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0xff)), 0x62a8ab43u);
  std::vector<uint8_t> up;
  for (uint8_t i = 0; i < 32; ++i) up.push_back(i);
  EXPECT_EQ(Crc32c(up), 0x46dd794eu);
  const std::string digits = "123456789";
  EXPECT_EQ(Crc32c({reinterpret_cast<const uint8_t*>(digits.data()), digits.size()}), 0xe3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
}

// Short ones are computed another way than long ones, both as the definition says.
TEST(ChecksumTest, IsThatOfTheDefinitionAtEveryLength) {
  std::vector<uint8_t> bytes;
  for (size_t size = 0; size <= 300; ++size) {
    uint32_t crc = ~0u;
    for (const uint8_t byte : bytes) {
      crc ^= byte;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    }
    EXPECT_EQ(Crc32c(bytes), ~crc) << size;
    bytes.push_back(static_cast<uint8_t>(size * 37 + 11));
  }
}

// Of every length that a header may have, and whatever stands where the checksum goes.
TEST(ChecksumTest, AHeadersOwnChecksumCountsAsZero) {
  std::vector<uint8_t> header;
  for (size_t size = 1; size <= 300; ++size) {
    header.push_back(static_cast<uint8_t>(size * 37));
    if (size < kHeaderChecksumAt + 4) continue;
    std::vector<uint8_t> blank = header;
    std::fill_n(blank.begin() + kHeaderChecksumAt, 4, uint8_t{0});
    EXPECT_EQ(HeaderCrc32c(header), Crc32c(blank)) << size;
  }
}

}  // namespace
}  // namespace paceline::wire
