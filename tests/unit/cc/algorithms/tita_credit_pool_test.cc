// Two receivers of `tita` that hand out the credit of one port, as two engines of a context do: together they have out
// what one would.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>

#include "cc/algorithms/tita_receiver.h"
#include "cc/credit_pool.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

constexpr uint32_t kFlows = 8;            // of each
constexpr uint64_t kPlenty = 1ull << 34;  // of demand

class TitaCreditPoolTest : public ::testing::Test {
 protected:
  struct Side {
    std::unique_ptr<TitaPort> shared;
    std::unique_ptr<TitaReceiver> receiver;
    std::array<uint64_t, kFlows> granted{}, arrived{};
    uint64_t delivered = 0;

    uint64_t charged() const { return receiver->charged_bytes(); }
  };
  void SetUp() override {
    for (uint32_t member : {0u, 1u}) Make(sides_[member], &pool_, member);
  }
  static void Make(Side& side, CreditPool* pool, uint32_t member) {
    PortInfo port = TestPort();
    port.credit_pool = pool;
    port.credit_pool_member = member;
    side.shared = std::make_unique<TitaPort>(port.link_rate.bytes_per_second());
    side.receiver = std::make_unique<TitaReceiver>(TitaParameters(), port, *side.shared);
    for (uint32_t flow = 0; flow < kFlows; ++flow) side.receiver->AddFlow(flow, {}, Time());
  }
  void Want(Side& side, uint64_t end, uint32_t flows = kFlows) {
    for (uint32_t flow = 0; flow < flows; ++flow) side.receiver->OnDemand(flow, end, Rate::Unlimited(), now_);
  }
  // What has been granted is sent at once: each segment comes a round trip later, one after the other.
  void Take(Side& side, Time now) {
    std::array<Grant, 16> grants;
    for (size_t count = grants.size(); count == grants.size();) {
      count = side.receiver->PollGrants(now, grants);
      for (size_t i = 0; i < count; ++i) {
        uint64_t& granted = side.granted[grants[i].flow];
        for (; granted < grants[i].credit_end; granted += 4096) {
          on_the_way_.push_back({now + TestPort().base_rtt, &side, grants[i].flow});
        }
      }
    }
  }
  void Run(Duration span) {
    for (const Time end = now_ + span; now_ < end;) {
      now_ = now_ + slot_;
      uint64_t out = 0;
      for (Side& side : sides_) {
        if (side.receiver == nullptr) continue;
        Take(side, now_);
        out += side.charged();
      }
      most_ = std::max(most_, out);
      if (on_the_way_.empty() || on_the_way_.front().at > now_) continue;
      Deliver(on_the_way_.front());
      on_the_way_.pop_front();
    }
  }
  struct Segment {
    Time at;
    Side* side = nullptr;
    uint32_t flow = 0;
  };
  static void Deliver(const Segment& segment) {
    Side& side = *segment.side;
    side.delivered += 4096;
    side.arrived[segment.flow] += 4096;
    if (side.receiver == nullptr) return;
    side.receiver->OnArrival(segment.flow,
                             {.now = segment.at, .bytes = 4096, .packets = 1, .tx_total = side.arrived[segment.flow]});
  }
  // Of the link, that a side gets from now on.
  double ShareOf(Side& side, Duration span) {
    const uint64_t before = side.delivered;
    Run(span);
    return static_cast<double>(side.delivered - before) / 4096 * slot_.seconds() / span.seconds();
  }
  // With the senders of both.
  uint64_t budget() const {
    const TitaSizes& sizes = sides_[0].receiver->sizes();
    return sizes.Budget(2 * kFlows * sizes.line_rate) + 2 * sizes.grain;  // what both give in one moment
  }

  const Duration slot_ = TestPort().link_rate.TimeFor(4096 + TestPort().overhead_bytes);
  CreditPool pool_;
  std::array<Side, 2> sides_;
  Time now_;
  uint64_t most_ = 0;  // that was out at a time
  std::deque<Segment> on_the_way_;
};

TEST_F(TitaCreditPoolTest, TogetherTheyHaveOutWhatOneWould) {
  Want(sides_[0], kPlenty);
  Want(sides_[1], kPlenty);
  Run(Duration::Millis(1));
  most_ = 0;
  const double share = ShareOf(sides_[0], Duration::Millis(5));
  EXPECT_LE(most_, budget());
  EXPECT_NEAR(share, 0.5, 0.05);
}

TEST_F(TitaCreditPoolTest, WhoComesLaterFindsRoomSoon) {
  Want(sides_[0], kPlenty);
  Run(Duration::Millis(1));
  EXPECT_GT(ShareOf(sides_[0], Duration::Millis(1)), 0.95);
  Want(sides_[1], kPlenty);
  most_ = 0;
  Run(Duration::Micros(100));
  EXPECT_LE(most_, budget() * 3 / 2) << "for a moment the newcomer's part more";
  most_ = 0;
  EXPECT_NEAR(ShareOf(sides_[1], Duration::Millis(2)), 0.5, 0.05);
  EXPECT_LE(most_, budget());
}

TEST_F(TitaCreditPoolTest, WhoIsDoneLeavesAllToTheOther) {
  Want(sides_[0], kPlenty);
  Want(sides_[1], 1 << 20);
  Run(Duration::Millis(10));
  EXPECT_EQ(sides_[1].delivered, uint64_t{kFlows} << 20);
  EXPECT_EQ(sides_[1].charged(), 0u);
  EXPECT_EQ(pool_.OthersOf(0).active, 0u);
  EXPECT_GT(ShareOf(sides_[0], Duration::Millis(1)), 0.95);
}

TEST_F(TitaCreditPoolTest, WhoIsGoneHoldsNothing) {
  Want(sides_[0], kPlenty);
  Want(sides_[1], kPlenty);
  Run(Duration::Millis(1));
  EXPECT_GT(pool_.OthersOf(0).bytes, 0u);
  EXPECT_EQ(pool_.OthersOf(0).active, 1u);
  sides_[1].receiver.reset();  // with credit out: its engine has ended
  EXPECT_EQ(pool_.OthersOf(0).bytes, 0u);
  EXPECT_EQ(pool_.OthersOf(0).active, 0u);
  Run(Duration::Micros(100));
  EXPECT_GT(ShareOf(sides_[0], Duration::Millis(1)), 0.95);
}

TEST_F(TitaCreditPoolTest, FlowsThatAreGoneHoldNothing) {
  Want(sides_[1], kPlenty);
  Run(Duration::Millis(1));
  EXPECT_GT(pool_.OthersOf(0).caps, 0.0);
  for (uint32_t flow = 0; flow < kFlows; ++flow) sides_[1].receiver->RemoveFlow(flow, now_);
  EXPECT_EQ(pool_.OthersOf(0).bytes, 0u);
  EXPECT_EQ(pool_.OthersOf(0).caps, 0.0);
}

TEST_F(TitaCreditPoolTest, AloneInAPoolItDoesAsWithoutOne) {
  Side free;
  Make(free, nullptr, 0);
  for (int i = 0; i < 3000; ++i) {
    now_ = Time() + slot_ * i;
    if (i % 100 == 0) {
      for (Side* side : {&free, &sides_[0]}) Want(*side, static_cast<uint64_t>(i) * 4096, 1 + i / 100 % kFlows);
    }
    Take(free, now_);
    Take(sides_[0], now_);
    ASSERT_EQ(free.granted, sides_[0].granted) << i;
    while (!on_the_way_.empty() && on_the_way_.front().at <= now_) {
      Deliver(on_the_way_.front());
      on_the_way_.pop_front();
    }
  }
  EXPECT_GT(free.delivered, 1u << 20);
}

}  // namespace
}  // namespace paceline
