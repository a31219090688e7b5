// What a verbs lane tells of congestion: marks of switches.
#include "tests/unit/transport/lane/verbs/verbs_fixture.h"

namespace paceline::support {
namespace {

constexpr uint8_t kEcnMask = 3;
constexpr uint8_t kNotCapable = 0, kCapable = 2, kCongested = 3;

// Switches between the cards mark what may be marked. IPv4 and IPv6.
class VerbsMarksTest : public VerbsFixture, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) cards_.UseIpv6();
    cards_.hook = [this](FakeVerbs::Packet& packet) {
      seen_.push_back(packet.traffic_class);
      if (congested_ && (packet.traffic_class & kEcnMask) != kNotCapable) packet.traffic_class |= kCongested;
      return FakeVerbs::Fate::kDeliver;
    };
    Start();
  }
  std::vector<uint8_t> seen_;
  bool congested_ = true;
};
INSTANTIATE_TEST_SUITE_P(Addresses, VerbsMarksTest, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Ipv6" : "Ipv4"; });

TEST_P(VerbsMarksTest, AreSetOnPacketsThatAskForThemAndSeenOnArrival) {
  EXPECT_TRUE(a_->capabilities().ecn);
  SendPacket(*a_, to_b_, "marked", true);
  SendPacket(*a_, to_b_, "control");
  congested_ = false;
  for (const Arrived& one : Receive(*b_)) EXPECT_FALSE(one.marked) << one.bytes;
  congested_ = true;
  SendPacket(*a_, to_b_, "marked", true);
  SendPacket(*a_, to_b_, "control");
  const auto arrived = Receive(*b_);
  ASSERT_EQ(arrived.size(), 2u);
  for (const Arrived& one : arrived) {
    EXPECT_EQ(one.marked, one.bytes == "marked") << one.bytes;
    EXPECT_TRUE(one.source == a_->address());
  }
  EXPECT_EQ(seen_, (std::vector<uint8_t>{kCapable, kNotCapable, kCapable, kNotCapable}));
}

TEST_P(VerbsMarksTest, OfWritesWouldBeSeenByNobodyAndAreNotAskedFor) {
  TxSegment segment = WriteOf(1, 100);
  segment.ecn_capable = true;
  Send(segment);
  EXPECT_EQ(Immediates(Run()), List({1}));
  for (const uint8_t traffic_class : seen_) EXPECT_EQ(traffic_class, kNotCapable);
}

}  // namespace
}  // namespace paceline::support
