#include "transport/lane/impair/impair_lane.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "tests/unit/transport/engine/memory_lane.h"

namespace paceline {
namespace {

class ImpairLaneTest : public ::testing::Test {
 protected:
  void Make(const std::string& text) {
    auto inner = std::make_unique<MemoryLane>(1);
    MemoryLane::Join(sender_, *inner);
    lane_ = *ImpairLane::Create(std::move(inner), *ParseImpairment(text));
  }

  void Send(uint32_t number) {
    uint8_t bytes[64] = {};
    std::memcpy(bytes, &number, sizeof(number));
    TxSegment segment;
    segment.header = bytes;
    segment.header_bytes = sizeof(bytes);
    ASSERT_EQ(sender_.Send({&segment, 1}), 1u);
  }

  // Numbers of the packets that come now; -1 for one whose bytes are not those of its number.
  std::vector<int64_t> Receive() {
    std::vector<int64_t> numbers;
    std::array<RxSegment, 8> out;
    while (const size_t count = lane_->Receive(out, now_)) {
      for (size_t i = 0; i < count; ++i) {
        uint32_t number;
        std::memcpy(&number, out[i].data, sizeof(number));
        bool intact = out[i].data_bytes == 64 && number < kPackets;
        for (size_t at = 4; at < 64; ++at) intact &= out[i].data[at] == 0;
        numbers.push_back(intact ? number : -1);
        EXPECT_EQ(*out[i].source, sender_.address());
      }
    }
    return numbers;
  }

  static constexpr uint32_t kPackets = 20000;
  Time now_ = Time::FromNanos(1'000'000);
  MemoryLane sender_{0};
  std::unique_ptr<ImpairLane> lane_;
};

TEST_F(ImpairLaneTest, LosesAboutAsManyAsToldAndCountsThem) {
  Make("loss=10%,seed=3");
  for (uint32_t i = 0; i < kPackets; ++i) Send(i);
  const size_t arrived = Receive().size();
  EXPECT_EQ(arrived + lane_->impair_counters().lost_packets, kPackets);
  EXPECT_EQ(lane_->impair_counters().lost_bytes, lane_->impair_counters().lost_packets * 64);
  EXPECT_NEAR(static_cast<double>(lane_->impair_counters().lost_packets), 2000, 200);
}

TEST_F(ImpairLaneTest, DoublesPackets) {
  Make("dup=5%,seed=3");
  for (uint32_t i = 0; i < kPackets; ++i) Send(i);
  std::map<int64_t, int> seen;
  for (const int64_t number : Receive()) ++seen[number];
  EXPECT_EQ(seen.size(), kPackets);
  uint64_t twice = 0;
  for (const auto& [number, count] : seen) twice += count == 2;
  EXPECT_EQ(twice, lane_->impair_counters().duplicated_packets);
  EXPECT_NEAR(static_cast<double>(twice), 1000, 150);
}

TEST_F(ImpairLaneTest, FlipsOneBit) {
  Make("corrupt=100%");
  Send(0);
  std::array<RxSegment, 1> out;
  ASSERT_EQ(lane_->Receive(out, now_), 1u);
  int bits = 0;
  for (size_t at = 0; at < 64; ++at) bits += __builtin_popcount(out[0].data[at]);
  EXPECT_EQ(bits, 1);
}

TEST_F(ImpairLaneTest, DelaysAndKeepsTheOrder) {
  Make("delay=100us");
  for (uint32_t i = 0; i < 100; ++i) Send(i);
  EXPECT_TRUE(Receive().empty());
  now_ = now_ + Duration::Micros(99);
  EXPECT_TRUE(Receive().empty());
  now_ = now_ + Duration::Micros(1);
  const std::vector<int64_t> numbers = Receive();
  ASSERT_EQ(numbers.size(), 100u);
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<int64_t>(i));
}

TEST_F(ImpairLaneTest, ReordersAndSaysSo) {
  Make("reorder=50%,reorder_delay=10us,seed=5");
  EXPECT_FALSE(lane_->capabilities().keeps_path_order);
  for (uint32_t i = 0; i < 100; ++i) Send(i);
  std::vector<int64_t> numbers = Receive();
  const size_t first = numbers.size();
  EXPECT_LT(first, 100u);
  now_ = now_ + Duration::Micros(10);
  for (const int64_t number : Receive()) numbers.push_back(number);
  EXPECT_EQ(numbers.size(), 100u);
  EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_F(ImpairLaneTest, SameSeedSameFate) {
  std::vector<int64_t> fates[2];
  for (auto& fate : fates) {
    Make("loss=30%,dup=10%,seed=11");
    for (uint32_t i = 0; i < 1000; ++i) Send(i);
    fate = Receive();
  }
  EXPECT_EQ(fates[0], fates[1]);
}

}  // namespace
}  // namespace paceline
