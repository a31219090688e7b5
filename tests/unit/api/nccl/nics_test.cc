#include "api/nccl/src/nics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::nccl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

api::Interface Card(const char* name) { return {.name = name, .usable = true, .gbps = 100}; }
const api::Interface kLoopback = {.name = "lo", .usable = true, .loopback = true, .is_virtual = true};
const api::Interface kBridge = {.name = "br0", .usable = true, .is_virtual = true};
const api::Interface kDown = {.name = "eth9", .usable = false};

std::vector<std::string> Chosen(const std::vector<api::Interface>& interfaces, const std::string& hca) {
  const auto chosen = ChooseInterfaces(interfaces, hca);
  std::vector<std::string> names;
  if (!chosen.ok()) return {chosen.status().message()};
  for (const api::Interface& one : *chosen) names.push_back(one.name);
  return names;
}

TEST(NicsTest, CardsComeBeforeWhatIsVirtualAndTheLoopbackLast) {
  EXPECT_THAT(Chosen({kLoopback, kBridge, Card("eth0"), kDown, Card("eth1")}, ""), ElementsAre("eth0", "eth1"));
  EXPECT_THAT(Chosen({kLoopback, kBridge, kDown}, ""), ElementsAre("br0"));
  EXPECT_THAT(Chosen({kLoopback, kDown}, ""), ElementsAre("lo"));
}

TEST(NicsTest, TheListChoosesAmongWhatIsUsable) {
  EXPECT_THAT(Chosen({kLoopback, Card("eth0"), kDown, Card("eth1")}, "eth"), ElementsAre("eth0", "eth1"));
  EXPECT_THAT(Chosen({kLoopback, Card("eth0"), Card("eth1")}, "=lo"), ElementsAre("lo"));
  EXPECT_THAT(Chosen({kLoopback, Card("eth0"), Card("eth1")}, "^eth0"), ElementsAre("lo", "eth1"));
  EXPECT_THAT(Chosen({kLoopback, kDown}, "eth"),
              ElementsAre(AllOf(HasSubstr("PACELINE_HCA=eth"), HasSubstr("eth9 (down or without address)"))));
}

TEST(NicsTest, PortsOfCardsAreDevicesLikeInterfaces) {
  const api::Interface soft = {.name = "rxe0:1", .usable = true, .is_virtual = true, .port = 1, .guid = 0x5054};
  const api::Interface down = {.name = "rxe1:1", .is_virtual = true, .port = 1};
  EXPECT_THAT(Chosen({soft, down}, ""), ElementsAre("rxe0:1"));
  EXPECT_THAT(Chosen({soft, Card("mlx5_0:1"), Card("mlx5_0:2")}, ""), ElementsAre("mlx5_0:1", "mlx5_0:2"));
  const Nic nic = NicOf(soft, 3, 0);
  EXPECT_EQ(nic.port, 1);
  EXPECT_EQ(nic.guid, 0x5054u);
  EXPECT_THAT(nic.bind, ElementsAre("rxe0:1"));
  EXPECT_TRUE(nic.open_to_others);
  EXPECT_EQ(NicOf(down, 3, 0).guid, 4u) << "one of its own, where the card has none";
  const std::vector<api::Interface> ports = {down, soft, Card("rxe00:1")};
  EXPECT_EQ(Named(ports, "rxe0"), &ports[1]);
  EXPECT_EQ(Named(ports, "rxe1:1"), &ports[0]);
  EXPECT_EQ(Named(ports, "rxe1"), nullptr) << "none of its ports is usable";
}

TEST(NicsTest, ALaneWithoutDevicesSaysWhy) {
  if (const auto ports = api::ListInterfaces("verbs"); ports.ok()) GTEST_SKIP() << "RDMA devices are here";
  const auto nics = Nics::Find({.lane = "verbs"}, "");
  ASSERT_FALSE(nics.ok());
  EXPECT_NE(nics.status().message(), "");
}

TEST(NicsTest, PartsOfAVirtualDeviceAddUp) {
  auto nics = Nics::Find({.bind = {"127.0.0.1", "127.0.0.2"}, .link_gbps = 40}, "");
  ASSERT_TRUE(nics.ok()) << nics.status().message();
  ASSERT_EQ(nics->count(), 2);
  EXPECT_THAT(nics->Get(1)->parts, ElementsAre(1));
  const auto merged = nics->Merge({0, 1});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(*merged, 2);
  const Nic* nic = nics->Get(2);
  EXPECT_EQ(nic->name, "127.0.0.1+127.0.0.2");
  EXPECT_EQ(nic->speed_mbps, 80'000);
  EXPECT_THAT(nic->bind, ElementsAre("127.0.0.1", "127.0.0.2"));
  EXPECT_THAT(nic->parts, ElementsAre(0, 1));
  for (const auto& [parts, why] : {std::pair{std::vector<int>{0, 0}, "named twice"},
                                   std::pair{std::vector<int>{2}, "part 2 is none of the devices 0 to 1"},
                                   std::pair{std::vector<int>{}, "0 parts"}}) {
    EXPECT_THAT(nics->Merge(parts).status().message(), HasSubstr(why));
  }
  EXPECT_EQ(nics->Get(3), nullptr);
  EXPECT_EQ(nics->Get(-1), nullptr);
}

TEST(NicsTest, SharedMemoryIsOneDevice) {
  const auto nics = Nics::Find({.lane = "shm"}, "");
  ASSERT_TRUE(nics.ok());
  EXPECT_EQ(nics->count(), 1);
  EXPECT_TRUE(nics->Get(0)->bind.empty());
}

}  // namespace
}  // namespace paceline::nccl
