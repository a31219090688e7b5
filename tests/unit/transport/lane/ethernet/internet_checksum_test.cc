#include "transport/lane/ethernet/internet_checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include "transport/base/random.h"

namespace paceline {
namespace {

// RFC 1071 word by word, as its text has it.
uint16_t Plain(const std::vector<uint8_t>& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    sum += static_cast<uint32_t>(bytes[i] << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0));
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

TEST(InternetChecksumTest, TheExampleOfTheRfc) {
  const std::vector<uint8_t> bytes = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};  // RFC 1071 section 3
  InternetChecksum sum;
  sum.Add(bytes);
  EXPECT_EQ(sum.Sum(), 0xddf2);
  EXPECT_EQ(sum.Checksum(), 0x220d);
}

TEST(InternetChecksumTest, NothingSumsToZero) { EXPECT_EQ(InternetChecksum().Checksum(), 0xffff); }

// Words whose sum carries each time that it is folded.
TEST(InternetChecksumTest, NoCarryIsLost) {
  const std::vector<uint8_t> bytes = {0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x01, 0x00};
  InternetChecksum sum;
  sum.Add(bytes);
  EXPECT_EQ(sum.Sum(), Plain(bytes));
}

TEST(InternetChecksumTest, PiecesOfAnyLengthSumAsTheWhole) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bytes(random.Below(200));
    for (uint8_t& byte : bytes) byte = random.Below(4) == 0 ? 0xff : static_cast<uint8_t>(random.Below(256));
    InternetChecksum sum;
    sum.AddWord(0xfffe);
    for (size_t at = 0; at < bytes.size();) {
      const size_t step = std::min<size_t>(1 + random.Below(40), bytes.size() - at);
      sum.Add({bytes.data() + at, step});
      at += step;
    }
    std::vector<uint8_t> whole = {0xff, 0xfe};
    whole.insert(whole.end(), bytes.begin(), bytes.end());
    ASSERT_EQ(sum.Sum(), Plain(whole)) << bytes.size() << " bytes";
  }
}

}  // namespace
}  // namespace paceline
