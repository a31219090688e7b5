#include "transport/wire/checksum.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace paceline::wire
