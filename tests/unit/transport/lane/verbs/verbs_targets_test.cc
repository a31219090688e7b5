// Which of the paths that others write on make way for new ones.
#include "transport/lane/verbs/verbs_targets.h"

#include <gtest/gtest.h>

#include "tests/support/fake_verbs.h"
#include "transport/lane/verbs/verbs_devices.h"

namespace paceline::support {
namespace {

class VerbsTargetsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto card = VerbsCard::Open(cards_, ListVerbsPorts(cards_).at(0), {});
    ASSERT_TRUE(card.ok()) << card.status();
    card_ = *std::move(card);
    targets_.emplace(card_.get(), 3);
  }
  // Of a path to this connection; whether it was accepted.
  bool Open(uint32_t connection, Duration at) {
    VerbsMessage message;
    message.connection = connection;
    message.epoch = 1;
    message.qp_number = 100 + connection;
    message.mtu = 1024;
    const auto answer = targets_->OnMessage({.gid = card_->port().gid, .ethernet = true}, message, Time() + at);
    return answer.has_value() && answer->type == VerbsMessageType::kAccept;
  }

  FakeVerbs cards_{1};
  std::unique_ptr<VerbsCard> card_;
  std::optional<VerbsTargets> targets_;
};

TEST_F(VerbsTargetsTest, ThePathThatWasNotUsedForLongestMakesWay) {
  for (uint32_t connection = 1; connection <= 3; ++connection) {
    EXPECT_TRUE(Open(connection, Duration::Seconds(connection)));
  }
  const auto oldest = cards_.PathQps(0);
  ASSERT_EQ(oldest.size(), 3u);
  EXPECT_FALSE(Open(4, Duration::Seconds(20))) << "all may be in use";
  EXPECT_TRUE(Open(4, Duration::Seconds(31)));
  EXPECT_FALSE(targets_->OnArrival(oldest[0], Time() + Duration::Seconds(31)).has_value());
  EXPECT_TRUE(targets_->OnArrival(oldest[1], Time() + Duration::Seconds(31)).has_value());
}

TEST_F(VerbsTargetsTest, OneThatTheCardDoesNotStopIsInNobodysWay) {
  for (uint32_t connection = 1; connection <= 3; ++connection) {
    EXPECT_TRUE(Open(connection, Duration::Seconds(connection)));
  }
  const auto oldest = cards_.PathQps(0);
  ASSERT_EQ(oldest.size(), 3u);
  cards_.Jam(0, 1);
  EXPECT_TRUE(Open(4, Duration::Seconds(60)));
  EXPECT_TRUE(targets_->OnArrival(oldest[0], Time() + Duration::Seconds(60)).has_value());
  EXPECT_FALSE(targets_->OnArrival(oldest[1], Time() + Duration::Seconds(60)).has_value());
}

}  // namespace
}  // namespace paceline::support
