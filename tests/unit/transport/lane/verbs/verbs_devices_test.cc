// Which ports there are, and what is said of those that cannot be used.
#include "transport/lane/verbs/verbs_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_verbs.h"
#include "transport/lane/verbs/verbs_lane.h"

namespace paceline::support {
namespace {

using ::testing::HasSubstr;

TEST(VerbsDevices, PortsAreSeenWithWhatTheyAre) {
  FakeVerbs cards(2);
  const auto ports = ListVerbsPorts(cards);
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[1].name(), "fake1:1");
  EXPECT_TRUE(ports[1].ethernet);
  EXPECT_EQ(ports[1].mtu, 4096u);
  EXPECT_DOUBLE_EQ(ports[1].rate.gbps(), 200);  // 4 lanes of 50 Gb/s
  EXPECT_EQ(ports[1].gid[15], 2u);
  EXPECT_EQ(ports[1].gid_index, 1u) << "the IPv4 one, not the link-local one";
  EXPECT_EQ(ports[1].guid, 0x0200000000000001u);
  EXPECT_EQ(ports[1].sysfs, "") << "there is no card behind it";
  EXPECT_EQ(ports[1].reason(), "");
  EXPECT_EQ(cards.objects(), 0u);
}

TEST(VerbsDevices, PortsThatCannotBeUsedSayWhy) {
  FakeVerbs cards(2);
  cards.SetPort(0, false);
  cards.SetGids(1, false);
  const auto ports = ListVerbsPorts(cards);
  EXPECT_THAT(ports[0].reason(), HasSubstr("not active"));
  EXPECT_THAT(ports[1].reason(), HasSubstr("RoCE v2"));
  const auto lane = CreateVerbsLane({.device = "fake0"}, &cards);
  ASSERT_FALSE(lane.ok());
  EXPECT_THAT(lane.status().message(), HasSubstr("fake0:1: the port is not active"));
}

TEST(VerbsDevices, ErrorsNameWhatIsWrong) {
  FakeVerbs cards(2);
  EXPECT_THAT(CreateVerbsLane({.device = "mlx5_7"}, &cards).status().message(), HasSubstr("fake0:1, fake1:1"));
  EXPECT_THAT(CreateVerbsLane({.device = "fake0", .entropies = 65}, &cards).status().message(), HasSubstr("1 to 64"));
  EXPECT_THAT(CreateVerbsLane({.device = "fake0", .mtu = 9000}, &cards).status().message(), HasSubstr("256 to 4096"));
  FakeVerbs none(0);
  EXPECT_THAT(CreateVerbsLane({.device = "fake0"}, &none).status().message(), HasSubstr("there is: none"));
  FakeVerbs small(1, 1000);
  EXPECT_THAT(CreateVerbsLane({.device = "fake0"}, &small).status().message(), HasSubstr("1000"));
  EXPECT_EQ(small.objects(), 0u);
}

// As the kernel says of a card with more of them (those of its virtual functions).
TEST(VerbsDevices, AsManyPortsAsACardCanSay) {
  FakeVerbs cards(1);
  cards.CountPorts(255);
  const auto ports = ListVerbsPorts(cards);
  ASSERT_EQ(ports.size(), 255u);
  EXPECT_EQ(ports.back().name(), "fake0:255");
}

TEST(VerbsDevices, AShortCompletionQueueMeansFewerPaths) {
  FakeVerbs cards(1, 10000);
  EXPECT_TRUE(CreateVerbsLane({.device = "fake0"}, &cards).ok());
  EXPECT_EQ(cards.objects(), 0u);
}

}  // namespace
}  // namespace paceline::support
