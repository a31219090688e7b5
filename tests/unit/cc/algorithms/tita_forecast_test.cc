#include "cc/algorithms/tita_forecast.h"

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

using Verdict = TitaForecast::Verdict;

class TitaForecastTest : public ::testing::Test {
 protected:
  // A round trip in which so many flows begin, after which so many are silent and the others can send `ready` bytes.
  Verdict RoundTrip(int trusted_starts, int fresh_starts, uint64_t trusted, uint64_t fresh, uint64_t ready = 0) {
    for (int i = 0; i < trusted_starts; ++i) forecast_.OnStart(true, now_);
    for (int i = 0; i < fresh_starts; ++i) forecast_.OnStart(false, now_);
    now_ = now_ + sizes_.rtt;
    EXPECT_EQ(forecast_.due(sizes_.rtt), now_);
    const Verdict verdict = forecast_.Close(trusted, fresh, ready, kBudget, sizes_);
    EXPECT_TRUE(forecast_.due(sizes_.rtt).is_never());
    return verdict;
  }

  static constexpr uint64_t kBudget = 200'000;
  const TitaSizes sizes_ = TitaSizesFor({}, TestPort());
  Time now_ = Time::FromNanos(1000);
  TitaForecast forecast_;
};

TEST_F(TitaForecastTest, AnIncastEarnsNothing) {
  EXPECT_TRUE(forecast_.due(sizes_.rtt).is_never());
  EXPECT_EQ(RoundTrip(0, 32, 0, 0), Verdict::kAsBefore);
  EXPECT_EQ(RoundTrip(0, 17, 0, 15), Verdict::kAsBefore);
  EXPECT_EQ(forecast_.ahead_limit(), 0u);
}

TEST_F(TitaForecastTest, AFewFlowsEarnNothing) {
  EXPECT_EQ(RoundTrip(0, 1, 0, 6), Verdict::kAsBefore);
  EXPECT_EQ(RoundTrip(0, 1, 0, 7), Verdict::kTrustFresh);
}

TEST_F(TitaForecastTest, WhereHalfAtMostBeginTheOthersAreTrusted) {
  EXPECT_EQ(RoundTrip(0, 16, 0, 16), Verdict::kTrustFresh);
  EXPECT_EQ(forecast_.ahead_limit(), kBudget);  // budget * 16 / 16
  EXPECT_NEAR(static_cast<double>(forecast_.start_credit()), 0.35 * static_cast<double>(sizes_.bdp) / 16, 1);
}

TEST_F(TitaForecastTest, TheBoundIsReachedInStepsAndFollowsThoseThatAreLeft) {
  RoundTrip(0, 1, 0, 62);
  EXPECT_EQ(forecast_.ahead_limit(), 4 * kBudget);
  RoundTrip(1, 0, 61, 0);
  EXPECT_EQ(forecast_.ahead_limit(), 16 * kBudget);
  RoundTrip(1, 0, 60, 0);
  EXPECT_EQ(forecast_.ahead_limit(), 61 * kBudget);
  RoundTrip(2, 0, 58, 0);
  EXPECT_EQ(forecast_.ahead_limit(), 30 * kBudget);  // two in a round trip now
}

TEST_F(TitaForecastTest, APortThatOthersFillGivesLittle) {
  RoundTrip(0, 1, 0, 62, 2 * sizes_.bdp);
  EXPECT_EQ(forecast_.ahead_limit(), kBudget / 16);
  RoundTrip(1, 0, 61, 0, 4 * sizes_.bdp);
  EXPECT_EQ(forecast_.ahead_limit(), kBudget / 16);
  RoundTrip(1, 0, 61, 0, sizes_.bdp * 3 / 2);
  EXPECT_EQ(forecast_.ahead_limit(), kBudget / 4);
  RoundTrip(1, 0, 60, 0, sizes_.bdp * 3 / 2);
  RoundTrip(1, 0, 59, 0, sizes_.bdp * 3 / 2);
  RoundTrip(1, 0, 59, 0, sizes_.bdp * 3 / 2);
  RoundTrip(1, 0, 59, 0, sizes_.bdp * 3 / 2);
  EXPECT_NEAR(static_cast<double>(forecast_.ahead_limit()), 30 * kBudget, 100);  // half of 60 budgets
}

TEST_F(TitaForecastTest, WhenMoreBeginThanStaySilentNobodyIsTrusted) {
  RoundTrip(0, 1, 0, 62);
  EXPECT_EQ(RoundTrip(40, 0, 22, 0), Verdict::kTrustNobody);
  EXPECT_EQ(forecast_.ahead_limit(), 0u);
  // The last few of an exchange are no surprise.
  RoundTrip(0, 1, 0, 20);
  EXPECT_EQ(RoundTrip(3, 0, 1, 0), Verdict::kAsBefore);
  EXPECT_GT(forecast_.ahead_limit(), 0u);
}

TEST_F(TitaForecastTest, FreshFlowsEarnTrustOfTheirOwn) {
  RoundTrip(0, 1, 0, 62);
  RoundTrip(1, 0, 61, 0);
  EXPECT_EQ(RoundTrip(1, 20, 60, 10), Verdict::kAsBefore);
  EXPECT_EQ(RoundTrip(1, 2, 59, 8), Verdict::kTrustFresh);
  EXPECT_LE(forecast_.ahead_limit(), 4 * kBudget);
  // Twenty began in a round trip.
  EXPECT_NEAR(static_cast<double>(forecast_.start_credit()), 0.35 * static_cast<double>(sizes_.bdp) / 20, 1);
}

TEST_F(TitaForecastTest, TheStartCreditFollowsWhatIsInUseAndLosses) {
  RoundTrip(0, 2, 0, 60);
  const uint64_t first = forecast_.start_credit();
  forecast_.OnLoad(sizes_.bdp * 7 / 10, sizes_);
  EXPECT_EQ(forecast_.start_credit(), first);
  forecast_.OnLoad(sizes_.bdp * 9 / 10, sizes_);
  EXPECT_LT(forecast_.start_credit(), first);
  for (int i = 0; i < 200; ++i) forecast_.OnLoad(3 * sizes_.bdp, sizes_);
  EXPECT_EQ(forecast_.start_credit(), sizes_.grain);
  for (int i = 0; i < 200; ++i) forecast_.OnLoad(0, sizes_);
  EXPECT_EQ(forecast_.start_credit(), sizes_.bdp / 2);
  forecast_.OnLoss(now_, sizes_);
  forecast_.OnLoss(now_ + sizes_.rtt / 2, sizes_);  // once in a round trip
  EXPECT_EQ(forecast_.start_credit(), sizes_.bdp / 4);
  for (int i = 1; i < 20; ++i) forecast_.OnLoss(now_ + sizes_.rtt * i, sizes_);
  EXPECT_EQ(forecast_.start_credit(), sizes_.grain);
}

}  // namespace
}  // namespace paceline
