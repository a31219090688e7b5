#include "transport/wire/bundle.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline::wire {
namespace {

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class BundleTest : public testing::Test {
 protected:
  void Add(uint64_t tag, const std::string& text, bool has_immediate = false, uint64_t immediate = 0) {
    const size_t at = bytes_.size();
    bytes_.resize(at + BundledBytes(text.size(), has_immediate));
    const uint8_t* end =
        WriteBundled({.tag = tag, .has_immediate = has_immediate, .immediate = immediate, .data = BytesOf(text)},
                     bytes_.data() + at);
    EXPECT_EQ(end, bytes_.data() + bytes_.size());
  }

  std::vector<uint8_t> bytes_;
};

TEST_F(BundleTest, ComesBackAsItWasWritten) {
  Add(7, "a");
  Add(~uint64_t{0}, "with an immediate", true, 0x1122334455667788);
  Add(0, std::string(1024, 'x'));
  EXPECT_TRUE(IsBundle(bytes_));
  std::span<const uint8_t> rest = bytes_;
  BundledSend send;
  ASSERT_TRUE(ReadBundled(rest, &send));
  EXPECT_EQ(send.tag, 7u);
  EXPECT_FALSE(send.has_immediate);
  EXPECT_EQ(std::string(send.data.begin(), send.data.end()), "a");
  ASSERT_TRUE(ReadBundled(rest, &send));
  EXPECT_EQ(send.tag, ~uint64_t{0});
  EXPECT_TRUE(send.has_immediate);
  EXPECT_EQ(send.immediate, 0x1122334455667788u);
  EXPECT_EQ(std::string(send.data.begin(), send.data.end()), "with an immediate");
  ASSERT_TRUE(ReadBundled(rest, &send));
  EXPECT_FALSE(send.has_immediate);
  EXPECT_EQ(std::string(send.data.begin(), send.data.end()), std::string(1024, 'x'));
  EXPECT_TRUE(rest.empty());
  EXPECT_FALSE(ReadBundled(rest, &send));
}

TEST_F(BundleTest, IsCutOnlyBetweenSends) {
  Add(1, "one");
  const size_t first = bytes_.size();
  Add(2, "two", true, 3);
  for (size_t size = 0; size <= bytes_.size(); ++size) {
    // (A copy of that size: reading past it shows under the address sanitizer.)
    const std::vector<uint8_t> cut(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(IsBundle(cut), size == first || size == bytes_.size()) << size;
  }
}

TEST_F(BundleTest, SendsThatMakeNoSenseAreNone) {
  Add(1, "one");
  std::vector<uint8_t> empty = bytes_;
  empty[0] = 0;
  EXPECT_FALSE(IsBundle(empty));
  EXPECT_FALSE(IsBundle(std::vector<uint8_t>(BundledBytes(0, false)))) << "one without data and nothing behind it";
  for (int bit = 1; bit < 8; ++bit) {
    std::vector<uint8_t> flags = bytes_;
    flags[2] = static_cast<uint8_t>(1 << bit);
    EXPECT_FALSE(IsBundle(flags)) << bit;
  }
  std::vector<uint8_t> reserved = bytes_;
  reserved[3] = 0xff;
  EXPECT_TRUE(IsBundle(reserved)) << "is for later versions";
}

}  // namespace
}  // namespace paceline::wire
