// The round trip of a path that no lane states: measured by both halves, told to their controllers, and followed when
// the path changes.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/core_fixture.h"
#include "tests/support/observed_congestion_control.h"
#include "tests/support/test_congestion_control.h"

namespace paceline::support {
namespace {

constexpr Duration kLatency = Duration::Micros(5);  // of the network, one way

class BaseRttTest : public CoreFixture {
 protected:
  void SetUp() override {}
  // `stated`: by the lane; zero: by nobody.
  void Begin(Duration stated, TestControl control, Duration option = Duration()) {
    WorldOptions options;
    options.network.latency = kLatency;
    options.packet_capabilities.base_rtt = stated;
    options.endpoint.base_rtt = option;
    options.new_congestion_control = [this, control](uint32_t host) {
      seen_[host] = std::make_shared<ControlObservation>();
      return Observe(NewTestCongestionControl(control, 256 * 1024), seen_[host]);
    };
    Start(options);
    network().SetHook([this](NetworkPacket&, Fate& fate) { fate.extra_delay = delay_; });
  }
  // Keeps data under way from host 0 to host 1 until `done`, at most for `limit`; returns how long.
  Duration Load(Duration limit, const std::function<bool()>& done) {
    const Time start = now();
    while (now() - start < limit && !done()) Exchange(0, 100'000);
    return now() - start;
  }
  Duration Round() const { return (delay_ + kLatency) * 2; }
  static bool IsNear(const std::vector<Duration>& told, Duration round) {
    return !told.empty() && told.back() >= round && told.back() <= round + round / 4 + Duration::Micros(30);
  }

  std::shared_ptr<ControlObservation> seen_[2];
  Duration delay_;
};

TEST_F(BaseRttTest, BothHalvesAreToldWhatIsMeasured) {
  delay_ = Duration::Micros(200);
  Begin(Duration(), TestControl::kCredit);
  Exchange(0, 500'000);
  EXPECT_TRUE(IsNear(seen_[0]->sender_base_rtts, Round()));
  EXPECT_TRUE(IsNear(seen_[1]->receiver_base_rtts, Round()));
  EXPECT_GE(endpoint(0).counters().base_rtt_nanos, static_cast<uint64_t>(Round().nanos()));
  EXPECT_GE(endpoint(1).counters().base_rtt_nanos, static_cast<uint64_t>(Round().nanos()));
}

TEST_F(BaseRttTest, WhatIsStatedIsNotMeasured) {
  for (const bool by_user : {false, true}) {
    SCOPED_TRACE(by_user);
    delay_ = Duration::Micros(200);
    Begin(by_user ? Duration() : Duration::Micros(11), TestControl::kCredit,
          by_user ? Duration::Micros(300) : Duration());
    Exchange(0, 500'000);
    EXPECT_TRUE(seen_[0]->sender_base_rtts.empty());
    EXPECT_TRUE(seen_[1]->receiver_base_rtts.empty());
    TearDown();
  }
}

TEST_F(BaseRttTest, WithoutCreditNobodyAsks) {
  Begin(Duration(), TestControl::kWindow);
  Exchange(0, 500'000);
  EXPECT_EQ(endpoint(1).counters().base_rtt_nanos, 0u) << "it sends no data, so only pings could have told";
  EXPECT_TRUE(IsNear(seen_[0]->sender_base_rtts, Round()));
}

// 50 us each way, then 2 ms, and back.
TEST_F(BaseRttTest, AChangeIsFollowedWithinTwentyRoundTrips) {
  delay_ = Duration::Micros(45);
  Begin(Duration(), TestControl::kCredit);
  Load(Duration::Millis(20), [] { return false; });
  ASSERT_TRUE(IsNear(seen_[0]->sender_base_rtts, Round()));
  delay_ = Duration::Micros(1995);
  const auto followed = [this] {
    return IsNear(seen_[0]->sender_base_rtts, Round()) && IsNear(seen_[1]->receiver_base_rtts, Round());
  };
  EXPECT_LE(Load(Round() * 100, followed), Round() * 20);
  ASSERT_TRUE(followed());
  const Duration longer = Round();
  delay_ = Duration::Micros(45);
  EXPECT_LE(Load(longer * 100, followed), longer * 20);
  EXPECT_TRUE(followed());
}

// A pause of a host, or of the peer, is no path: the least stays.
TEST_F(BaseRttTest, APauseIsNoLongerPath) {
  delay_ = Duration::Micros(45);
  Begin(Duration(), TestControl::kCredit);
  Load(Duration::Millis(20), [] { return false; });
  const size_t told = seen_[0]->sender_base_rtts.size();
  for (int i = 0; i < 20; ++i) {
    host(1).Stall(Duration::Millis(5));
    Load(Duration::Millis(10), [] { return false; });
  }
  EXPECT_EQ(seen_[0]->sender_base_rtts.size(), told);
}

}  // namespace
}  // namespace paceline::support
