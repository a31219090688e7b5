// Lanes with several queues: which one a path leaves by, that all are received from, and ports that have fewer.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

constexpr uint16_t kQueues = 4;

// A lane with four queues, and a port of DPDK alone at the other end, whose address the lane knows.
class DpdkQueuesTest : public DpdkTest {
 protected:
  void Start(unsigned ring_entries = 1024) {
    const RingPair ports = RingPair::Make(ring_entries, kQueues);
    lane_ = MakeLane(ports.a + ",address=192.0.2.1");
    ASSERT_TRUE(lane_ != nullptr);
    other_ = std::make_unique<BarePort>(ports.b, kQueues);
    peer_ = lane_->OpenPeer(ToLaneAddress(IpVersion::kV4, {192, 0, 2, 2}, 777));
  }

  std::unique_ptr<BarePort> other_;
  std::unique_ptr<Lane> lane_;
  uint32_t peer_ = 0;
  std::array<RxSegment, 64> out_;
};

TEST_F(DpdkQueuesTest, APathAlwaysLeavesByTheSameQueueAndAllAreUsed) {
  Start();
  SegmentList list;
  // Some wait for the neighbour to be known, the others come after.
  for (uint16_t i = 0; i < 20; ++i) list.Add(peer_, static_cast<uint16_t>(i % 10), 100);
  ASSERT_EQ(lane_->Send(list.all()), list.size());
  Introduce(*lane_, *other_);
  ASSERT_EQ(lane_->Send(list.all()), list.size());
  std::map<uint16_t, std::vector<std::string>> arrived;  // by source port
  std::map<uint16_t, std::set<uint16_t>> queues_of;
  for (uint16_t queue = 0; queue < kQueues; ++queue) {
    const auto frames = other_->Receive(queue);
    EXPECT_GE(frames.size(), 8u) << queue;
    for (const auto& frame : frames) {
      const auto parsed = ParseFrame(frame, true);
      ASSERT_TRUE(parsed);
      queues_of[parsed->flow.source_port].insert(queue);
      arrived[parsed->flow.source_port].emplace_back(parsed->payload.begin(), parsed->payload.end());
    }
  }
  ASSERT_EQ(arrived.size(), 10u);
  for (uint16_t entropy = 0; entropy < 10; ++entropy) {
    const auto port = static_cast<uint16_t>(DpdkDevice::kDefaultUdpPort + entropy);
    EXPECT_EQ(queues_of[port].size(), 1u) << entropy;
    const std::string first = list.contents(entropy), second = list.contents(size_t{entropy} + 10);
    EXPECT_EQ(arrived[port], (std::vector<std::string>{first, second, first, second})) << entropy;
  }
}

TEST_F(DpdkQueuesTest, AFullQueueStopsWhatIsBehindAndNothingLeavesTwice) {
  Start(8);
  Introduce(*lane_, *other_);
  SegmentList list;
  for (const uint16_t entropy : {0, 1, 0, 2}) list.AddRun(4, peer_, entropy, 100);
  const size_t taken = lane_->Send(list.all());
  EXPECT_EQ(taken, 11u) << "a ring of 8 has room for 7";
  EXPECT_EQ(other_->Receive(0).size(), 7u);
  EXPECT_EQ(other_->Receive(1).size(), 4u);
  EXPECT_EQ(other_->Receive(2).size(), 0u);
  EXPECT_EQ(lane_->Send(list.all().subspan(taken)), list.size() - taken);
  EXPECT_EQ(other_->Receive(0).size(), 1u);
  EXPECT_EQ(other_->Receive(2).size(), 4u);
  EXPECT_EQ(lane_->counters().tx_packets, list.size());
  EXPECT_EQ(lane_->counters().tx_drops, 0u);
}

TEST_F(DpdkQueuesTest, AllQueuesAreReceivedFromAndNoneKeepsOthersWaiting) {
  Start();
  FrameFlow flow;
  flow.source_mac = {{0x02, 0, 0, 0, 0, 0x77}};
  Introduce(*lane_, *other_);
  SegmentList list;
  list.Add(peer_, 0, 10);
  ASSERT_EQ(lane_->Send(list.all()), 1u);
  const auto sent = other_->Receive(0);
  ASSERT_EQ(sent.size(), 1u);
  FrameFlow back = ParseFrame(sent[0], true)->flow;
  std::swap(back.source_mac, back.destination_mac);
  std::swap(back.source, back.destination);
  std::swap(back.source_port, back.destination_port);
  // A little on each: one call takes all.
  for (uint16_t queue = 0; queue < kQueues; ++queue) {
    for (int i = 0; i < 3; ++i) other_->Send(back, 50, queue);
  }
  EXPECT_EQ(lane_->Receive(out_, MonotonicNow()), 12u);
  EXPECT_EQ(lane_->Receive(out_, MonotonicNow()), 0u);
  // One queue that is always full: who waits on another has his turn soon.
  for (uint16_t queue = 0; queue < 2; ++queue) {
    back.source_port = static_cast<uint16_t>(1000 + queue);
    for (int i = 0; i < 100; ++i) other_->Send(back, 50, queue);
  }
  back.source_port = 2000;
  other_->Send(back, 50, 2);
  int calls = 0;
  for (bool seen = false; !seen && calls < 10; ++calls) {
    const size_t count = lane_->Receive(out_, MonotonicNow());
    for (size_t i = 0; i < count; ++i) {
      seen |= *out_[i].source == ToLaneAddress(back.version, back.source, back.source_port);
    }
  }
  EXPECT_LE(calls, kQueues);
  for (size_t rest = 0; (rest = lane_->Receive(out_, MonotonicNow())) > 0;) {
  }
  EXPECT_EQ(lane_->counters().rx_packets, 12u + 201u);
}

// The driver has no hash to try it with, but keeps what it was asked for.
TEST_F(DpdkQueuesTest, APortThatCanIsAskedToSpreadUdp) {
  const std::pair<const char*, uint64_t> cases[] = {{"192.0.2.1", RTE_ETH_RSS_NONFRAG_IPV4_UDP},
                                                    {"fd00::1", RTE_ETH_RSS_NONFRAG_IPV6_UDP}};
  int number = 20;
  for (const auto& [address, hash] : cases) {
    const std::string name = absl::StrCat("net_null", number++);
    const auto lane = MakeLane(absl::StrCat(name, ",queues=4,address=", address));
    ASSERT_TRUE(lane != nullptr);
    uint16_t id = 0;
    ASSERT_EQ(rte_eth_dev_get_port_by_name(name.c_str(), &id), 0);
    rte_eth_dev_info info{};
    ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
    EXPECT_EQ(info.nb_rx_queues, 4);
    EXPECT_EQ(info.nb_tx_queues, 4);
    rte_eth_conf conf{};
    ASSERT_EQ(rte_eth_dev_conf_get(id, &conf), 0);
    EXPECT_EQ(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
    EXPECT_EQ(conf.rx_adv_conf.rss_conf.rss_hf, hash);
  }
}

TEST_F(DpdkQueuesTest, FewerThanAskedForIsSaid) {
  const RingPair ports = RingPair::Make(1024, 2);
  ::testing::internal::CaptureStderr();
  const auto lane = MakeLane(ports.a + ",queues=3,address=192.0.2.1");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("192.0.2.1:49152: 2 queues to receive and 2 to send, not 3: the port has 2 to receive"));
  ASSERT_TRUE(lane != nullptr);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(MakeLane(ports.b + ",queues=2,address=192.0.2.2") != nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace paceline
