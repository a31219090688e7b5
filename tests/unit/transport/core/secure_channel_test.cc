// One channel alone: what opens, what does not, epochs, the window of what was seen.
#include "transport/core/secure_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "transport/base/random.h"
#include "transport/wire/packet.h"

namespace paceline {
namespace {

using Verdict = SecureChannel::Verdict;

struct Sealed {
  std::vector<uint8_t> header;
  std::vector<uint8_t> payload;
};

class SecureChannelTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr uint64_t kPacketsPerEpoch = 8;

  // A control packet with a payload behind it, so long that it has several cipher blocks.
  Sealed Seal(SecureChannel& channel, uint8_t fill = 5, size_t payload_bytes = 100) {
    std::array<uint8_t, 256> room{};
    const std::vector<uint8_t> payload(payload_bytes, fill);
    Sealed sealed;
    sealed.payload = payload;
    wire::FinishPacket(std::span(room).first(80), wire::PacketType::kData, 3, 77);
    const size_t bytes = channel.Seal(room, 80, payload, sealed.payload.data());
    EXPECT_EQ(bytes, 80 + SecureChannel::kTrailerBytes);
    sealed.header.assign(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(bytes));
    return sealed;
  }
  Verdict Open(SecureChannel& channel, const Sealed& sealed) {
    clear_.assign(sealed.payload.size(), 0);
    return channel.Open(sealed.header, sealed.payload, clear_.data());
  }

  const SecureChannel::Secrets there_{{1}, {2}}, back_{{2}, {1}};
  SecureChannel sender_{there_, GetParam(), kPacketsPerEpoch};
  SecureChannel receiver_{back_, GetParam(), kPacketsPerEpoch};
  std::vector<uint8_t> clear_;
};

TEST_P(SecureChannelTest, OpensWhatWasSealed) {
  for (size_t bytes : {0, 1, 15, 16, 17, 4096}) {
    const Sealed sealed = Seal(sender_, 9, bytes);
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(sealed.header, &bad_checksum);
    ASSERT_TRUE(common.has_value());
    EXPECT_EQ(common->header_bytes, sealed.header.size());
    EXPECT_EQ(common->flags, 3 | wire::kProtected);
    EXPECT_EQ(common->connection, 77u);
    ASSERT_EQ(Open(receiver_, sealed), Verdict::kGenuine);
    const std::vector<uint8_t> clear(bytes, 9);
    EXPECT_EQ(GetParam() ? clear_ : sealed.payload, clear);
    if (GetParam() && bytes > 8) {
      EXPECT_NE(sealed.payload, clear);
    }
  }
}

TEST_P(SecureChannelTest, EveryBitCounts) {
  const Sealed sealed = Seal(sender_);
  for (size_t bit = 0; bit < 8 * (sealed.header.size() + sealed.payload.size()); ++bit) {
    Sealed changed = sealed;
    const size_t byte = bit / 8;
    if (byte >= 8 && byte < 12) continue;  // the checksum: ParseCommon's affair
    uint8_t& at = byte < sealed.header.size() ? changed.header[byte] : changed.payload[byte - sealed.header.size()];
    at ^= static_cast<uint8_t>(1 << bit % 8);
    ASSERT_EQ(Open(receiver_, changed), Verdict::kForged) << "bit " << bit;
  }
  EXPECT_EQ(Open(receiver_, sealed), Verdict::kGenuine);
}

TEST_P(SecureChannelTest, LengthsCount) {
  const Sealed sealed = Seal(sender_);
  Sealed shorter = sealed, longer = sealed, headless = sealed, moved = sealed;
  shorter.payload.pop_back();
  longer.payload.push_back(0);
  headless.header.resize(SecureChannel::kTrailerBytes);
  moved.header.insert(moved.header.begin() + 80, moved.payload.front());  // a byte of payload called header
  moved.payload.erase(moved.payload.begin());
  for (const Sealed& changed : {shorter, longer, headless, moved}) {
    EXPECT_EQ(Open(receiver_, changed), Verdict::kForged);
  }
  EXPECT_EQ(Open(receiver_, {}), Verdict::kForged);
}

TEST_P(SecureChannelTest, ItsOwnPacketsAreNotThePeers) { EXPECT_EQ(Open(sender_, Seal(sender_)), Verdict::kForged); }

TEST_P(SecureChannelTest, NothingIsTakenTwice) {
  std::vector<Sealed> packets;
  for (int i = 0; i < 7; ++i) packets.push_back(Seal(sender_));
  for (size_t i : {3, 0, 6, 1}) EXPECT_EQ(Open(receiver_, packets[i]), Verdict::kGenuine) << i;
  for (size_t i : {3, 0, 6, 1}) EXPECT_EQ(Open(receiver_, packets[i]), Verdict::kReplayed) << i;
  for (size_t i : {5, 4, 2}) EXPECT_EQ(Open(receiver_, packets[i]), Verdict::kGenuine) << i;
}

TEST_P(SecureChannelTest, NothingIsTakenTwiceAcrossARelease) {
  const Sealed late = Seal(sender_), opened = Seal(sender_);
  EXPECT_EQ(Open(receiver_, opened), Verdict::kGenuine);
  sender_.Release();
  receiver_.Release();
  EXPECT_EQ(Open(receiver_, opened), Verdict::kReplayed);
  EXPECT_EQ(Open(receiver_, late), Verdict::kReplayed);
  EXPECT_EQ(Open(receiver_, Seal(sender_)), Verdict::kGenuine);
}

// What changes the window is authentic, so a forged counter moves nothing.
TEST_P(SecureChannelTest, AForgedCounterMovesNothing) {
  const Sealed first = Seal(sender_);
  Sealed far = Seal(sender_);
  const uint64_t counter = 7;
  std::memcpy(far.header.data() + 80, &counter, sizeof(counter));
  EXPECT_EQ(Open(receiver_, far), Verdict::kForged);
  const uint64_t farthest = ~uint64_t{0};
  std::memcpy(far.header.data() + 80, &farthest, sizeof(farthest));
  EXPECT_EQ(Open(receiver_, far), Verdict::kForged);
  EXPECT_EQ(Open(receiver_, first), Verdict::kGenuine);
}

TEST_P(SecureChannelTest, EpochsFollowEachOther) {
  std::vector<Sealed> packets;
  for (uint64_t i = 0; i < 10 * kPacketsPerEpoch; ++i) packets.push_back(Seal(sender_));
  // Half an epoch late or early: each is opened, across every change of keys.
  Random random(3);
  std::vector<size_t> order(packets.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (size_t i = 0; i + 4 <= order.size(); i += 4) {
    for (size_t k = 3; k > 0; --k) std::swap(order[i + k], order[i + random.Next() % (k + 1)]);
  }
  for (size_t i : order) EXPECT_EQ(Open(receiver_, packets[i]), Verdict::kGenuine) << i;
  // The epoch before the last is forgotten.
  SecureChannel late(back_, GetParam(), kPacketsPerEpoch);
  for (size_t i : {0, 8, 16}) EXPECT_EQ(Open(late, packets[i]), Verdict::kGenuine) << i;
  EXPECT_EQ(Open(late, packets[9]), Verdict::kGenuine);
  EXPECT_NE(Open(late, packets[1]), Verdict::kGenuine);
  // And nobody is two epochs ahead.
  EXPECT_EQ(Open(late, packets[4 * kPacketsPerEpoch]), Verdict::kForged);
}

TEST_P(SecureChannelTest, TheWindowMovesOn) {
  SecureChannel sender(there_, GetParam()), receiver(back_, GetParam());
  const Sealed oldest = Seal(sender, 1, 0);
  std::deque<Sealed> late;
  for (int i = 0; i < 100'000; ++i) {
    Sealed sealed = Seal(sender, 1, 0);
    if (i % 1000 == 0) {
      late.push_back(sealed);
      continue;
    }
    ASSERT_EQ(Open(receiver, sealed), Verdict::kGenuine) << i;
    if (i < 32'768 || i % 1000 != 768) continue;
    ASSERT_EQ(Open(receiver, late.front()), Verdict::kGenuine) << "as late as docs/protocol.md allows: " << i;
    late.pop_front();
  }
  EXPECT_EQ(Open(receiver, oldest), Verdict::kReplayed);  // too old to tell
  EXPECT_LT(receiver.memory_bytes(), 10'000u);
}

INSTANTIATE_TEST_SUITE_P(Modes, SecureChannelTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Encrypted" : "Authenticated"; });

}  // namespace
}  // namespace paceline
