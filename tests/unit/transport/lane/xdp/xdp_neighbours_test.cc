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
  XdpNeighbour Neighbour(const XdpHop& hop) override { return neighbours[hop.address[3]]; }
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
  bool lost = false;
};

class XdpNeighboursTest : public ::testing::Test {
 protected:
  FakeTables tables_;
  XdpNeighbours neighbours_{&tables_};
  Time now_ = Time::FromNanos(1'000'000'000);
};

TEST_F(XdpNeighboursTest, AKnownNeighbourIsAskedForOnceASecond) {
  tables_.routes[2] = 2;
  tables_.neighbours[2] = {true, false, Mac(2)};
  for (int i = 0; i < 1000; ++i) {
    const auto answer = neighbours_.Find(7, Peer(2), now_ + Duration::Micros(i));
    ASSERT_EQ(answer.way, Way::kDirect);
    ASSERT_TRUE(answer.mac == Mac(2));
  }
  EXPECT_EQ(tables_.routes_asked, 1);
  EXPECT_TRUE(tables_.probed.empty());
  neighbours_.Find(7, Peer(2), now_ + XdpNeighbours::kRefresh);
  EXPECT_EQ(tables_.routes_asked, 2);
}

TEST_F(XdpNeighboursTest, AnUnknownOneIsLookedForAndTheKernelsNewsCountsAtOnce) {
  tables_.routes[2] = 2;
  EXPECT_EQ(neighbours_.Find(1, Peer(2), now_).way, Way::kResolving);
  EXPECT_EQ(tables_.probed, std::vector<uint8_t>{2});
  EXPECT_EQ(neighbours_.Find(1, Peer(2), now_).way, Way::kResolving);
  EXPECT_EQ(tables_.probed.size(), 1u) << "not for each packet";
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

TEST_F(XdpNeighboursTest, AStaleOneIsUsedAndProbed) {
  tables_.routes[2] = 2;
  tables_.neighbours[2] = {true, true, Mac(2)};
  EXPECT_EQ(neighbours_.Find(1, Peer(2), now_).way, Way::kDirect);
  EXPECT_EQ(tables_.probed, std::vector<uint8_t>{2});
}

TEST_F(XdpNeighboursTest, PeersBehindOneGatewayShareIt) {
  tables_.routes = {{2, 1}, {3, 1}};
  tables_.neighbours[1] = {true, false, Mac(1)};
  EXPECT_TRUE(neighbours_.Find(1, Peer(2), now_).mac == Mac(1));
  EXPECT_TRUE(neighbours_.Find(2, Peer(3), now_).mac == Mac(1));
  EXPECT_EQ(neighbours_.hop_count(), 1u);
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
  EXPECT_TRUE(neighbours_.Find(1, Peer(2), now_).mac == Mac(1));
  tables_.routes[2] = 4;
  EXPECT_TRUE(neighbours_.Find(1, Peer(2), now_ + XdpNeighbours::kRefresh).mac == Mac(4));
  EXPECT_EQ(neighbours_.hop_count(), 1u);
  tables_.routes.clear();
  EXPECT_EQ(neighbours_.Find(1, Peer(2), now_ + XdpNeighbours::kRefresh * 2).way, Way::kNone);
  EXPECT_EQ(neighbours_.hop_count(), 0u);
}

TEST_F(XdpNeighboursTest, WithoutARouteItIsAskedAgainSoonButNotForEachPacket) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(neighbours_.Find(1, Peer(2), now_).way, Way::kNone);
  EXPECT_EQ(tables_.routes_asked, 1);
  tables_.routes[2] = 2;
  tables_.neighbours[2] = {true, false, Mac(2)};
  EXPECT_EQ(neighbours_.Find(1, Peer(2), now_ + XdpNeighbours::kRetry).way, Way::kDirect);
}

TEST_F(XdpNeighboursTest, ANumberThatWasForgottenMayStandForAnother) {
  tables_.routes = {{2, 2}, {3, 3}};
  tables_.neighbours[2] = {true, false, Mac(2)};
  tables_.neighbours[3] = {true, false, Mac(3)};
  EXPECT_TRUE(neighbours_.Find(1, Peer(2), now_).mac == Mac(2));
  neighbours_.Forget(1);
  neighbours_.Forget(99);
  EXPECT_TRUE(neighbours_.Find(1, Peer(3), now_).mac == Mac(3));
}

TEST_F(XdpNeighboursTest, WhenNewsWasLostAllIsAskedAgain) {
  tables_.routes[2] = 2;
  tables_.neighbours[2] = {true, false, Mac(2)};
  neighbours_.Find(1, Peer(2), now_);
  tables_.neighbours[2].mac = Mac(5);
  tables_.lost = true;
  neighbours_.Poll();
  EXPECT_TRUE(neighbours_.Find(1, Peer(2), now_).mac == Mac(5));
}

}  // namespace
}  // namespace paceline
