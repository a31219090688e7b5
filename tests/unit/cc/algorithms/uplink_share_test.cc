#include "cc/algorithms/uplink_share.h"

#include "gtest/gtest.h"
#include "transport/base/random.h"

namespace paceline {
namespace {

TEST(UplinkShare, AloneGetsAll) {
  UplinkShare uplink(100);
  const uint32_t flow = uplink.Add();
  EXPECT_DOUBLE_EQ(uplink.Cap(flow), 100);
  uplink.SetBacklogged(flow, true);
  EXPECT_DOUBLE_EQ(uplink.Cap(flow), 100);
}

TEST(UplinkShare, EqualSharesWithoutGrants) {
  UplinkShare uplink(100);
  std::vector<uint32_t> flows;
  for (int i = 0; i < 4; ++i) {
    flows.push_back(uplink.Add());
    uplink.SetBacklogged(flows.back(), true);
  }
  for (const uint32_t flow : flows) EXPECT_DOUBLE_EQ(uplink.Cap(flow), 25);
  uplink.SetBacklogged(flows[0], false);
  EXPECT_NEAR(uplink.Cap(flows[1]), 100.0 / 3, 1e-9);
}

TEST(UplinkShare, WhatAReceiverCannotTakeGoesToTheOthers) {
  UplinkShare uplink(100);
  const uint32_t slow = uplink.Add(), fast = uplink.Add();
  uplink.SetBacklogged(slow, true);
  uplink.SetBacklogged(fast, true);
  uplink.SetGrantedRate(slow, 10);
  EXPECT_DOUBLE_EQ(uplink.Cap(fast), 90);
  uplink.SetGrantedRate(fast, 60);  // 30 are left: each may have them
  EXPECT_DOUBLE_EQ(uplink.Cap(fast), 90);
  EXPECT_DOUBLE_EQ(uplink.Cap(slow), 50);
}

TEST(UplinkShare, NeverBelowEqualNeverAboveAll) {
  UplinkShare uplink(100);
  Random random(3);
  std::vector<uint32_t> flows;
  std::vector<bool> backlogged;
  for (int step = 0; step < 5000; ++step) {
    const uint64_t what = random.Below(4);
    if (flows.empty() || what == 0) {
      flows.push_back(uplink.Add());
      backlogged.push_back(false);
      continue;
    }
    const size_t i = random.Below(flows.size());
    if (what == 1 && flows.size() > 20) {
      uplink.Remove(flows[i]);
      flows.erase(flows.begin() + static_cast<std::ptrdiff_t>(i));
      backlogged.erase(backlogged.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (what == 2) {
      backlogged[i] = random.Chance(0.5);
      uplink.SetBacklogged(flows[i], backlogged[i]);
    } else {
      uplink.SetGrantedRate(flows[i], random.Unit() * 50);
    }
    size_t active = 0;
    for (size_t k = 0; k < flows.size(); ++k) active += backlogged[k];
    ASSERT_EQ(uplink.backlogged_flows(), active);
    for (size_t k = 0; k < flows.size(); ++k) {
      const double cap = uplink.Cap(flows[k]);
      ASSERT_GE(cap, 100.0 / static_cast<double>(active + (backlogged[k] ? 0 : 1)) - 1e-9);
      ASSERT_LE(cap, 100);
    }
  }
}

}  // namespace
}  // namespace paceline
