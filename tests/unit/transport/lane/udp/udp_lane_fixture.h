// UDP lanes for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/lane_traffic.h"
#include "transport/lane/udp/udp_address.h"
#include "transport/lane/udp/udp_lane.h"

namespace paceline {

inline std::unique_ptr<Lane> MustCreate(const UdpLaneOptions& options) {
  auto lane = CreateUdpLane(options);
  EXPECT_TRUE(lane.ok()) << lane.status();
  return lane.ok() ? *std::move(lane) : nullptr;
}

}  // namespace paceline
