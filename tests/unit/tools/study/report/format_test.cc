#include "tools/study/report/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace paceline::tools {
namespace {

TEST(Format, CountsAreWholeWhereTheyCanBe) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(16256), "16,256");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-1234), "-1,234");
  EXPECT_EQ(FormatCount(12.36), "12.4");
  EXPECT_EQ(FormatCount(1234.5), "1,234");
}

TEST(Format, NumbersKeepAboutFourDigits) {
  EXPECT_EQ(FormatNumber(0), "0");
  EXPECT_EQ(FormatNumber(0.337), "0.34");
  EXPECT_EQ(FormatNumber(12.345), "12.35");
  EXPECT_EQ(FormatNumber(123.44), "123.4");
  EXPECT_EQ(FormatNumber(2631.4), "2,631");
  EXPECT_EQ(FormatShort(3.0), "3");
  EXPECT_EQ(FormatShort(100.0), "100");
  EXPECT_EQ(FormatShort(2.90), "2.9");
  EXPECT_EQ(FormatRatio(1.0034), "1.003");
}

TEST(Format, WhatIsNotANumberIsADash) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(FormatCount(none), "\u2013");
  EXPECT_EQ(FormatNumber(std::numeric_limits<double>::infinity()), "\u2013");
  EXPECT_EQ(FormatMicros(none), "\u2013");
  EXPECT_EQ(FormatBytes(none), "\u2013");
}

TEST(Format, BytesTakeTheUnitThatFitsExactly) {
  EXPECT_EQ(FormatBytes(1), "1 byte");
  EXPECT_EQ(FormatBytes(1500), "1,500 bytes");
  EXPECT_EQ(FormatBytes(65536), "64 KiB");
  EXPECT_EQ(FormatBytes(64000), "64 KB");
  EXPECT_EQ(FormatBytes(1000000), "1 MB");
  EXPECT_EQ(FormatBytes(1048576), "1 MiB");
  EXPECT_EQ(FormatBytes(178880), "178.9 KB");
  EXPECT_EQ(FormatBytes(1e9), "1 GB");
}

TEST(Format, TimesTakeTheUnitThatFits) {
  EXPECT_EQ(FormatMicros(1), "1 \u00B5s");
  EXPECT_EQ(FormatMicros(14.03), "14.03 \u00B5s");
  EXPECT_EQ(FormatMicros(2631.4), "2,631 \u00B5s");
  EXPECT_EQ(FormatMicros(12400), "12.4 ms");
  EXPECT_EQ(FormatMicros(2.5e6), "2.5 s");
}

TEST(Format, PluralsFollowTheCount) {
  EXPECT_EQ(FormatPlural(1, "host", "hosts"), "1 host");
  EXPECT_EQ(FormatPlural(0, "host", "hosts"), "0 hosts");
}

TEST(Format, RoundsToSignificantDigits) {
  EXPECT_EQ(RoundSignificant(123456, 3), 123000);
  EXPECT_EQ(RoundSignificant(0.0123456, 3), 0.0123);
  EXPECT_EQ(RoundSignificant(0, 3), 0);
}

}  // namespace
}  // namespace paceline::tools
