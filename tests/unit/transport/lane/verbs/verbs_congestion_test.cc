// What a verbs lane tells of congestion: marks of switches, and when what arrived did so.
#include <cmath>
#include <cstdlib>

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

TEST_P(VerbsMarksTest, TheTrafficClassIsThatOfPacketsAndWritesWithoutItsEcnBits) {
  b_.reset();
  a_.reset();
  traffic_class_ = 0x6b;  // DSCP 26; the two low bits are the transport's
  Start();
  congested_ = false;
  for (const bool reliable : {false, true}) {
    if (reliable) {
      a_ = Make("fake0", true);
      to_b_ = a_->OpenPeer(b_->address());
    }
    seen_.clear();
    SendPacket(*a_, to_b_, "may be marked", true);
    SendPacket(*a_, to_b_, "control");
    EXPECT_EQ(Receive(*b_).size(), 2u);
    EXPECT_EQ(seen_, (std::vector<uint8_t>{0x68 | kCapable, 0x68}));
    seen_.clear();
    Send(WriteOf(1, 100));
    EXPECT_EQ(Immediates(Run()), List({1}));
    EXPECT_GE(seen_.size(), 3u);  // Open, Accept, and the write
    for (const uint8_t traffic_class : seen_) EXPECT_EQ(traffic_class, 0x68);
  }
}

// Cards with clocks of their own, one fast and one slow.
class VerbsTimesTest : public VerbsFixture {
 protected:
  void SetUp() override {
    cards_.OfferClock(0, 156'250, 80, [this] { return now_; });
    cards_.OfferClock(1, 156'250, -120, [this] { return now_; });
    Start();
  }
  // What is on the wire arrives now; B looks only after 3 ms.
  std::vector<Arrived> Late() {
    Receive(*a_);
    arrived_ = now_;
    now_ = now_ + Duration::Millis(3);
    return Receive(*b_);
  }
  // As far as two clocks may differ that are compared every 5 ms, before it is known how fast the card's runs.
  void ExpectArrived(const std::vector<Arrived>& list, Duration error = Duration::Nanos(1000)) const {
    ASSERT_EQ(list.size(), 1u);
    EXPECT_LE(std::abs((list[0].received_at - arrived_).nanos()), error.nanos());
  }
  Time arrived_;
};

TEST_F(VerbsTimesTest, ArrivalsHaveTheTimeOfTheCardAndNotOfTheLook) {
  EXPECT_TRUE(a_->capabilities().rx_timestamps);
  SendPacket(*a_, to_b_, "packet");
  ExpectArrived(Late());
  Send(WriteOf(1, 100));
  Run();
  Send(WriteOf(2, 100));
  ExpectArrived(Late());
}

TEST_F(VerbsTimesTest, ClocksAreComparedAgainAndAgain) {
  for (int step = 0; step < 2500; ++step) {
    now_ = now_ + Duration::Millis(4);
    Receive(*a_);
    Receive(*b_);
  }
  SendPacket(*a_, to_b_, "packet");
  ExpectArrived(Late(), Duration::Nanos(100));
}

TEST_F(VerbsTimesTest, WhatALookBeforeHasTakenInKeepsItsTime) {
  SendPacket(*a_, to_b_, "packet");
  Receive(*a_);
  arrived_ = now_;
  now_ = now_ + Duration::Millis(2);
  EXPECT_FALSE(b_->PrepareToWait());
  now_ = now_ + Duration::Millis(2);
  ExpectArrived(Receive(*b_));
}

TEST_F(VerbsTimesTest, AreNeverLaterThanTheLook) {
  SendPacket(*a_, to_b_, "packet");
  Receive(*a_);
  std::array<RxSegment, 8> out;
  const Time before = now_ - Duration::Millis(1);  // the caller looked at its clock a while ago
  ASSERT_EQ(b_->Receive(out, before), 1u);
  EXPECT_EQ(out[0].received_at, before);
}

TEST_F(VerbsTimesTest, FailuresAreToldWithoutThem) {
  cards_.SetPort(0, false);
  for (int i = 0; i < 20; ++i) SendPacket(*a_, to_b_, "lost");
  Run(Duration::Millis(20));
  EXPECT_FALSE(a_->status().up);
  cards_.SetPort(0, true);
  Run(Duration::Millis(300));
  SendPacket(*a_, to_b_, "again");
  ExpectArrived(Late());
}

using VerbsNoTimesTest = VerbsFixture;

TEST_F(VerbsNoTimesTest, ACardWithoutAClockTellsOfTheLook) {
  EXPECT_FALSE(a_->capabilities().rx_timestamps);
  SendPacket(*a_, to_b_, "packet");
  Receive(*a_);
  now_ = now_ + Duration::Millis(3);
  const auto arrived = Receive(*b_);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].received_at, now_);
}

}  // namespace
}  // namespace paceline::support
