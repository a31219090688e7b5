#include "transport/engine/lane_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  options.kind = "dpdk";
  EXPECT_THAT(ErrorOf(options), HasSubstr("planned"));
  options.kind = "udp";
  options.devices = {"no_such_card0"};
  EXPECT_THAT(ErrorOf(options), HasSubstr("no_such_card0"));
}

TEST(LaneFactory, SaysWhyAKindIsNotUsable) {
  for (const LaneKindInfo& kind : ListLaneKinds()) EXPECT_TRUE(kind.usable || !kind.reason.empty()) << kind.name;
}

}  // namespace
}  // namespace paceline
