#include "transport/base/sequence.h"

#include <gtest/gtest.h>

#include "transport/base/random.h"

namespace paceline {
namespace {

TEST(SequenceTest, UnwrapsToTheNearest) {
  EXPECT_EQ(Unwrap<32>(5, 0), 5u);
  EXPECT_EQ(Unwrap<32>(0xffffffff, 0x100000000), 0xffffffffu);
  EXPECT_EQ(Unwrap<32>(1, 0xffffffff), 0x100000001u);
  EXPECT_EQ(Unwrap<12>(0, 4095), 4096u);
  EXPECT_EQ(Unwrap<12>(4095, 4096), 4095u);
}

TEST(SequenceTest, NeverBelowZero) {
  EXPECT_EQ(Unwrap<32>(0xfffffff0, 3), 0xfffffff0u);
  EXPECT_EQ(Unwrap<12>(4000, 0), 4000u);
}

template <int kBits>
void ExpectRoundTrips() {
  Random random(kBits);
  constexpr uint64_t kHalf = uint64_t{1} << (kBits - 1);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t truth = (uint64_t{1} << kBits) + random.Below(uint64_t{1} << (kBits + 8));
    const uint64_t near = truth - kHalf + 1 + random.Below(2 * kHalf - 1);
    ASSERT_EQ(Unwrap<kBits>(truth & ((uint64_t{1} << kBits) - 1), near), truth);
  }
}

TEST(SequenceTest, RoundTripsWithinHalfTheSpan) {
  ExpectRoundTrips<12>();
  ExpectRoundTrips<20>();
  ExpectRoundTrips<32>();
  ExpectRoundTrips<48>();
}

}  // namespace
}  // namespace paceline
