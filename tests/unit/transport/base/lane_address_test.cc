#include "transport/base/lane_address.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace paceline {
namespace {

LaneAddress Address(std::initializer_list<uint8_t> bytes) {
  LaneAddress address;
  for (const uint8_t byte : bytes) address.bytes[address.size++] = byte;
  return address;
}

LaneAddress Ipv6(uint8_t port, uint8_t last, uint8_t scope) {
  return Address({6, 0, port, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, scope});
}

TEST(LaneAddressTest, SameUdpHostIgnoresPortAndScope) {
  EXPECT_TRUE(SameUdpHost(Address({4, 1, 2, 10, 0, 0, 1}), Address({4, 9, 9, 10, 0, 0, 1})));
  EXPECT_FALSE(SameUdpHost(Address({4, 1, 2, 10, 0, 0, 1}), Address({4, 1, 2, 10, 0, 0, 2})));
  EXPECT_TRUE(SameUdpHost(Ipv6(1, 7, 0), Ipv6(2, 7, 3)));
  EXPECT_FALSE(SameUdpHost(Ipv6(1, 7, 0), Ipv6(1, 8, 0)));
}

TEST(LaneAddressTest, SameUdpHostRefusesOtherKindsOfAddress) {
  EXPECT_FALSE(SameUdpHost(LaneAddress(), LaneAddress()));
  EXPECT_FALSE(SameUdpHost(Address({4, 1}), Address({4, 1})));
  EXPECT_FALSE(SameUdpHost(Address({4, 1, 2, 10, 0, 0, 1}), Ipv6(1, 1, 0)));
  EXPECT_FALSE(SameUdpHost(Address({4, 1, 2, 10, 0, 0, 1}), Address({6, 1, 2, 10, 0, 0, 1})));
}

}  // namespace
}  // namespace paceline
