#include "transport/lane/dpdk/dpdk_queues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using ::testing::HasSubstr;

TEST(DpdkQueues, OneUnlessMoreAreAskedFor) {
  const DpdkQueues queues = ChooseDpdkQueues(0, {16, 16, DpdkSpreading::kTaken});
  EXPECT_EQ(queues.receive, 1);
  EXPECT_EQ(queues.send, 1);
  EXPECT_EQ(queues.shortfall, "");
}

TEST(DpdkQueues, AsManyAsAreAskedForWithinWhatThePortHas) {
  const DpdkQueues queues = ChooseDpdkQueues(4, {16, 16, DpdkSpreading::kTaken});
  EXPECT_EQ(queues.receive, 4);
  EXPECT_EQ(queues.send, 4);
  EXPECT_EQ(queues.shortfall, "");
  const DpdkQueues fewer = ChooseDpdkQueues(4, {8, 3, DpdkSpreading::kTaken});
  EXPECT_EQ(fewer.receive, 4);
  EXPECT_EQ(fewer.send, 3);
  EXPECT_THAT(fewer.shortfall, HasSubstr("8 to receive and 3 to send"));
}

TEST(DpdkQueues, APortThatSpreadsNothingGetsOneAndTheReasonIsSaid) {
  const DpdkQueues queues = ChooseDpdkQueues(4, {16, 16, DpdkSpreading::kNone});
  EXPECT_EQ(queues.receive, 1);
  EXPECT_EQ(queues.send, 1);
  EXPECT_THAT(queues.shortfall, HasSubstr("RSS"));
  EXPECT_EQ(ChooseDpdkQueues(1, {16, 16, DpdkSpreading::kNone}).shortfall, "");
}

TEST(DpdkQueues, QueuesThatAreFilledRegardlessAreAllTaken) {
  for (const uint16_t asked : {0, 2, 3}) {
    const DpdkQueues queues = ChooseDpdkQueues(asked, {5, 3, DpdkSpreading::kRegardless});
    EXPECT_EQ(queues.receive, 5) << asked;
    EXPECT_EQ(queues.send, asked == 0 ? 3 : asked);
    EXPECT_EQ(queues.shortfall, "") << asked;
  }
  EXPECT_THAT(ChooseDpdkQueues(4, {5, 3, DpdkSpreading::kRegardless}).shortfall, HasSubstr("3 to send"));
}

TEST(DpdkQueues, TheyShareWhatOneWouldHaveDownToABound) {
  EXPECT_EQ(DpdkQueueEntries(1), 1024);
  EXPECT_EQ(DpdkQueueEntries(2), 512);
  EXPECT_EQ(DpdkQueueEntries(3), 256);
  EXPECT_EQ(DpdkQueueEntries(64), 256);
}

}  // namespace
}  // namespace paceline
