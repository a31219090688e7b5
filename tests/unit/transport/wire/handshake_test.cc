#include "transport/wire/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "transport/base/random.h"
#include "transport/wire/packet.h"

namespace paceline::wire {
namespace {

Hello SomeHello(uint8_t ports = 2) {
  Hello hello;
  hello.segment_bytes = 4096;
  hello.features = kFeaturePayloadCrc;
  hello.algorithm = "tita";
  hello.ports = ports;
  hello.private_data = PrivateData::Of(std::vector<uint8_t>{9, 8, 7});
  for (uint8_t i = 0; i < ports; ++i) {
    hello.addresses[i].size = static_cast<uint8_t>(i + 1);
    for (uint8_t b = 0; b <= i; ++b) hello.addresses[i].bytes[b] = static_cast<uint8_t>(0x10 * i + b);
  }
  return hello;
}

void ExpectSame(const Hello& a, const Hello& b) {
  EXPECT_EQ(a.segment_bytes, b.segment_bytes);
  EXPECT_EQ(a.features, b.features);
  EXPECT_EQ(a.algorithm, b.algorithm);
  ASSERT_EQ(a.ports, b.ports);
  ASSERT_EQ(a.private_data.size, b.private_data.size);
  EXPECT_EQ(a.private_data.bytes, b.private_data.bytes);
  for (uint8_t i = 0; i < a.ports; ++i) EXPECT_TRUE(a.addresses[i] == b.addresses[i]);
}

Cookie SomeCookie() {
  Cookie cookie;
  for (size_t i = 0; i < cookie.size(); ++i) cookie[i] = static_cast<uint8_t>(i * 7);
  return cookie;
}

// Checks the common header of a whole packet and gives what stands behind it.
std::span<const uint8_t> BodyOf(std::span<const uint8_t> packet, PacketType type, uint32_t connection) {
  bool bad_checksum = false;
  const auto common = ParseCommon(packet, &bad_checksum);
  EXPECT_TRUE(common.has_value());
  if (!common) return {};
  EXPECT_EQ(common->type, type);
  EXPECT_EQ(common->connection, connection);
  EXPECT_EQ(common->header_bytes, packet.size());
  return packet.subspan(kCommonBytes);
}

class HandshakeTest : public testing::Test {
 protected:
  std::span<const uint8_t> Packet(size_t bytes) const { return std::span(buffer_).first(bytes); }
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(limits::kMaxControlBytes);
};

TEST_F(HandshakeTest, Init) {
  InitPacket init{
      .client_connection = 5, .client_nonce = 6, .listener_nonce = 7, .cookie = SomeCookie(), .hello = SomeHello()};
  const auto parsed = ParseInit(BodyOf(Packet(EncodeInit(init, buffer_)), PacketType::kInit, 0));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->client_connection, 5u);
  EXPECT_EQ(parsed->client_nonce, 6u);
  EXPECT_EQ(parsed->listener_nonce, 7u);
  EXPECT_EQ(parsed->cookie, SomeCookie());
  ExpectSame(parsed->hello, init.hello);
}

TEST_F(HandshakeTest, TheLargestHelloFits) {
  InitPacket init{.hello = SomeHello(limits::kMaxPorts)};
  init.hello.algorithm = std::string(32, 'x');
  init.hello.private_data = PrivateData::Of(std::vector<uint8_t>(PrivateData::kMaxBytes, 0xee));
  for (LaneAddress& address : init.hello.addresses) address.size = LaneAddress::kMaxBytes;
  const size_t bytes = EncodeInit(init, buffer_);
  ASSERT_GT(bytes, 0u);
  ASSERT_LT(bytes, limits::kMaxControlBytes);
  const auto parsed = ParseInit(BodyOf(Packet(bytes), PacketType::kInit, 0));
  ASSERT_TRUE(parsed);
  ExpectSame(parsed->hello, init.hello);
}

TEST_F(HandshakeTest, CookieAcceptRefuse) {
  const auto cookie = ParseCookie(BodyOf(Packet(EncodeCookie({8, SomeCookie()}, 9, buffer_)), PacketType::kCookie, 9));
  ASSERT_TRUE(cookie);
  EXPECT_EQ(cookie->client_nonce, 8u);
  EXPECT_EQ(cookie->cookie, SomeCookie());
  const auto accept =
      ParseAccept(BodyOf(Packet(EncodeAccept({10, 11, SomeHello()}, 12, buffer_)), PacketType::kAccept, 12));
  ASSERT_TRUE(accept);
  EXPECT_EQ(accept->client_nonce, 10u);
  EXPECT_EQ(accept->server_connection, 11u);
  ExpectSame(accept->hello, SomeHello());
  const auto refuse = ParseRefuse(BodyOf(Packet(EncodeRefuse({13, 6, 1}, 14, buffer_)), PacketType::kRefuse, 14));
  ASSERT_TRUE(refuse);
  EXPECT_EQ(refuse->client_nonce, 13u);
  EXPECT_EQ(refuse->reason, 6u);
  EXPECT_EQ(refuse->version, 1u);
}

// An answer to an unverified request must not be longer than the request: no amplification.
TEST_F(HandshakeTest, AnswersToStrangersAreNoLongerThanRequests) {
  InitPacket shortest{.hello = SomeHello(1)};
  shortest.hello.private_data = {};
  const size_t init = EncodeInit(shortest, buffer_);
  EXPECT_LE(EncodeCookie({}, 0, buffer_), init);
  EXPECT_LE(EncodeRefuse({}, 0, buffer_), init);
}

TEST_F(HandshakeTest, EveryTruncationAndEveryTailIsRefused) {
  const size_t bytes = EncodeInit({.hello = SomeHello()}, buffer_);
  const std::vector<uint8_t> body(buffer_.begin() + kCommonBytes, buffer_.begin() + static_cast<std::ptrdiff_t>(bytes));
  for (size_t cut = 0; cut < body.size(); ++cut) {
    const std::vector<uint8_t> part(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(cut));
    EXPECT_FALSE(ParseInit(part)) << cut;
    EXPECT_FALSE(ParseAccept(part) && ParseRefuse(part) && ParseCookie(part));
  }
  std::vector<uint8_t> longer = body;
  longer.push_back(0);
  EXPECT_FALSE(ParseInit(longer));
}

TEST_F(HandshakeTest, RefusesImpossibleLengths) {
  InitPacket init{.hello = SomeHello()};
  const size_t bytes = EncodeInit(init, buffer_);
  const std::vector<uint8_t> good(buffer_.begin() + kCommonBytes, buffer_.begin() + static_cast<std::ptrdiff_t>(bytes));
  const size_t ports_at = 40 + 8;
  ASSERT_EQ(good[ports_at], 2u);
  for (const uint8_t ports : {0, 1, 3, 9, 255}) {
    std::vector<uint8_t> bad = good;
    bad[ports_at] = ports;
    EXPECT_FALSE(ParseInit(bad)) << int{ports};
  }
  for (const uint8_t private_bytes : {2, 4, 129, 255}) {
    std::vector<uint8_t> bad = good;
    bad[ports_at + 2] = private_bytes;
    EXPECT_FALSE(ParseInit(bad)) << int{private_bytes};
  }
  const std::array<uint8_t, 3> private_data = {9, 8, 7};  // of SomeHello
  const auto at = std::search(good.begin() + ports_at, good.end(), private_data.begin(), private_data.end());
  ASSERT_NE(at, good.end());
  for (const size_t private_bytes : {PrivateData::kMaxBytes, PrivateData::kMaxBytes + 1}) {  // all of them there
    std::vector<uint8_t> longer = good;
    longer.insert(longer.begin() + (at - good.begin()), private_bytes - private_data.size(), 1);
    longer[ports_at + 2] = static_cast<uint8_t>(private_bytes);
    EXPECT_EQ(ParseInit(longer).has_value(), private_bytes == PrivateData::kMaxBytes) << private_bytes;
  }
  for (const uint8_t name_bytes : {33, 255}) {
    std::vector<uint8_t> bad = good;
    bad[ports_at + 1] = name_bytes;
    EXPECT_FALSE(ParseInit(bad)) << int{name_bytes};
  }
}

TEST_F(HandshakeTest, SurvivesRandomBytes) {
  Random random(3);
  const size_t bytes = EncodeInit({.hello = SomeHello(4)}, buffer_);
  for (int i = 0; i < 50'000; ++i) {
    std::vector<uint8_t> body(buffer_.begin() + kCommonBytes, buffer_.begin() + static_cast<std::ptrdiff_t>(bytes));
    body.resize(random.Below(body.size() + 1));
    for (uint64_t flips = random.Below(4); flips > 0 && !body.empty(); --flips) {
      body[random.Below(body.size())] = static_cast<uint8_t>(random.Next());
    }
    body.shrink_to_fit();
    const auto parsed = ParseInit(body);
    ASSERT_TRUE(!parsed || parsed->hello.ports <= limits::kMaxPorts);
    ParseAccept(body);
    ParseCookie(body);
    ParseRefuse(body);
  }
}

}  // namespace
}  // namespace paceline::wire
