#include "transport/lane/udp/udp_peers.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

LaneAddress Address(const char* text) { return ParseLaneAddress(text).value(); }

SocketAddress Socket(const char* text) {
  SocketAddress address;
  ToSocketAddress(Address(text), address);
  return address;
}

TEST(UdpPeers, SameAddressSameNumberUntilTheLastClose) {
  UdpPeers peers(Socket("192.0.2.1:1"));
  const uint32_t first = peers.Open(Address("192.0.2.2:7"));
  EXPECT_EQ(peers.Open(Address("192.0.2.2:7")), first);
  const uint32_t other = peers.Open(Address("192.0.2.2:8"));
  EXPECT_NE(other, first);
  EXPECT_EQ(peers.open_count(), 2u);

  peers.Close(first);
  ASSERT_NE(peers.Find(first), nullptr);
  EXPECT_EQ(FormatLaneAddress(FromSocketAddress(*peers.Find(first), true)), "192.0.2.2:7");
  peers.Close(first);
  EXPECT_EQ(peers.Find(first), nullptr);
  EXPECT_EQ(peers.open_count(), 1u);
  peers.Close(first);  // once too often: nothing happens
  EXPECT_EQ(peers.Open(Address("192.0.2.3:7")), first) << "numbers are used again";
  EXPECT_NE(peers.Find(other), nullptr);
}

TEST(UdpPeers, WhatCannotBeReachedIsNowhere) {
  UdpPeers peers(Socket("192.0.2.1:1"));
  EXPECT_EQ(peers.Open(Address("[fd00::1]:1")), UdpPeers::kNowhere);
  EXPECT_EQ(peers.Open(LaneAddress()), UdpPeers::kNowhere);
  EXPECT_EQ(peers.Find(UdpPeers::kNowhere), nullptr);
  peers.Close(UdpPeers::kNowhere);
  EXPECT_EQ(peers.Find(12345), nullptr);
}

TEST(UdpPeers, LinkLocalPeersAreOnTheLanesOwnInterface) {
  UdpPeers peers(Socket("[fe80::1%3]:1"));
  const uint32_t plain = peers.Open(Address("[fe80::2]:5"));
  ASSERT_NE(peers.Find(plain), nullptr);
  EXPECT_EQ(peers.Find(plain)->v6.sin6_scope_id, 3u);
  EXPECT_EQ(peers.Open(Address("[fe80::2%9]:5")), plain) << "the peer's own scope means nothing here";
}

TEST(UdpPeers, ManyPeers) {
  UdpPeers peers(Socket("10.0.0.1:1"));
  std::vector<uint32_t> numbers;
  for (int i = 0; i < 10'000; ++i) {
    LaneAddress address = Address("10.1.0.0:4791");
    address.bytes[5] = static_cast<uint8_t>(i >> 8);
    address.bytes[6] = static_cast<uint8_t>(i);
    numbers.push_back(peers.Open(address));
  }
  EXPECT_EQ(peers.open_count(), 10'000u);
  EXPECT_EQ(FormatLaneAddress(FromSocketAddress(*peers.Find(numbers[0x1234]), true)), "10.1.18.52:4791");
  for (const uint32_t number : numbers) peers.Close(number);
  EXPECT_EQ(peers.open_count(), 0u);
}

}  // namespace
}  // namespace paceline
