#include "transport/lane/ethernet/burst_headers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace paceline {
namespace {

using Headers = std::array<uint8_t, kFrameHeaderBytesV6>;

constexpr BurstHeaders::Key kKey{
    .peer = 3, .bytes = 1400, .entropy = 5, .ecn_capable = true, .destination = {{2, 0, 0, 0, 0, 1}}};

Headers Numbered() {
  Headers headers;
  for (size_t i = 0; i < headers.size(); ++i) headers[i] = static_cast<uint8_t>(i + 1);
  return headers;
}

TEST(BurstHeadersTest, TheSameKeyGetsTheSameHeaders) {
  BurstHeaders kept;
  Headers out{};
  EXPECT_FALSE(kept.Copy({}, out.data()));  // nothing was kept yet
  kept.Keep(kKey, IpVersion::kV4, Numbered().data());
  ASSERT_TRUE(kept.Copy(kKey, out.data()));
  const Headers all = Numbered();
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + kFrameHeaderBytesV4, all.begin()));
  EXPECT_EQ(out[kFrameHeaderBytesV4], 0) << "more than the headers was written";
}

TEST(BurstHeadersTest, AnyDifferenceMattersAndLeavesTheFrameAlone) {
  std::vector<BurstHeaders::Key> others(5, kKey);
  others[0].peer = 4;
  others[1].bytes = 1399;
  others[2].entropy = 6;
  others[3].ecn_capable = false;
  others[4].destination.bytes[5] = 2;
  BurstHeaders kept;
  kept.Keep(kKey, IpVersion::kV4, Numbered().data());
  for (const BurstHeaders::Key& other : others) {
    Headers out{};
    EXPECT_FALSE(kept.Copy(other, out.data()));
    EXPECT_EQ(out, Headers{});
  }
}

TEST(BurstHeadersTest, NothingIsKeptBeyondABurstOrOverIpv6) {
  BurstHeaders kept;
  Headers out{};
  kept.Keep(kKey, IpVersion::kV4, Numbered().data());
  kept.Forget();
  EXPECT_FALSE(kept.Copy(kKey, out.data()));
  kept.Keep(kKey, IpVersion::kV4, Numbered().data());
  kept.Keep(kKey, IpVersion::kV6, Numbered().data());
  EXPECT_FALSE(kept.Copy(kKey, out.data()));
}

}  // namespace
}  // namespace paceline
