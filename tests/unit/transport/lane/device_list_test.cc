#include "transport/lane/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DeviceListTest, ADevicesSettingsStayWithIt) {
  EXPECT_THAT(SplitDevices("eth0, 192.0.2.1,,[fd00::2]:4791"), ElementsAre("eth0", "192.0.2.1", "[fd00::2]:4791"));
  EXPECT_THAT(SplitDevices("net_memif0,role=server,socket=/run/a,net_memif1,role=client"),
              ElementsAre("net_memif0,role=server,socket=/run/a", "net_memif1,role=client"));
  EXPECT_THAT(SplitDevices("a=b"), ElementsAre("a=b"));
  EXPECT_THAT(SplitDevices(""), IsEmpty());
}

}  // namespace
}  // namespace paceline
