#include "cc/algorithms/none.h"

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

TEST(None, AlwaysLineRate) {
  const auto control = NoneAlgorithm().create({}, 1);
  EXPECT_EQ(control->NewReceiver(TestPort()), nullptr);
  const auto sender = control->NewSender({}, TestPort(), Time());
  sender->OnLoss({.now = Time(), .lost_bytes = 1'000'000, .lost_packets = 250});
  EXPECT_EQ(sender->allowance().pacing_rate, Rate::Gbps(100));
  EXPECT_EQ(sender->allowance().credit_end, kNoCreditLimit);
}

}  // namespace
}  // namespace paceline
