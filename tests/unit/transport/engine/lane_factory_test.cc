#include "transport/engine/lane_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace paceline {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const LaneFactoryOptions& options) { return std::string(CreateLanes(options).status().message()); }

TEST(LaneFactory, BindsToLoopbackUnlessToldOtherwise) {
  const auto lanes = CreateLanes({});
  ASSERT_TRUE(lanes.ok()) << lanes.status();
  ASSERT_EQ(lanes->size(), 1u);
  EXPECT_THAT(std::string((*lanes)[0]->name()), HasSubstr("127.0.0.1"));
}

TEST(LaneFactory, MakesALanePerDevice) {
  LaneFactoryOptions options;
  options.devices = {"127.0.0.1", "127.0.0.2"};
  const auto lanes = CreateLanes(options);
  ASSERT_TRUE(lanes.ok()) << lanes.status();
  EXPECT_EQ(lanes->size(), 2u);
}

TEST(LaneFactory, HasAsManyRoutesAsAskedFor) {
  LaneFactoryOptions options;
  options.entropies = 33;
  const auto lanes = CreateLanes(options);
  ASSERT_TRUE(lanes.ok()) << lanes.status();
  EXPECT_EQ((*lanes)[0]->capabilities().entropies, 33u);
}

TEST(LaneFactory, WrapsLanesToImpairThem) {
  LaneFactoryOptions options;
  options.impairment.loss = 0.01;
  const auto lanes = CreateLanes(options);
  ASSERT_TRUE(lanes.ok()) << lanes.status();
  EXPECT_THAT(std::string((*lanes)[0]->name()), HasSubstr("impaired"));
}

TEST(LaneFactory, NamesWhatIsWrong) {
  LaneFactoryOptions options;
  options.kind = "carrier_pigeon";
  EXPECT_THAT(ErrorOf(options), HasSubstr("carrier_pigeon"));
  EXPECT_THAT(ErrorOf(options), HasSubstr("udp"));
  options.kind = "sim";
  EXPECT_THAT(ErrorOf(options), HasSubstr("paceline study"));
  options.kind = "udp";
  options.devices = {"no_such_card0"};
  EXPECT_THAT(ErrorOf(options), HasSubstr("no_such_card0"));
}

TEST(LaneFactory, InterfacesAreTheDevicesOfMostLanes) {
  const auto devices = ListLaneDevices("udp");
  ASSERT_TRUE(devices.ok()) << devices.status();
  bool loopback = false;
  for (const LaneDeviceInfo& device : *devices) {
    loopback |= device.loopback;
    // Another network namespace's devices may be in /sys: what is not there cannot be compared.
    std::ifstream file("/sys/class/net/" + device.name + "/address");
    std::string address;
    if (!(file >> address)) continue;
    std::erase(address, ':');
    EXPECT_EQ(device.guid, std::stoull(address.substr(0, 16), nullptr, 16)) << device.name;
    EXPECT_EQ(device.sysfs.empty(), device.is_virtual) << device.name;
  }
  EXPECT_TRUE(loopback);
}

TEST(LaneFactory, PortsOfCardsAreThoseOfVerbs) {
  const auto devices = ListLaneDevices("verbs");
  if (!devices.ok()) {
    EXPECT_FALSE(devices.status().message().empty());
    return;
  }
  for (const LaneDeviceInfo& device : *devices) EXPECT_GE(device.port, 1u) << device.name;
}

TEST(LaneFactory, SaysWhyAKindIsNotUsable) {
  for (const LaneKindInfo& kind : ListLaneKinds()) EXPECT_TRUE(kind.usable || !kind.reason.empty()) << kind.name;
}

}  // namespace
}  // namespace paceline
