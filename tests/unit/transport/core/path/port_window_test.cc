// How much goes through a port that is slower than others.
#include "transport/core/path/port_window.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

constexpr uint32_t kSegment = 1000;
constexpr Duration kTarget = Duration::Micros(100), kHostDelay = Duration::Micros(50);

class PortWindowTest : public testing::Test {
 protected:
  PortWindowTest() { window_.SetTarget(kTarget); }
  // Round trips with so much in flight, each of which takes that long.
  void Send(int rounds, uint64_t bytes, Duration rtt) {
    for (int i = 0; i < rounds; ++i) {
      window_.OnSent(bytes, now_);
      for (int sample = 0; sample < 20; ++sample) window_.OnRtt(rtt, kHostDelay, kSegment, now_);
      now_ = now_ + rtt * 2;
      window_.OnRtt(rtt, kHostDelay, kSegment, now_);
    }
  }
  uint64_t allowed() { return window_.BytesAllowed(kSegment, now_); }

  PortWindow window_;
  Time now_ = Time::FromNanos(1'000'000'000);
};

TEST_F(PortWindowTest, UnlimitedUntilSlowerThanTheOthers) {
  EXPECT_EQ(allowed(), PortWindow::kUnlimited);
  Send(20, 64'000, kTarget * 3 + kHostDelay);
  EXPECT_EQ(allowed(), PortWindow::kUnlimited);
}

TEST_F(PortWindowTest, ShrinksInProportionToTheDelay) {
  Send(1, 64'000, kTarget * 7);
  EXPECT_LT(allowed(), 64'000u);
  Send(1, 64'000, kTarget * 7);
  EXPECT_EQ(allowed(), 16'000u) << "one and a half times the target, and half of the host delay";
}

TEST_F(PortWindowTest, UnlimitedWhileNoOtherPortIsUsable) {
  Send(2, 64'000, kTarget * 7);
  window_.SetTarget(PortWindow::kNoTarget);
  EXPECT_EQ(allowed(), PortWindow::kUnlimited);
}

TEST_F(PortWindowTest, GrowsWhileItIsUsedAndFast) {
  Send(2, 64'000, kTarget * 8);
  const uint64_t least = allowed();
  EXPECT_LT(least, 16'000u);
  Send(15, 500, kTarget / 2);
  EXPECT_EQ(allowed(), least) << "grew without being used";
  for (int i = 0; i < 10; ++i) Send(1, allowed(), kTarget / 2);
  EXPECT_GT(allowed(), least * 50);
}

TEST_F(PortWindowTest, UnlimitedAgainWhenItHoldsNothingBack) {
  Send(2, 64'000, kTarget * 8);
  Send(16, 500, kTarget / 2);
  EXPECT_EQ(allowed(), PortWindow::kUnlimited);
}

TEST_F(PortWindowTest, AClosedPortSendsASegmentNowAndThen) {
  Send(2, 2'000, kTarget * 100);
  EXPECT_LT(allowed(), kSegment);
  now_ = now_ + Duration::Millis(101);
  EXPECT_EQ(allowed(), kSegment);
  Send(1, kSegment, kTarget * 100);
  EXPECT_LT(allowed(), kSegment) << "a trial is over when its segment is sent";
}

TEST_F(PortWindowTest, OpensAgainWhenTrialsAreFast) {
  Send(2, 2'000, kTarget * 20);
  EXPECT_LT(allowed(), kSegment);
  for (int i = 0; i < 40; ++i) {
    now_ = now_ + Duration::Millis(101);
    Send(1, kSegment, kTarget / 2);
  }
  EXPECT_GE(allowed(), kSegment * 2);
}

TEST_F(PortWindowTest, RoundTripWithCountsWhatIsInFlight) {
  Send(4, 50'000, kTarget);
  EXPECT_EQ(window_.RoundTripWith(0), kTarget);
  EXPECT_EQ(window_.RoundTripWith(25'000), kTarget + kTarget / 2);
}

}  // namespace
}  // namespace paceline
