#include "cc/algorithms/fixed_window.h"

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

uint64_t Window(double bdp, const FlowInfo& flow, const PortInfo& port) {
  const auto control = FixedWindowAlgorithm().create({{"window_bdp", bdp}}, 1);
  return control->NewSender(flow, port, Time())->allowance().window_bytes;
}

TEST(FixedWindow, IsInBdpOfThePair) {
  // 100 Gb/s * 14 us = 175,000 wire bytes, of which 4096 / 4160 payload.
  EXPECT_EQ(Window(1, {}, TestPort()), 172'307u);
  EXPECT_EQ(Window(2, {}, TestPort()), 344'614u);
  EXPECT_EQ(Window(1, {.base_rtt = Duration::Micros(7)}, TestPort()), 86'153u);
}

TEST(FixedWindow, IsASegmentAtLeast) { EXPECT_EQ(Window(0.01, {}, TestPort()), 4096u); }

}  // namespace
}  // namespace paceline
