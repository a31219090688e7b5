#include "transport/wire/presence.h"

#include <gtest/gtest.h>

#include <array>

#include "transport/base/limits.h"

namespace paceline::wire {
namespace {

using Buffer = std::array<uint8_t, limits::kMaxControlBytes>;

TEST(PresenceTest, RoundTrip) {
  for (const bool tagged : {false, true}) {
    PresencePacket packet{.connection = 5, .token = 0x1122334455667788, .tagged = tagged};
    for (size_t i = 0; tagged && i < packet.tag.size(); ++i) packet.tag[i] = static_cast<uint8_t>(3 * i + 1);
    Buffer buffer{};
    const size_t size = EncodePresence(PacketType::kAsk, packet, 9, buffer);
    EXPECT_EQ(size, kCommonBytes + (tagged ? 32 : 16));
    const auto whole = std::span<const uint8_t>(buffer).first(size);
    bool bad_checksum = false;
    const auto common = ParseCommon(whole, &bad_checksum);
    ASSERT_TRUE(common.has_value());
    EXPECT_EQ(common->type, PacketType::kAsk);
    EXPECT_EQ(common->connection, 9u);
    const auto parsed = ParsePresence(BodyOf(whole));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->connection, 5u);
    EXPECT_EQ(parsed->token, 0x1122334455667788u);
    EXPECT_EQ(parsed->tagged, tagged);
    EXPECT_EQ(parsed->tag, packet.tag);
  }
}

TEST(PresenceTest, AnAnswerIsAsLongAsItsQuestion) {
  for (const bool tagged : {false, true}) {
    Buffer buffer{};
    EXPECT_EQ(EncodePresence(PacketType::kAsk, {.tagged = tagged}, 1, buffer),
              EncodePresence(PacketType::kGone, {.tagged = tagged}, 1, buffer));
  }
}

TEST(PresenceTest, OtherLengthsAreRefused) {
  const Buffer bytes{};
  for (size_t size = 0; size < 64; ++size) {
    EXPECT_EQ(ParsePresence(std::span(bytes).first(size)).has_value(), size == 16 || size == 32) << size;
  }
}

}  // namespace
}  // namespace paceline::wire
