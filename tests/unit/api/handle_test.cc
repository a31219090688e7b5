#include "api/cpp/src/handle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::api {
namespace {

using ::testing::HasSubstr;

ListenAddress Example() {
  ListenAddress address;
  address.nonce = 0x0123456789abcdef;
  address.ports = 4;
  for (uint8_t port = 0; port < 4; ++port) {
    address.addresses[port].size = static_cast<uint8_t>(7 + 5 * port);
    for (uint8_t i = 0; i < address.addresses[port].size; ++i) {
      address.addresses[port].bytes[i] = static_cast<uint8_t>(port * 32 + i);
    }
  }
  return address;
}

TEST(Handle, IsAtMost128Bytes) { EXPECT_LE(sizeof(Handle), 128u); }

TEST(Handle, ComesBackAsItWas) {
  const ListenAddress address = Example();
  const auto back = DecodeHandle(EncodeHandle(address));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->nonce, address.nonce);
  ASSERT_EQ(back->ports, address.ports);
  for (size_t port = 0; port < 4; ++port) EXPECT_EQ(back->addresses[port], address.addresses[port]);
}

TEST(Handle, AnyDamageIsRefused) {
  const Handle good = EncodeHandle(Example());
  for (size_t at = 0; at < Handle::kBytes; ++at) {
    Handle bad = good;
    bad.bytes[at] ^= 0x40;
    EXPECT_FALSE(DecodeHandle(bad).ok()) << at;
  }
  EXPECT_THAT(DecodeHandle(Handle()).status().message(), HasSubstr("not a Paceline handle"));
  Handle newer = good;
  newer.bytes[4] = 9;
  EXPECT_THAT(DecodeHandle(newer).status().message(), HasSubstr("version 9"));
}

}  // namespace
}  // namespace paceline::api
