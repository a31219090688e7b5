// The lane over net_af_packet, on a virtual cable between two network namespaces: what the interface and the driver's
// frames carry. Skipped with the reason where that cannot be.
#include <gmock/gmock.h>

#include <set>

#include "tests/support/cabled_namespaces.h"
#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

class DpdkAfPacketTest : public DpdkTest {
 protected:
  void SetUp() override {
    if (!cable_.why_not().empty()) GTEST_SKIP() << cable_.why_not();
  }
  void SetMtu(uint32_t mtu) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      ASSERT_TRUE(cable_.Run(side, absl::StrCat("ip link set v0 mtu ", mtu)));
    }
  }
  absl::StatusOr<std::unique_ptr<Lane>> Try(size_t side, const std::string& arguments, uint32_t mtu) {
    static int made = 0;
    DpdkLaneOptions options;
    options.devices = {
        absl::StrCat("net_af_packet", made++, ",iface=v0", arguments, ",address=192.0.2.", side + 1, "/24")};
    options.mtu = mtu;
    cable_.Enter(side);
    auto lanes = OpenDpdkLanes(options);
    cable_.Leave();
    if (!lanes.ok()) return lanes.status();
    return std::move(lanes->front());
  }
  // The number by which `a` knows `b`, when it has found it.
  static uint32_t Introduce(Lane& a, Lane& b) {
    const uint32_t peer = a.OpenPeer(b.address());
    std::array<RxSegment, 64> out;
    for (int i = 0; i < 2000 && a.RoomTo(peer) == 0; ++i) {
      for (Lane* lane : {&a, &b}) lane->Receive(out, MonotonicNow());
      usleep(1000);
    }
    return peer;
  }
  // Packets of up to the largest size arrive as they were sent.
  void ExpectLargest(uint32_t mtu, const std::string& arguments = "") {
    const auto a = Try(0, arguments, 0), b = Try(1, arguments, 0);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    EXPECT_EQ((*a)->capabilities().max_packet_bytes, mtu - 28);
    const uint32_t peer = Introduce(**a, **b);
    SegmentList list;
    for (uint32_t bytes = mtu - 28 - 20; bytes <= mtu - 28; ++bytes) list.Add(peer, 0, bytes);
    ASSERT_EQ((*a)->Send(list.all()), list.size());
    const auto got = ReceiveSome(**b, list.size());
    ASSERT_EQ(got.size(), list.size());
    for (size_t i = 0; i < list.size(); ++i) EXPECT_TRUE(got[i].bytes == list.contents(i)) << i;
  }

  CabledNamespaces cable_;
};

TEST_F(DpdkAfPacketTest, PacketsAreAsLargeAsTheInterfaceTakesThem) {
  SetMtu(1280);
  ExpectLargest(1280);
  ExpectLargest(1280, ",framesz=4096");
  EXPECT_THAT(std::string(Try(0, "", 1281).status().message()),
              HasSubstr("mtu 1281: may be 576 to 1280, or 0 for the port's own (1280; interface v0 has 1280, "
                        "framesz=2048 carries 1968)"));
}

TEST_F(DpdkAfPacketTest, AndAsTheFramesOfTheRingHoldThem) {
  SetMtu(9000);
  ExpectLargest(1968);
  ExpectLargest(4016, ",framesz=4096");
  EXPECT_THAT(std::string(Try(0, "", 1969).status().message()), HasSubstr("may be 576 to 1968"));
}

// The kernel spreads over all queues that the driver has made, whether they are taken or not.
TEST_F(DpdkAfPacketTest, AllQueuesOfThePortAreReceivedFrom) {
  for (const char* arguments : {",qpairs=4", ",queues=4"}) {
    const auto a = Try(0, arguments, 0), b = Try(1, arguments, 0);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    const uint32_t peer = Introduce(**a, **b);
    SegmentList list;
    for (uint16_t entropy = 0; entropy < 64; ++entropy) list.Add(peer, entropy, 1000);
    ASSERT_EQ((*a)->Send(list.all()), list.size());
    const auto got = ReceiveSome(**b, list.size());
    std::set<std::string> sent, arrived;
    for (size_t i = 0; i < list.size(); ++i) sent.insert(list.contents(i));
    for (const auto& segment : got) arrived.insert(segment.bytes);
    EXPECT_TRUE(arrived == sent) << arguments << ": " << got.size();
  }
}

}  // namespace
}  // namespace paceline
