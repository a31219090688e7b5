#include "transport/wire/rate16.h"

#include <gtest/gtest.h>

namespace paceline::wire {
namespace {

TEST(Rate16Test, Ends) {
  EXPECT_EQ(EncodeRate(Rate()), 0u);
  EXPECT_TRUE(DecodeRate(0).is_zero());
  EXPECT_EQ(EncodeRate(Rate::Unlimited()), 0xffffu);
  EXPECT_TRUE(DecodeRate(0xffff).is_unlimited());
  EXPECT_EQ(EncodeRate(Rate::BitsPerSecond(1)), 1u);  // never rounded to "none stated"
  EXPECT_FALSE(DecodeRate(EncodeRate(Rate::Gbps(1e9))).is_unlimited());
}

TEST(Rate16Test, RoundsDownByLessThanAThousandth) {
  for (double gbps = 0.001; gbps < 200'000; gbps *= 1.0173) {
    const Rate rate = Rate::Gbps(gbps);
    const Rate decoded = DecodeRate(EncodeRate(rate));
    EXPECT_LE(decoded, rate);
    const double step = gbps * 1e6 < 64 * 2048 ? 64.0 / (gbps * 1e6) : 0.001;
    EXPECT_GE(decoded.gbps(), gbps * (1 - step)) << gbps;
  }
}

TEST(Rate16Test, MoreEncodesToMore) {
  for (uint32_t encoded = 1; encoded < 0xfffe; ++encoded) {
    // Mantissas without their top bit stand for values that smaller exponents also express.
    if ((encoded >> 11) > 0 && !(encoded & 0x400)) continue;
    const Rate rate = DecodeRate(static_cast<uint16_t>(encoded));
    ASSERT_EQ(EncodeRate(rate), encoded);
  }
}

}  // namespace
}  // namespace paceline::wire
