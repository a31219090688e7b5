// What a user may get wrong when making a lane, and that the message says what it may be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/transport/lane/udp/udp_lane_fixture.h"
#include "transport/lane/udp/udp_interfaces.h"
#include "transport/lane/udp/udp_lane.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status ErrorOf(const UdpLaneOptions& options) {
  const auto lane = CreateUdpLane(options);
  return lane.ok() ? absl::OkStatus() : lane.status();
}

absl::Status ErrorOf(const std::string& address) {
  UdpLaneOptions options;
  options.bind_address = address;
  return ErrorOf(options);
}

void ExpectError(const absl::Status& status, absl::StatusCode code, std::initializer_list<const char*> parts) {
  EXPECT_EQ(status.code(), code) << status;
  for (const char* part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

TEST(UdpLaneErrors, Addresses) {
  ExpectError(ErrorOf(""), absl::StatusCode::kInvalidArgument, {"is empty", "eth0:4791", "usable here: lo (127.0.0.1"});
  ExpectError(ErrorOf("nosuch0"), absl::StatusCode::kInvalidArgument,
              {"\"nosuch0\"", "neither an address nor an interface", "lo (127.0.0.1"});
  ExpectError(ErrorOf("0.0.0.0:0"), absl::StatusCode::kInvalidArgument, {"0.0.0.0:0", "one address", "usable here"});
  ExpectError(ErrorOf("[::]:0"), absl::StatusCode::kInvalidArgument, {"one address"});
  ExpectError(ErrorOf("203.0.113.77:0"), absl::StatusCode::kNotFound, {"203.0.113.77", "no interface", "usable here"});
  ExpectError(ErrorOf("127.0.0.1:99999"), absl::StatusCode::kInvalidArgument, {"127.0.0.1:99999"});
}

TEST(UdpLaneErrors, AnInterfaceWithoutAddress) {
  const auto interfaces = ListUdpInterfaces();
  ASSERT_TRUE(interfaces.ok()) << interfaces.status();
  for (const UdpInterface& interface : *interfaces) {
    if (!interface.addresses.empty()) continue;
    ExpectError(ErrorOf(interface.name), absl::StatusCode::kFailedPrecondition,
                {interface.name.c_str(), "has no IPv4 or IPv6 address", "usable here"});
    return;
  }
  GTEST_SKIP() << "every interface of this machine has an address";
}

TEST(UdpLaneErrors, PortInUse) {
  UdpLaneOptions options;
  options.bind_address = "127.0.0.1:0";
  const auto lane = MustCreate(options);
  ASSERT_NE(lane, nullptr);
  const std::string taken = FormatLaneAddress(lane->address());
  ExpectError(ErrorOf(taken), absl::StatusCode::kAlreadyExists, {taken.c_str(), "in use", "0 for any free one"});
}

TEST(UdpLaneErrors, NumbersOutOfRange) {
  UdpLaneOptions options;
  options.bind_address = "127.0.0.1:0";
  options.tx_sockets = 0;
  ExpectError(ErrorOf(options), absl::StatusCode::kInvalidArgument, {"tx_sockets 0", "1 to 1024"});
  options.tx_sockets = 1;
  options.mtu = 100;
  ExpectError(ErrorOf(options), absl::StatusCode::kInvalidArgument, {"mtu 100", "lo", "576 to 65536"});
  options.mtu = 70'000;
  ExpectError(ErrorOf(options), absl::StatusCode::kInvalidArgument, {"mtu 70000"});
}

TEST(UdpInterfaces, LoopbackIsListed) {
  const auto interfaces = ListUdpInterfaces();
  ASSERT_TRUE(interfaces.ok()) << interfaces.status();
  for (const UdpInterface& interface : *interfaces) {
    if (!interface.loopback) continue;
    EXPECT_EQ(interface.name, "lo");
    EXPECT_TRUE(interface.is_virtual);
    EXPECT_TRUE(interface.up);
    EXPECT_EQ(interface.mtu, 65536u);
    EXPECT_TRUE(interface.speed.is_zero());
    ASSERT_FALSE(interface.addresses.empty());
    EXPECT_EQ(interface.prefix_bits.size(), interface.addresses.size());
    EXPECT_EQ(FormatLaneAddress(FromSocketAddress(interface.addresses[0], false)), "127.0.0.1:0");
    return;
  }
  FAIL() << "no loopback interface listed";
}

TEST(UdpInterfaces, BindPoints) {
  const auto named = ResolveBindAddress("lo:4791");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(FormatLaneAddress(FromSocketAddress(named->address, false)), "127.0.0.1:4791");
  EXPECT_EQ(named->interface.name, "lo");
  const auto other = ResolveBindAddress("127.1.2.3:5");  // all of 127.0.0.0/8 is this machine
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->interface.name, "lo");
}

}  // namespace
}  // namespace paceline
