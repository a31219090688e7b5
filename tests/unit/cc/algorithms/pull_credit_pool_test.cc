// Two receivers that pull for one port, as two engines of a context do: together they pull as fast as one would.
#include <array>
#include <memory>

#include "cc/algorithms/pull_receiver.h"
#include "cc/credit_pool.h"
#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

constexpr uint64_t kSegment = 4096;  // and the size of a pull; 332.8 ns on the wire
constexpr uint64_t kMuch = 1 << 30;

class PullCreditPoolTest : public ::testing::Test {
 protected:
  struct Side {
    std::unique_ptr<PullReceiver> receiver;
    uint64_t granted = 0;
    Rate stated;
  };
  void SetUp() override {
    for (uint32_t member : {0u, 1u}) Make(sides_[member], &pool_, member);
  }
  void Make(Side& side, CreditPool* pool, uint32_t member) const {
    PortInfo port = TestPort();
    port.credit_pool = pool;
    port.credit_pool_member = member;
    const PullRules rules = {.window = 10000};  // BDP: no bound in these tests
    side.receiver = std::make_unique<PullReceiver>(rules, port, 1);
    side.receiver->AddFlow(0, {}, now_);
  }
  // Its pulls begin two round trips later.
  void Want(Side& side, uint64_t end) const { side.receiver->OnDemand(0, end, Rate::Unlimited(), now_); }
  void Take(Side& side) const {
    std::array<Grant, 16> grants;
    const size_t count = side.receiver->PollGrants(now_, grants);
    for (size_t i = 0; i < count; ++i) {
      side.granted = grants[i].credit_end;
      side.stated = grants[i].rate;
    }
  }
  // Each looks after every 100 ns, the first one first.
  void Run(Duration span) {
    for (const Time end = now_ + span; now_ < end;) {
      now_ = now_ + Duration::Nanos(100);
      for (Side& side : sides_) {
        if (side.receiver != nullptr) Take(side);
      }
    }
  }
  // Of the link, that a side's pulls ask for from now on.
  double ShareOf(Side& side, Duration span) {
    const uint64_t before = side.granted;
    Run(span);
    return static_cast<double>(side.granted - before) / kSegment * slot_.seconds() / span.seconds();
  }

  const Duration slot_ = TestPort().link_rate.TimeFor(kSegment + TestPort().overhead_bytes);
  CreditPool pool_;
  std::array<Side, 2> sides_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_F(PullCreditPoolTest, EachPullsAtAnEqualPartOfTheRate) {
  Want(sides_[0], kMuch);
  Want(sides_[1], kMuch);
  Run(Duration::Micros(50));
  const uint64_t before = sides_[1].granted;
  EXPECT_NEAR(ShareOf(sides_[0], Duration::Millis(1)), 0.5, 0.01);
  EXPECT_NEAR(static_cast<double>(sides_[1].granted - before) / kSegment * slot_.seconds() / 1e-3, 0.5, 0.01);
  EXPECT_NEAR(sides_[0].stated.gbps(), 50, 0.001) << "senders pace by it";
}

TEST_F(PullCreditPoolTest, WhoHasNobodyToPullLeavesAllToTheOther) {
  Want(sides_[0], kMuch);
  Want(sides_[1], 1 << 20);
  Run(Duration::Micros(50));
  EXPECT_EQ(pool_.OthersOf(0).active, 1u);
  Run(Duration::Millis(1));
  EXPECT_EQ(sides_[1].granted, 1u << 20);
  EXPECT_EQ(pool_.OthersOf(0).active, 0u);
  EXPECT_NEAR(ShareOf(sides_[0], Duration::Millis(1)), 1, 0.01);
  EXPECT_NEAR(sides_[0].stated.gbps(), 100, 0.001);
}

TEST_F(PullCreditPoolTest, WhoIsGoneLeavesAllToTheOther) {
  for (const bool whole : {false, true}) {
    Want(sides_[0], kMuch);
    Want(sides_[1], kMuch);
    Run(Duration::Micros(50));
    EXPECT_EQ(pool_.OthersOf(0).active, 1u) << whole;
    if (whole) {
      sides_[1].receiver.reset();  // its engine has ended
    } else {
      sides_[1].receiver->RemoveFlow(0, now_);
    }
    EXPECT_EQ(pool_.OthersOf(0).active, 0u) << whole;
    EXPECT_NEAR(ShareOf(sides_[0], Duration::Millis(1)), 1, 0.01) << whole;
    if (!whole) sides_[1].receiver->AddFlow(0, {}, now_);
  }
}

TEST_F(PullCreditPoolTest, AloneInAPoolItDoesAsWithoutOne) {
  Side free;
  Make(free, nullptr, 0);
  for (int i = 0; i < 2000; ++i) {
    now_ = now_ + Duration::Nanos(700);
    if (i % 100 == 0) {
      for (Side* side : {&free, &sides_[0]}) Want(*side, static_cast<uint64_t>(i) * kSegment);
    }
    for (Side* side : {&free, &sides_[0]}) Take(*side);
    ASSERT_EQ(free.granted, sides_[0].granted) << i;
  }
  EXPECT_GT(free.granted, 1u << 20);
}

}  // namespace
}  // namespace paceline
