// How an xdp lane finds its peers: neighbours that move, gateways, addresses that the interface does not lead to, links
// that go down.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/unit/transport/lane/xdp/xdp_fixture.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {
namespace {

using XdpReachTest = XdpFixture;

TEST_F(XdpReachTest, ANeighbourThatMovesIsFollowed) {
  const auto a = Xdp(0), b = Udp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  SendAndCheck(*a, *b);
  ASSERT_TRUE(cable_->Run(0, "ip neigh replace 198.51.100.2 lladdr 02:00:00:00:00:99 dev v0 nud permanent"));
  Idle(*a, 5);
  SegmentList list;
  list.AddRun(5, a->OpenPeer(b->address()), 0, 100);
  EXPECT_EQ(a->Send(list.all()), 5u);
  EXPECT_EQ(ReceiveSome(*b, 1, 64, 200).size(), 0u) << "they went to another card";
  ASSERT_TRUE(cable_->Run(0, "ip neigh del 198.51.100.2 dev v0"));
  Idle(*a, 5);
  SendAndCheck(*a, *b);
}

TEST_F(XdpReachTest, ANumberThatStandsForAnotherPeerLeadsToThatOne) {
  ASSERT_TRUE(cable_->Introduce());
  const auto a = Xdp(0), b = Udp(1), c = Udp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr && c != nullptr);
  // Nowhere, and then two with the same card.
  const uint32_t number = a->OpenPeer(*ParseLaneAddress("198.51.100.1:9"));
  SegmentList list;
  list.AddRun(20, number, 0, 100);
  a->Send(list.all());
  Idle(*a);
  a->ClosePeer(number);
  for (Lane* peer : {b.get(), c.get()}) {
    ASSERT_EQ(a->OpenPeer(peer->address()), number);
    SendAndCheck(*a, *peer, list);
    a->ClosePeer(number);
  }
  EXPECT_EQ(a->counters().tx_drops, 0u);
}

TEST_F(XdpReachTest, WhatIsSentBeforeTheNeighbourAnswersArrives) {
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  ASSERT_TRUE(cable_->Run(0, "ip neigh flush dev v0") && cable_->Run(1, "ip neigh flush dev v0"));
  SegmentList list;
  list.AddRun(30, a->OpenPeer(b->address()), 3, 1200);
  EXPECT_EQ(a->Send(list.all()), 30u);
  EXPECT_EQ(ReceiveSome(*b, 30).size(), 30u);
}

TEST_F(XdpReachTest, ByAGateway) {
  ASSERT_TRUE(cable_->Run(0, "ip route add 203.0.113.0/24 via 198.51.100.2"));
  ASSERT_TRUE(cable_->Run(1, "ip addr add 203.0.113.1/32 dev v0"));
  const auto a = Xdp(0), b = Udp(1, "203.0.113.1:0");
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const uint32_t peer = a->OpenPeer(b->address());  // so that its next hop is kept
  SendAndCheck(*a, *b, 100);
  SendAndCheck(*b, *a, 100);
  EXPECT_FALSE(cable_->Run(0, "ip neigh show | grep -q '^203.0.113.1 '")) << "nobody asked for it on the cable";
  // Once the gateway is known, nothing leaves by the kernel's sockets.
  const std::string sent = "awk '/^Udp: [0-9]/ {print $5}' /proc/net/snmp";
  const std::string kept = testing::TempDir() + "paceline_sent_" + std::to_string(getpid());
  ASSERT_TRUE(cable_->Run(0, sent + " > " + kept));
  SendAndCheck(*a, *b, 100);
  EXPECT_TRUE(cable_->Run(0, "test $(" + sent + ") -eq $(cat " + kept + ")"));
  std::remove(kept.c_str());
  a->ClosePeer(peer);
}

TEST_F(XdpReachTest, WhereTheInterfaceDoesNotLeadIsDroppedAndCounted) {
  const auto a = Xdp(0);
  ASSERT_NE(a, nullptr);
  const auto own = ParseLaneAddress("198.51.100.1:9");
  SegmentList list;
  list.AddRun(4, a->OpenPeer(*own), 0, 100);
  EXPECT_EQ(a->Send(list.all()), 4u);
  EXPECT_EQ(a->counters().tx_drops, 0u) << "the kernel has not been asked yet";
  Idle(*a);
  EXPECT_EQ(a->Send(list.all()), 4u);
  EXPECT_EQ(a->counters().tx_drops, 4u);
  EXPECT_EQ(a->OpenPeer(*ParseLaneAddress("[fd00::2]:9")), 0u) << "of the other IP version";
  EXPECT_EQ(a->OpenPeer(LaneAddress{}), 0u);
}

TEST_F(XdpReachTest, ANeighbourThatIsNotThereHoldsUpNobody) {
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  SegmentList list;
  list.AddRun(2000, a->OpenPeer(*ParseLaneAddress("198.51.100.77:9")), 0, 1000);
  size_t sent = 0;
  while (sent < list.size()) {
    const size_t taken = a->Send(list.all().subspan(sent));
    ASSERT_GT(taken, 0u);
    sent += taken;
  }
  SendAndCheck(*a, *b, 100);
}

// The kernel may hold packets until it has found the neighbour again; what was sent after them says that they have
// come.
void DrainWhatWasSentBefore(Lane& from, Lane& to) {
  constexpr size_t kProbeBytes = 7;
  SegmentList probe;
  probe.Add(from.OpenPeer(to.address()), 0, kProbeBytes);
  std::array<RxSegment, 8> out;
  bool seen = false;
  for (int tries = 0; tries < 200 && !seen; ++tries) {
    from.Receive(out, MonotonicNow());
    ASSERT_EQ(from.Send(probe.all()), 1u);
    for (const ReceivedSegment& segment : ReceiveSome(to, 10'000, 64, 50)) seen |= segment.bytes.size() == kProbeBytes;
  }
  ReceiveSome(to, 10'000, 64, 200);  // probes
}

TEST_F(XdpReachTest, TheLinkGoesDownAndComesBack) {
  ASSERT_TRUE(cable_->Introduce());
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  SendAndCheck(*a, *b);
  EXPECT_TRUE(a->status().up);
  for (const size_t side :
       {size_t{1}, size_t{0}}) {  // the far end, which leaves the tables as they are, and the own one
    ASSERT_TRUE(cable_->Run(side, "ip link set v0 down"));
    EXPECT_TRUE(WaitFor(*a, false)) << "side " << side;
    SegmentList list;
    list.AddRun(3000, a->OpenPeer(b->address()), 0, 1000);
    const uint64_t drops = a->counters().tx_drops;
    for (size_t sent = 0; sent < list.size();) {
      const size_t taken = a->Send(list.all().subspan(sent, 100));
      ASSERT_GT(taken, 0u) << "what cannot leave is dropped, and blocks nothing";
      sent += taken;
    }
    EXPECT_EQ(a->counters().tx_drops - drops, list.size());
    EXPECT_GT(a->room(), 0u);
    EXPECT_TRUE(a->PrepareToWait());
    ASSERT_TRUE(cable_->Run(side, "ip link set v0 up"));
    EXPECT_TRUE(WaitFor(*a, true)) << "side " << side;
    EXPECT_TRUE(WaitFor(*b, true)) << "side " << side;
    DrainWhatWasSentBefore(*a, *b);
    SendAndCheck(*a, *b);
    SendAndCheck(*b, *a);
  }
}

}  // namespace
}  // namespace paceline
