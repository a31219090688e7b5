// Packets for a lane that holds each back until it is due (LaneCapabilities::send_ahead): that they are handed over
// ahead of time, say when they are to leave, and leave as the pacer would have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/support/endpoint_pair.h"
#include "transport/core/endpoint.h"

namespace paceline {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

constexpr uint32_t kSegment = 4096;
constexpr Duration kAhead = Duration::Micros(10);

// The second endpoint sends to the first at 10 Gb/s.
class SendAheadTest : public testing::Test {
 protected:
  void Start(Duration send_ahead, const char* algorithm = "none") {
    LaneCapabilities can = support::PairCapabilities(kSegment + limits::kMaxDataHeaderBytes, 16);
    can.link_rate = Rate::Gbps(10);
    can.send_ahead = send_ahead;
    pair_ = std::make_unique<support::EndpointPair>(algorithm, can, true);
    const auto [a, b] = pair_->Connect();
    connection_ = b;
    for (std::vector<uint8_t>* in : {&large_in_, &small_in_}) {
      ASSERT_EQ(pair_->a().PostReceive(a, {.buffer = {in->data(), in->size()}}, pair_->now()), PostResult::kOk);
    }
    for (int i = 0; i < 10; ++i) pair_->Step();
  }
  void Send(std::vector<uint8_t>& buffer) {
    ASSERT_EQ(pair_->b().PostSend(connection_, {.buffer = {buffer.data(), buffer.size()}}, pair_->now()),
              PostResult::kOk);
  }
  // When the data packets that leave the sender's hands after that time are to leave.
  std::vector<Time> After(Duration time) {
    pair_->Step(time);
    std::vector<Time> times;
    for (const TxSegment& segment : pair_->last_of_b()) {
      if (segment.payload_bytes > 0) times.push_back(segment.leaves_at);
    }
    return times;
  }

  std::vector<uint8_t> large_ = std::vector<uint8_t>(1 << 20), large_in_ = large_;
  std::vector<uint8_t> small_ = std::vector<uint8_t>(64), small_in_ = small_;
  std::unique_ptr<support::EndpointPair> pair_;
  ConnectionId connection_ = kNoConnection;
};

int64_t AtOnce(const std::vector<Time>& times) { return std::count(times.begin(), times.end(), Time()); }

TEST_F(SendAheadTest, PacketsAreHandedOverAheadAndSayWhenTheyLeave) {
  Start(kAhead);
  Send(large_);
  const std::vector<Time> first = After(Duration::Micros(1));
  const Time now = pair_->now();
  ASSERT_GT(AtOnce(first), 0) << "the first is due";
  EXPECT_LE(AtOnce(first), 4) << "what 10 us of 10 Gb/s are";
  const std::vector<Time> ahead(first.begin() + AtOnce(first), first.end());
  ASSERT_GE(ahead.size(), 2u);
  const Duration gap = ahead[1] - ahead[0];
  EXPECT_GE(gap, Rate::Gbps(10).TimeFor(kSegment));
  EXPECT_LT(gap, Rate::Gbps(10).TimeFor(kSegment + 200));
  for (size_t i = 0; i < ahead.size(); ++i) EXPECT_EQ(ahead[i], ahead[0] + gap * static_cast<int64_t>(i));
  EXPECT_GT(ahead.front(), now);
  EXPECT_LE(ahead.back(), now + kAhead);
  EXPECT_GT(ahead.back() + gap, now + kAhead) << "as many as are due in that time";

  // More when half of the time ahead is over, and no sooner.
  const Time next = ahead.back() + gap;
  EXPECT_THAT(After(next - kAhead / 2 - Duration::Nanos(100) - now), IsEmpty());
  EXPECT_LE(pair_->b().PollTimeout(), next - kAhead / 2 + Duration::Nanos(10));
  const std::vector<Time> second = After(Duration::Nanos(110));
  ASSERT_FALSE(second.empty());
  EXPECT_LE(second[0], next + Duration::Nanos(10));
  EXPECT_GE(second[0], next - Duration::Nanos(10));
}

TEST_F(SendAheadTest, WhoPollsInTimeSendsAtTheRateInEvenSteps) {
  Start(kAhead);
  Send(large_);
  std::vector<Time> departures;
  for (int pass = 0; pass < 250; ++pass) {
    for (const Time at : After(Duration::Micros(2))) {
      if (at > Time()) departures.push_back(at);  // at once is what the beginning catches up
    }
  }
  ASSERT_GT(departures.size(), 100u);
  const Duration least = Rate::Gbps(10).TimeFor(kSegment), most = Rate::Gbps(10).TimeFor(kSegment + 200);
  for (size_t i = 1; i < departures.size(); ++i) {
    ASSERT_GE(departures[i] - departures[i - 1], least - Duration::Nanos(2)) << i;
    ASSERT_LE(departures[i] - departures[i - 1], most + Duration::Nanos(2)) << i;
  }
}

TEST_F(SendAheadTest, WhatIsLateLeavesAtOnce) {
  Start(kAhead);
  Send(large_);
  After(Duration::Micros(1));
  const std::vector<Time> late = After(Duration::Micros(100));
  EXPECT_GE(AtOnce(late), 3) << "10 us are caught up";
  EXPECT_LE(AtOnce(late), 4);
  EXPECT_GT(static_cast<int64_t>(late.size()), AtOnce(late));
  EXPECT_TRUE(std::is_sorted(late.begin(), late.end()));
}

TEST_F(SendAheadTest, ASingleDoesNotWaitForTheSchedule) {
  Start(kAhead, "tita");
  Send(large_);
  size_t ahead = 0;  // packets
  for (int pass = 0; pass < 20; ++pass) {
    const std::vector<Time> times = After(Duration::Micros(2));
    ahead += times.size() - static_cast<size_t>(AtOnce(times));
  }
  EXPECT_GT(ahead, 0u);
  Send(small_);
  pair_->Step(Duration::Nanos(100));
  const auto sent = pair_->last_of_b();
  const auto single =
      std::find_if(sent.begin(), sent.end(), [](const TxSegment& segment) { return segment.payload_bytes == 64; });
  ASSERT_NE(single, sent.end());
  EXPECT_EQ(single->leaves_at, Time());
}

TEST_F(SendAheadTest, OtherLanesSendAtOnce) {
  Start(Duration());
  Send(large_);
  EXPECT_EQ(After(Duration::Micros(1)).size(), 31u) << "two bursts less one";
  EXPECT_LE(After(Duration::Micros(1)).size(), 1u);
  const std::vector<Time> late = After(Duration::Micros(100));
  EXPECT_GT(late.size(), 20u);
  EXPECT_THAT(late, Each(Time()));
}

}  // namespace
}  // namespace paceline
