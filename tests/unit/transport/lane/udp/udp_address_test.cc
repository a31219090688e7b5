#include "transport/lane/udp/udp_address.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>

namespace paceline {
namespace {

using ::testing::HasSubstr;

TEST(UdpAddress, TextAndBack) {
  for (const char* text : {"192.0.2.1:4791", "127.0.0.1:0", "[fd00::2]:4791", "[::1]:65535", "[fe80::1%7]:1"}) {
    const auto address = ParseLaneAddress(text);
    ASSERT_TRUE(address.ok()) << text << ": " << address.status();
    EXPECT_EQ(FormatLaneAddress(*address), text);
  }
}

TEST(UdpAddress, BytesAreAsDocumented) {
  const auto v4 = ParseLaneAddress("192.0.2.1:4791");
  ASSERT_TRUE(v4.ok());
  EXPECT_THAT(v4->view(), ::testing::ElementsAre(4, 0x12, 0xb7, 192, 0, 2, 1));
  const auto v6 = ParseLaneAddress("[fd00::2%5]:4791");
  ASSERT_TRUE(v6.ok());
  EXPECT_THAT(v6->view(),
              ::testing::ElementsAre(6, 0x12, 0xb7, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 5));
}

TEST(UdpAddress, ScopeMayBeAnInterfaceName) {
  const auto named = ParseLaneAddress("[fe80::1%lo]:1");
  ASSERT_TRUE(named.ok()) << named.status();
  const auto numbered = ParseLaneAddress("[fe80::1%" + std::to_string(if_nametoindex("lo")) + "]:1");
  ASSERT_TRUE(numbered.ok());
  EXPECT_TRUE(*named == *numbered);
}

TEST(UdpAddress, MalformedTextIsRefusedWithAReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"192.0.2.1", "port is missing"},
      {"192.0.2.1:", "port is not a number"},
      {"192.0.2.1:x", "not a number"},
      {"192.0.2.1:65536", "[0, 65535]"},
      {"192.0.2:1", "not an IPv4"},
      {"host:1", "host names are not looked up"},
      {"fd00::2:1", "stands in brackets"},
      {"[fd00::g]:1", "not an IPv6"},
      {"[fe80::1%nosuch]:1", "names no interface"},
      {"", "port is missing"},
      {"[]:1", "not an IPv6"},
      {"[:1", "stands in brackets"},
  };
  for (const auto& [text, reason] : cases) {
    const auto address = ParseLaneAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr(text == std::string("[:1") ? "IPv4" : reason));
  }
}

TEST(UdpAddress, SocketAddressAndBack) {
  SocketAddress address;
  const auto parsed = ParseLaneAddress("[fe80::1%7]:9");
  ASSERT_TRUE(parsed.ok());
  ASSERT_TRUE(ToSocketAddress(*parsed, address));
  EXPECT_TRUE(IsLinkLocal(address));
  EXPECT_EQ(address.v6.sin6_scope_id, 7u);
  EXPECT_TRUE(FromSocketAddress(address, true) == *parsed);
  EXPECT_EQ(FormatLaneAddress(FromSocketAddress(address, false)), "[fe80::1]:9");
}

TEST(UdpAddress, ForeignBytesAreNotAnAddress) {
  SocketAddress out;
  LaneAddress address;
  EXPECT_FALSE(ToSocketAddress(address, out));
  address.size = 7;
  address.bytes[0] = 6;  // an IPv6 address is longer
  EXPECT_FALSE(ToSocketAddress(address, out));
  address.bytes[0] = 9;
  EXPECT_FALSE(ToSocketAddress(address, out));
  EXPECT_EQ(FormatLaneAddress(address), "invalid UDP address");
}

}  // namespace
}  // namespace paceline
