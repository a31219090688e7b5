// The evidence, windows and timers of one traffic class on one port.
#include "transport/core/tx/class_recovery.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

constexpr RecoveryLimits kLimits{.min_timeout = Duration::Millis(20),
                                 .min_probe = Duration::Micros(50),
                                 .max_ack_delay = Duration::Micros(25),
                                 .usual_silence = Duration()};
constexpr Duration kAckDelay = Duration::Micros(25);
constexpr uint16_t kPath = 7;

Time At(int64_t micros) { return Time() + Duration::Micros(micros); }

class ClassRecoveryTest : public testing::Test {
 protected:
  // Sends a packet and takes its acknowledgement.
  void RoundTrip(int64_t sent_us, int64_t rtt_us) {
    recovery_.OnSent(psn_++, 1, At(sent_us));
    recovery_.OnRttSample(Duration::Micros(rtt_us), At(sent_us + rtt_us));
    recovery_.OnResolved(1);
    recovery_.OnArrived(At(sent_us), kPath);
    recovery_.OnProgress(At(sent_us + rtt_us));
  }
  Time Next() const { return recovery_.TimeoutAt(kAckDelay, kLimits); }
  // Lets the next timer run out; true: a probe.
  bool RunOut() { return recovery_.HandleTimeout(kAckDelay, kLimits, Next()); }

  uint64_t psn_ = 1;
  ClassRecovery recovery_{RttEstimator(Duration::Millis(1)), 1};
};

TEST_F(ClassRecoveryTest, WithNothingOutstandingThereIsNothingToAwait) {
  EXPECT_TRUE(Next().is_never());
  RoundTrip(0, 100);
  EXPECT_TRUE(Next().is_never());
}

TEST_F(ClassRecoveryTest, ProbesEverMoreSeldomThenATimeout) {
  RoundTrip(0, 100);
  recovery_.OnSent(psn_, 1, At(1000));
  constexpr int64_t kProbe = 200 + 25;
  int64_t after = kProbe, probes = 0;
  while (after + kProbe <= 20'025) {
    EXPECT_EQ(Next(), At(1000 + after));
    EXPECT_TRUE(RunOut());
    after += ++probes * kProbe;
  }
  EXPECT_EQ(Next(), At(1000 + 20'025));
  EXPECT_FALSE(RunOut());
  EXPECT_EQ(recovery_.timeouts_in_a_row(), 1u);
  EXPECT_EQ(recovery_.questions_in_a_row(), static_cast<uint32_t>(probes + 1));
}

// The first queue may be of any length: probes go on, each after twice the time.
TEST_F(ClassRecoveryTest, TheFirstTimeoutIsLong) {
  RecoveryLimits limits = kLimits;
  limits.first_timeout = Duration::Seconds(1);
  const auto next = [&] { return recovery_.TimeoutAt(kAckDelay, limits); };
  recovery_.OnSent(psn_, 1, At(1000));
  constexpr int64_t kProbe = 2000 + 25;  // of the assumed round trip
  int64_t after = kProbe;
  for (int64_t probes = 0; after + kProbe <= 1'000'000; ++probes) {
    EXPECT_EQ(next(), At(1000 + after));
    EXPECT_TRUE(recovery_.HandleTimeout(kAckDelay, limits, next()));
    after = probes < 12 ? after + (probes + 1) * kProbe : after * 2;
  }
  EXPECT_EQ(next(), At(1'001'000));
  EXPECT_FALSE(recovery_.HandleTimeout(kAckDelay, limits, next()));
}

// While others arrive, and this one alone is silent, nothing is asked, and no pause of the peer is reckoned with.
TEST_F(ClassRecoveryTest, APortThatAloneIsSilentIsGivenUpSoon) {
  RoundTrip(0, 100);
  recovery_.OnSent(psn_, 1, At(1000));
  RecoveryLimits limits = kLimits;
  limits.others_arrive = true;
  limits.delay_error = Duration::Micros(30);
  EXPECT_EQ(recovery_.TimeoutAt(kAckDelay, limits), At(1000 + 100 + 4 * 50 + 25 + 30));
  EXPECT_FALSE(recovery_.HandleTimeout(kAckDelay, limits, At(1355)));
}

TEST_F(ClassRecoveryTest, ASpuriousTimeoutLengthensTheSilenceAllowed) {
  RecoveryLimits limits = kLimits;
  limits.others_arrive = true;
  RoundTrip(0, 100);
  recovery_.OnSent(psn_, 1, At(1000));
  EXPECT_FALSE(recovery_.HandleTimeout(kAckDelay, limits, recovery_.TimeoutAt(kAckDelay, limits)));
  recovery_.OnResolved(1);
  recovery_.OnLateArrival(At(1000), LossCause::kTimeout, limits, At(9000));
  recovery_.OnProgress(At(9000));
  recovery_.OnSent(psn_, 1, At(20'000));
  EXPECT_GE(recovery_.TimeoutAt(kAckDelay, limits), At(28'000));
  recovery_.OnResolved(1);
  for (int64_t i = 0; i < 60'000; ++i) RoundTrip(40'000 + i * 200, 100);
  recovery_.OnSent(psn_, 1, At(20'000'000));
  EXPECT_LT(recovery_.TimeoutAt(kAckDelay, limits), At(20'001'000)) << "long ago";
}

TEST_F(ClassRecoveryTest, AfterTimeoutsFewerPacketsAtATimeUntilSomethingArrives) {
  RoundTrip(0, 100);
  for (const uint64_t most : {16u, 8u, 4u, 2u, 1u, 1u, 1u}) {
    recovery_.OnSent(psn_, 1, At(1000));
    while (RunOut()) continue;
    recovery_.OnResolved(recovery_.outstanding());
    while (recovery_.may_send()) recovery_.OnSent(psn_++, 1, At(30'000));
    EXPECT_EQ(recovery_.outstanding(), most);
  }
  recovery_.OnProgress(At(9'000'000));
  EXPECT_TRUE(recovery_.may_send());
  EXPECT_EQ(recovery_.questions_in_a_row(), 0u);
}

TEST_F(ClassRecoveryTest, QuestionsInBackoffBecomeEverMoreSeldom) {
  RoundTrip(0, 100);
  recovery_.OnSent(psn_, 1, At(1000));
  uint32_t questions = 0;
  while (Next() < At(3'000'000)) {
    RunOut();
    ++questions;
  }
  EXPECT_GT(recovery_.timeouts_in_a_row(), 5u);
  EXPECT_LT(questions, 120u);
  EXPECT_EQ(recovery_.silent_since(), At(1000));
}

// The window covers what was late once, and forgets it when nothing is late any more.
TEST_F(ClassRecoveryTest, LateArrivalsWidenTheWindowToTheirLateness) {
  RoundTrip(0, 100);
  const Duration usual = recovery_.ReorderWindow();
  RoundTrip(5000, 100);
  recovery_.OnLateArrival(At(2000), LossCause::kReorder, kLimits, At(5200));
  EXPECT_GE(recovery_.ReorderWindow(), Duration::Micros(3000));
  EXPECT_LT(recovery_.LostBefore(), At(2000));
  for (int64_t i = 0; i < 20'000; ++i) RoundTrip(10'000 + i * 200, 100);
  EXPECT_LE(recovery_.ReorderWindow(), usual);
}

TEST_F(ClassRecoveryTest, AVerdictIsRememberedForATimeoutAtLeast) {
  RoundTrip(0, 100);
  EXPECT_GE(recovery_.MemoryOfLost(kLimits), Duration::Millis(20));
}

TEST_F(ClassRecoveryTest, PathOrderIsNotTrustedForAWhileAfterAWrongVerdict) {
  RoundTrip(0, 100);
  EXPECT_TRUE(recovery_.trusts_path_order(At(200)));
  recovery_.OnLateArrival(At(0), LossCause::kPathGap, kLimits, At(200));
  EXPECT_FALSE(recovery_.trusts_path_order(At(300)));
  EXPECT_TRUE(recovery_.trusts_path_order(At(200 + 16 * 100)));
  recovery_.OnLateArrival(At(0), LossCause::kReorder, kLimits, At(10'000));
  EXPECT_TRUE(recovery_.trusts_path_order(At(10'000))) << "that verdict was by time";
}

// Of the round trip: one that is out of all proportion counts little, a lasting change is followed.
TEST_F(ClassRecoveryTest, OneLongRoundTripIsNoLongTimeout) {
  RoundTrip(0, 100);
  for (int64_t i = 1; i < 20; ++i) RoundTrip(i * 1000, 100);
  recovery_.OnRttSample(Duration::Seconds(1), At(20'000));
  EXPECT_LE(recovery_.rtt().smoothed(), Duration::Micros(200));
  recovery_.OnRttSample(Duration::Seconds(30), At(20'001));
  EXPECT_LE(recovery_.rtt().smoothed(), Duration::Micros(200)) << "a clock has leapt";
  for (int64_t i = 0; i < 30; ++i) recovery_.OnRttSample(Duration::Millis(5), At(30'000 + i));
  EXPECT_GE(recovery_.rtt().smoothed(), Duration::Micros(4500));
}

}  // namespace
}  // namespace paceline
