#include "transport/core/keepalive.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

constexpr Duration kInterval = Duration::Seconds(2);
constexpr Duration kPeerTimeout = Duration::Seconds(10);

Time At(int64_t seconds) { return Time() + Duration::Seconds(seconds); }

class KeepaliveTest : public testing::Test {
 protected:
  // Sends the question that is due.
  void Send(uint64_t token) {
    ASSERT_TRUE(keepalive_.ask_due());
    keepalive_.TakeAsk(token);
  }
  Keepalive keepalive_;
};

TEST_F(KeepaliveTest, AsksAfterSilenceAndGivesUpAfterThreeQuestionsAndThePeerTimeout) {
  keepalive_.Start(At(0));
  int64_t lost_at = 0;
  for (int64_t second = 1; lost_at == 0 && second < 100; ++second) {
    const bool due = keepalive_.PollTimeout(kInterval, true) <= At(second);
    EXPECT_EQ(due, second % 2 == 0) << second;
    if (!keepalive_.HandleTimeout(kInterval, true, kPeerTimeout, At(second))) lost_at = second;
    EXPECT_EQ(keepalive_.TakePing(), due && lost_at == 0) << second;
  }
  EXPECT_EQ(lost_at, 10);
}

TEST_F(KeepaliveTest, APeerOfWhichNothingIsExpectedIsAskedMoreSeldom) {
  keepalive_.Start(At(0));
  EXPECT_EQ(keepalive_.PollTimeout(kInterval, false), At(30));
  EXPECT_TRUE(keepalive_.HandleTimeout(kInterval, false, kPeerTimeout, At(30)));
  EXPECT_EQ(keepalive_.PollTimeout(kInterval, false), At(32)) << "once asked, it is asked often";
}

TEST_F(KeepaliveTest, QuestionsOfTheSenderLeadToOneOnlyAfterSilence) {
  keepalive_.Start(At(0));
  keepalive_.OnQuestion(Time() + Duration::Millis(1));
  keepalive_.OnQuestion(Time() + Duration::Millis(20));
  EXPECT_FALSE(keepalive_.ask_due()) << "no silence yet";
  keepalive_.OnQuestion(Time() + Duration::Millis(60));
  EXPECT_TRUE(keepalive_.ask_due());
  Send(5);
  keepalive_.OnHeard(At(1));
  keepalive_.OnQuestion(At(2));
  EXPECT_FALSE(keepalive_.ask_due()) << "the first since it was heard";
  keepalive_.OnQuestion(At(3));
  EXPECT_TRUE(keepalive_.ask_due());
}

TEST_F(KeepaliveTest, TwoAnswersToTwoQuestionsAreBelieved) {
  keepalive_.Ask();
  Send(5);
  EXPECT_FALSE(keepalive_.OnGone(5));
  Send(6);  // due at once
  EXPECT_TRUE(keepalive_.OnGone(6));
}

TEST_F(KeepaliveTest, AnAnswerCountsOnceAndOnlyToTheLastQuestion) {
  EXPECT_FALSE(keepalive_.OnGone(0)) << "nothing was asked";
  keepalive_.Ask();
  Send(5);
  EXPECT_FALSE(keepalive_.OnGone(0));
  EXPECT_FALSE(keepalive_.OnGone(4));
  EXPECT_FALSE(keepalive_.ask_due()) << "a wrong token is no answer";
  EXPECT_FALSE(keepalive_.OnGone(5));
  EXPECT_FALSE(keepalive_.OnGone(5)) << "a copy";
  Send(6);
  EXPECT_FALSE(keepalive_.OnGone(5));
  EXPECT_TRUE(keepalive_.OnGone(6));
}

TEST_F(KeepaliveTest, WhoeverIsHeardIsNotGone) {
  keepalive_.Ask();
  Send(5);
  keepalive_.OnHeard(At(1));
  EXPECT_FALSE(keepalive_.OnGone(5)) << "heard while the question was on its way";
  keepalive_.Ask();
  Send(6);
  EXPECT_FALSE(keepalive_.OnGone(6));
  keepalive_.OnHeard(At(2));
  Send(7);
  EXPECT_FALSE(keepalive_.OnGone(7)) << "heard between the answers: it starts over";
  Send(8);
  EXPECT_TRUE(keepalive_.OnGone(8));
}

}  // namespace
}  // namespace paceline
