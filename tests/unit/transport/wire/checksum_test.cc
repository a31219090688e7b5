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
