// Payloads that the kernel copies to where they are thought to belong.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/unit/transport/lane/udp/udp_lane_fixture.h"

namespace paceline {
namespace {

constexpr uint32_t kHeader = 72;
constexpr uint32_t kPayload = 8192;
constexpr size_t kRoom = 6;  // packets

class UdpGuessTest : public testing::Test {
 protected:
  UdpGuessTest() : memory_(kPayload * (kRoom + 1), kUntouched) {
    UdpLaneOptions options;
    options.bind_address = "127.0.0.1:0";
    from_ = MustCreate(options);
    to_ = MustCreate(options);
    peer_ = from_->OpenPeer(to_->address());
  }
  PlacementGuess Guess(uint32_t packets) const {
    return {.to = const_cast<uint8_t*>(memory_.data()),
            .packets = packets,
            .header_bytes = kHeader,
            .payload_bytes = kPayload};
  }
  // Sends packets of these sizes, each byte its own; together where sizes allow it.
  void Send(const std::vector<uint32_t>& sizes) {
    sent_.clear();
    std::vector<TxSegment> segments;
    for (const uint32_t size : sizes) {
      std::vector<uint8_t> bytes(size);
      std::iota(bytes.begin(), bytes.end(), static_cast<uint8_t>(17 * sent_.size() + 1));
      sent_.push_back(std::move(bytes));
    }
    for (const std::vector<uint8_t>& bytes : sent_) {
      TxSegment segment;
      segment.peer = peer_;
      segment.header = bytes.data();
      segment.header_bytes = static_cast<uint16_t>(std::min<size_t>(bytes.size(), kHeader));
      segment.payload = bytes.data() + segment.header_bytes;
      segment.payload_bytes = static_cast<uint32_t>(bytes.size() - segment.header_bytes);
      segments.push_back(segment);
    }
    ASSERT_EQ(from_->Send(segments), segments.size());
  }
  // Receives all that was sent, in one call. Its bytes must be those that were sent.
  void ReceiveInto(const PlacementGuess& guess, size_t room = 64) {
    out_.assign(room, RxSegment());
    to_->GuessPlacement(guess);
    size_t count = 0;
    while ((count = to_->Receive(out_, MonotonicNow())) == 0) to_->GuessPlacement(guess);
    out_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      std::vector<uint8_t> bytes(out_[i].data, out_[i].data + out_[i].data_bytes);
      if (out_[i].payload != nullptr) {
        bytes.insert(bytes.end(), out_[i].payload, out_[i].payload + out_[i].payload_bytes);
      }
      EXPECT_EQ(bytes, sent_[i]) << i;
    }
  }
  size_t Guessed() const {
    return static_cast<size_t>(std::count_if(out_.begin(), out_.end(), [](const RxSegment& s) { return s.guessed; }));
  }
  bool UntouchedFrom(size_t packets) const {
    return std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(packets * kPayload), memory_.end(),
                       [](uint8_t byte) { return byte == kUntouched; });
  }

  static constexpr uint8_t kUntouched = 0xee;
  std::vector<uint8_t> memory_;
  std::unique_ptr<Lane> from_, to_;
  uint32_t peer_ = 0;
  std::vector<std::vector<uint8_t>> sent_;
  std::vector<RxSegment> out_;
};

TEST_F(UdpGuessTest, PayloadsOfThatSizeLieWhereTheyWereToGo) {
  Send({kHeader + kPayload, kHeader + kPayload, kHeader + kPayload});
  ReceiveInto(Guess(kRoom));
  ASSERT_EQ(out_.size(), 3u);
  EXPECT_EQ(Guessed(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(out_[i].payload, memory_.data() + i * kPayload);
    EXPECT_EQ(out_[i].data_bytes, kHeader);
    EXPECT_NE(out_[i].source, nullptr);
  }
  EXPECT_TRUE(UntouchedFrom(3));
}

TEST_F(UdpGuessTest, TheLastOneMayBeShorter) {
  for (const uint32_t last : {kHeader + kPayload - 1, kHeader + 1, kHeader, kHeader - 1, 1u}) {
    Send({kHeader + kPayload, kHeader + kPayload, last});
    ReceiveInto(Guess(kRoom));
    ASSERT_EQ(out_.size(), 3u);
    EXPECT_EQ(Guessed(), last > kHeader ? 3u : 2u) << last;
  }
}

TEST_F(UdpGuessTest, WhatIsMoreThanThoughtGoesElsewhere) {
  Send({kHeader + kPayload, kHeader + kPayload, kHeader + kPayload, kHeader + kPayload, 300});
  ReceiveInto(Guess(2));
  ASSERT_EQ(out_.size(), 5u);
  EXPECT_EQ(Guessed(), 2u);
  EXPECT_TRUE(UntouchedFrom(2));
}

TEST_F(UdpGuessTest, PacketsOfOtherSizesAreWhole) {
  const std::vector<std::vector<uint32_t>> cases = {
      {kHeader + kPayload + 1},    {kHeader + kPayload + 1, kHeader + kPayload + 1, 500},
      {5000, 5000, 5000, 900},     {100, 100, 100, 100, 100, 100, 100, 30},
      {kHeader, kHeader, kHeader}, {16000, 16000, 16000, 15000}};
  for (const std::vector<uint32_t>& sizes : cases) {
    Send(sizes);
    ReceiveInto(Guess(kRoom));
    EXPECT_EQ(out_.size(), sizes.size());
    EXPECT_EQ(Guessed(), 0u) << sizes.front();
    EXPECT_TRUE(UntouchedFrom(kRoom));
  }
}

TEST_F(UdpGuessTest, OneAloneMayBeAsShortAsItIs) {
  Send({200});
  ReceiveInto(Guess(kRoom));
  EXPECT_EQ(Guessed(), 1u);
  Send({20});
  ReceiveInto(Guess(kRoom));
  EXPECT_EQ(Guessed(), 0u);
}

TEST_F(UdpGuessTest, AGuessHoldsForOneCall) {
  to_->GuessPlacement(Guess(kRoom));
  out_.resize(64);
  EXPECT_EQ(to_->Receive(out_, MonotonicNow()), 0u);
  Send({kHeader + kPayload, kHeader + kPayload});
  size_t count = 0;
  while (count == 0) count = to_->Receive(out_, MonotonicNow());
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(Guessed(), 0u);
  EXPECT_TRUE(UntouchedFrom(0));
}

// The rest would be handed out in a later call, when the room belongs to its owner again.
TEST_F(UdpGuessTest, NothingIsPutWhereACallCouldNotHandItOut) {
  Send({kHeader + kPayload, kHeader + kPayload});
  ReceiveInto(Guess(kRoom), 2);
  EXPECT_EQ(Guessed(), 0u);
  EXPECT_TRUE(UntouchedFrom(0));
}

TEST_F(UdpGuessTest, SmallPayloadsAreNotWorthIt) {
  EXPECT_GT(to_->capabilities().least_guessed_bytes, 1400u);
  Send({kHeader + 1000, kHeader + 1000});
  PlacementGuess guess = Guess(kRoom);
  guess.payload_bytes = 1000;
  ReceiveInto(guess);
  EXPECT_EQ(Guessed(), 0u);
  EXPECT_TRUE(UntouchedFrom(0));
}

TEST_F(UdpGuessTest, OnlyTheFirstRunOfACallIsGuessed) {
  Send({kHeader + kPayload, kHeader + kPayload});
  ReceiveInto(Guess(kRoom));  // so that the next call asks for two
  Send({kHeader + kPayload, 400, kHeader + kPayload, 400});
  out_.assign(64, RxSegment());
  to_->GuessPlacement(Guess(kRoom));
  EXPECT_EQ(to_->Receive(out_, MonotonicNow()), 4u);
  EXPECT_EQ(Guessed(), 2u);
}

}  // namespace
}  // namespace paceline
