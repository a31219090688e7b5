#include "transport/lane/xdp/xdp_neighbours.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace paceline {
namespace {

using Way = XdpNeighbours::Way;

SocketAddress Peer(uint8_t last) {
  SocketAddress address;
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr.s_addr = htonl(0xc6336400u + last);
  address.size = sizeof(sockaddr_in);
  return address;
}
XdpHop HopOf(uint8_t last) { return {IpVersion::kV4, {198, 51, 100, last}}; }
MacAddress Mac(uint8_t last) { return {{2, 0, 0, 0, 0, last}}; }

// Tables that a test fills in.
class FakeTables final : public XdpTables {
 public:
  std::optional<XdpHop> NextHop(const SocketAddress& to) override {
    ++routes_asked;
    const auto last = static_cast<uint8_t>(ntohl(to.v4.sin_addr.s_addr));
    const auto entry = routes.find(last);
    if (entry == routes.end()) return std::nullopt;
    return HopOf(entry->second);
  }
  XdpNeighbour Neighbour(const XdpHop& hop) override {
    ++neighbours_asked;
    return neighbours[hop.address[3]];
  }
  void Probe(const XdpHop& hop) override { probed.push_back(hop.address[3]); }
  bool Poll(const News& news) override {
    for (const auto& [last, neighbour] : pending) news(HopOf(last), neighbour);
    pending.clear();
    return !std::exchange(lost, false);
  }
  int descriptor() const override { return -1; }

  std::map<uint8_t, uint8_t> routes;  // peer -> next hop, by their last bytes
  std::map<uint8_t, XdpNeighbour> neighbours;
  std::map<uint8_t, XdpNeighbour> pending;
  std::vector<uint8_t> probed;
  int routes_asked = 0;
  int neighbours_asked = 0;
  bool lost = false;
};

class XdpNeighboursTest : public ::testing::Test {
 protected:
  // As a lane whose next pass comes between two packets.
  XdpNeighbours::Answer FindAfterAPass(uint32_t peer, const SocketAddress& to, Time now) {
    neighbours_.Find(peer, to, now);
    neighbours_.Ask(now);
    return neighbours_.Find(peer, to, now);
  }

  FakeTables tables_;
  XdpNeighbours neighbours_{&tables_};
  Time now_ = Time::FromNanos(1'000'000'000);
};

TEST_F(XdpNeighboursTest, SendingAsksNobodyAndUntilTheNextPassTheKernelSends) {
  tables_.routes[2] = 2;
  tables_.neighbours[2] = {true, false, Mac(2)};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(neighbours_.Find(7, Peer(2), now_).way, Way::kResolving);
  EXPECT_EQ(tables_.routes_asked, 0);
  neighbours_.Ask(now_);
  EXPECT_EQ(neighbours_.Find(7, Peer(2), now_).way, Way::kDirect);
  EXPECT_EQ(tables_.routes_asked, 1);
}

TEST_F(XdpNeighboursTest, AKnownNeighbourIsAskedForOnceASecond) {
  tables_.routes[2] = 2;
  tables_.neighbours[2] = {true, false, Mac(2)};
  for (int i = 0; i < 1000; ++i) {
    const auto answer = FindAfterAPass(7, Peer(2), now_ + Duration::Micros(i));
    ASSERT_EQ(answer.way, Way::kDirect);
    ASSERT_TRUE(answer.mac == Mac(2));
  }
  EXPECT_EQ(tables_.routes_asked, 1);
  EXPECT_TRUE(tables_.probed.empty());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(neighbours_.Find(7, Peer(2), now_ + XdpNeighbours::kRefresh).way, Way::kDirect) << "serves meanwhile";
  }
  EXPECT_EQ(tables_.routes_asked, 1);
  neighbours_.Ask(now_ + XdpNeighbours::kRefresh);
  EXPECT_EQ(tables_.routes_asked, 2);
  EXPECT_EQ(tables_.neighbours_asked, 1) << "of neighbours there is news";
}

TEST_F(XdpNeighboursTest, APassAsksAboutAFewPeersInTheirOrder) {
  constexpr auto kMost = static_cast<uint8_t>(XdpNeighbours::kMostAsks);
  constexpr uint8_t kPeers = 2 * kMost + 1;
  for (uint8_t i = 0; i < kPeers; ++i) {
    tables_.routes[i] = i;
    tables_.neighbours[i] = {true, false, Mac(i)};
    neighbours_.Find(i, Peer(i), now_);
  }
  neighbours_.Forget(1);  // costs the others nothing
  for (const uint8_t known : {uint8_t{kMost + 1}, uint8_t{kPeers}}) {
    neighbours_.Ask(now_);
    for (uint8_t i = 0; i < kPeers; ++i) {
      const Way expected = i != 1 && i < known ? Way::kDirect : Way::kResolving;
      if (i != 1) {
        EXPECT_EQ(neighbours_.Find(i, Peer(i), now_).way, expected) << int{i};
      }
    }
  }
  EXPECT_EQ(tables_.routes_asked, kPeers - 1);
}

TEST_F(XdpNeighboursTest, OneThatWasForgottenWhileItWaitedMayComeBack) {
  tables_.routes = {{2, 2}, {3, 3}};
  tables_.neighbours[2] = {true, false, Mac(2)};
  tables_.neighbours[3] = {true, false, Mac(3)};
  for (int i = 0; i < 3; ++i) {
    neighbours_.Find(1, Peer(2), now_);
    neighbours_.Find(4, Peer(2), now_);
    neighbours_.Forget(1);
  }
  EXPECT_TRUE(FindAfterAPass(1, Peer(3), now_).mac == Mac(3));
  EXPECT_TRUE(neighbours_.Find(4, Peer(2), now_).mac == Mac(2));
  EXPECT_EQ(tables_.routes_asked, 2);
}

TEST_F(XdpNeighboursTest, AnUnknownOneIsLeftToTheKernelWhoseNewsCountsAtOnce) {
  tables_.routes[2] = 2;
  EXPECT_EQ(FindAfterAPass(1, Peer(2), now_).way, Way::kResolving);
  neighbours_.Ask(now_);
  EXPECT_EQ(neighbours_.Find(1, Peer(2), now_).way, Way::kResolving);
  EXPECT_EQ(tables_.neighbours_asked, 1) << "not for each packet";
  EXPECT_TRUE(tables_.probed.empty()) << "the packets that the kernel sends make it look";
  tables_.pending[2] = {true, false, Mac(9)};
  tables_.pending[3] = {true, false, Mac(3)};  // nobody's
  neighbours_.Poll();
  const auto answer = neighbours_.Find(1, Peer(2), now_);
  EXPECT_EQ(answer.way, Way::kDirect);
  EXPECT_TRUE(answer.mac == Mac(9));
  tables_.pending[2] = {};
  neighbours_.Poll();
  EXPECT_EQ(neighbours_.Find(1, Peer(2), now_).way, Way::kResolving) << "gone again";
}

TEST_F(XdpNeighboursTest, OneThatNobodySaidAnythingOfIsAskedForSoon) {
  tables_.routes[2] = 2;
  EXPECT_EQ(FindAfterAPass(1, Peer(2), now_).way, Way::kResolving);
  tables_.neighbours[2] = {true, false, Mac(2)};
  EXPECT_EQ(FindAfterAPass(1, Peer(2), now_ + XdpNeighbours::kRetry).way, Way::kDirect);
}

TEST_F(XdpNeighboursTest, AStaleOneIsUsedAndProbedOnce) {
  tables_.routes[2] = 2;
  tables_.neighbours[2] = {true, true, Mac(2)};
  EXPECT_EQ(FindAfterAPass(1, Peer(2), now_).way, Way::kDirect);
  EXPECT_EQ(tables_.probed, std::vector<uint8_t>{2});
  Time now = now_ + XdpNeighbours::kRefresh;
  EXPECT_EQ(FindAfterAPass(1, Peer(2), now).way, Way::kDirect);
  EXPECT_EQ(tables_.probed.size(), 1u) << "the kernel is at it";
  tables_.pending[2] = {true, true, Mac(2)};  // after half a minute
  neighbours_.Poll();
  now = now + XdpNeighbours::kRefresh;
  EXPECT_EQ(FindAfterAPass(1, Peer(2), now).way, Way::kDirect);
  EXPECT_EQ(tables_.probed.size(), 2u);
}

TEST_F(XdpNeighboursTest, PeersBehindOneGatewayShareIt) {
  tables_.routes = {{2, 1}, {3, 1}};
  tables_.neighbours[1] = {true, false, Mac(1)};
  EXPECT_TRUE(FindAfterAPass(1, Peer(2), now_).mac == Mac(1));
  EXPECT_TRUE(FindAfterAPass(2, Peer(3), now_).mac == Mac(1));
  EXPECT_EQ(neighbours_.hop_count(), 1u);
  EXPECT_EQ(tables_.neighbours_asked, 1);
  tables_.pending[1] = {true, false, Mac(8)};
  neighbours_.Poll();
  EXPECT_TRUE(neighbours_.Find(1, Peer(2), now_).mac == Mac(8));
  EXPECT_TRUE(neighbours_.Find(2, Peer(3), now_).mac == Mac(8));
  neighbours_.Forget(1);
  EXPECT_EQ(neighbours_.hop_count(), 1u);
  neighbours_.Forget(2);
  EXPECT_EQ(neighbours_.hop_count(), 0u);
}

TEST_F(XdpNeighboursTest, ARouteThatChangesIsFollowed) {
  tables_.routes[2] = 1;
  tables_.neighbours[1] = {true, false, Mac(1)};
  tables_.neighbours[4] = {true, false, Mac(4)};
  EXPECT_TRUE(FindAfterAPass(1, Peer(2), now_).mac == Mac(1));
  tables_.routes[2] = 4;
  EXPECT_TRUE(FindAfterAPass(1, Peer(2), now_ + XdpNeighbours::kRefresh).mac == Mac(4));
  EXPECT_EQ(neighbours_.hop_count(), 1u);
  tables_.routes.clear();
  EXPECT_EQ(FindAfterAPass(1, Peer(2), now_ + XdpNeighbours::kRefresh * 2).way, Way::kNone);
  EXPECT_EQ(neighbours_.hop_count(), 0u);
}

TEST_F(XdpNeighboursTest, WithoutARouteItIsAskedAgainSoonButNotForEachPacket) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(FindAfterAPass(1, Peer(2), now_).way, Way::kNone);
  EXPECT_EQ(tables_.routes_asked, 1);
  tables_.routes[2] = 2;
  tables_.neighbours[2] = {true, false, Mac(2)};
  EXPECT_EQ(FindAfterAPass(1, Peer(2), now_ + XdpNeighbours::kRetry).way, Way::kDirect);
}

TEST_F(XdpNeighboursTest, ANumberThatWasForgottenMayStandForAnother) {
  tables_.routes = {{2, 2}, {3, 3}};
  tables_.neighbours[2] = {true, false, Mac(2)};
  tables_.neighbours[3] = {true, false, Mac(3)};
  EXPECT_TRUE(FindAfterAPass(1, Peer(2), now_).mac == Mac(2));
  neighbours_.Forget(1);
  neighbours_.Forget(99);
  EXPECT_TRUE(FindAfterAPass(1, Peer(3), now_).mac == Mac(3));
}

TEST_F(XdpNeighboursTest, WhenNewsWasLostAllIsAskedAgain) {
  tables_.routes[2] = 2;
  tables_.neighbours[2] = {true, false, Mac(2)};
  FindAfterAPass(1, Peer(2), now_);
  tables_.neighbours[2].mac = Mac(5);
  tables_.lost = true;
  neighbours_.Poll();
  EXPECT_EQ(neighbours_.Find(1, Peer(2), now_).way, Way::kDirect) << "the last that is known serves until then";
  EXPECT_TRUE(FindAfterAPass(1, Peer(2), now_).mac == Mac(5));
}

}  // namespace
}  // namespace paceline
