#include "transport/lane/sim/fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/transport/lane/sim/fabric_helpers.h"
#include "tests/unit/transport/lane/sim/window_host.h"
#include "transport/lane/sim/sim_lane.h"

namespace paceline::sim {
namespace {

TEST(FabricTest, OnePacketTakesTheBaseRtt) {
  FabricConfig config;
  config.topology.kind = TopologyKind::kFatTree;
  config.topology.hosts = 128;
  auto fabric = Build(config);
  WindowHost sender(*fabric, 0, {127}, 1, 1);
  WindowHost receiver(*fabric, 127, {0}, 0, 1);
  fabric->Run(Time::Never());
  EXPECT_EQ(receiver.received(), 1u);
  EXPECT_EQ(receiver.last_received().nanos(), 7997);     // 7996.8, rounded up
  EXPECT_EQ(sender.last_acknowledged().nanos(), 14028);  // 14027.52, rounded up
  EXPECT_EQ(fabric->LongestBaseRtt().nanos(), 14028);
  EXPECT_EQ(fabric->counters().packet_hops, 12u);
}

TEST(FabricTest, CarriesRealBytesIntact) {
  auto fabric = Build(SmallSwitch());
  SimLane& from = fabric->lane(0);
  SimLane& to = fabric->lane(1);
  std::vector<uint8_t> header(40), payload(4000);
  for (size_t i = 0; i < header.size(); ++i) header[i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(i * 7);
  const TxSegment segment = Segment(header, 1, &payload);
  EXPECT_EQ(from.OpenPeer(to.address()), segment.peer);
  EXPECT_EQ(from.Send({&segment, 1}), 1u);
  fabric->Run(Time::Never());
  RxSegment in[4];
  ASSERT_EQ(to.Receive(in, fabric->now()), 1u);
  ASSERT_EQ(in[0].data_bytes, 4040u);
  EXPECT_EQ(in[0].phantom_bytes, 0u);
  EXPECT_EQ(std::vector<uint8_t>(in[0].data, in[0].data + 40), header);
  EXPECT_EQ(std::vector<uint8_t>(in[0].data + 40, in[0].data + 4040), payload);
  EXPECT_EQ(*in[0].source, from.address());
  // 4064 bytes on the wire, twice 1 us.
  EXPECT_EQ(in[0].received_at.nanos(), (2 * (4064 * 80 + 1'000'000) + 999) / 1000);
  EXPECT_EQ(to.Receive(in, fabric->now()), 0u);
  EXPECT_EQ(fabric->packets_in_flight(), 0u);
}

TEST(FabricTest, UnknownPeersAreRefusedOrDropped) {
  auto fabric = Build(SmallSwitch());
  SimLane& lane = fabric->lane(0);
  EXPECT_EQ(lane.OpenPeer(SimLane::AddressOf(4)), 0u);
  EXPECT_EQ(lane.OpenPeer(LaneAddress{}), 0u);
  const std::vector<uint8_t> header(10);
  TxSegment segment = Segment(header, 0);
  segment.peer = 0;
  EXPECT_EQ(lane.Send({&segment, 1}), 1u);
  EXPECT_EQ(lane.counters().tx_drops, 1u);
  fabric->Run(Time::Never());
  EXPECT_EQ(fabric->counters().packet_hops, 0u);
}

TEST(FabricTest, ControlOvertakesDataInTheNic) {
  auto fabric = Build(SmallSwitch());
  SimLane& from = fabric->lane(0);
  const std::vector<uint8_t> first(11), second(12), control(13);
  TxSegment segments[3] = {Segment(first, 1), Segment(second, 1), Segment(control, 1)};
  segments[0].payload_bytes = segments[1].payload_bytes = 4096;
  segments[2].control = true;
  EXPECT_EQ(from.Send(segments), 3u);
  fabric->Run(Time::Never());
  RxSegment in[4];
  ASSERT_EQ(fabric->lane(1).Receive(in, fabric->now()), 3u);
  EXPECT_EQ(in[0].data_bytes, 11u);
  EXPECT_EQ(in[1].data_bytes, 13u);
  EXPECT_EQ(in[2].data_bytes, 12u);
}

TEST(FabricTest, NicTakesFewPacketsAndAsksForMoreWhenHalfIsGone) {
  auto fabric = Build(SmallSwitch());
  SimLane& lane = fabric->lane(0);
  const std::vector<uint8_t> header(10);
  std::vector<TxSegment> segments(10, Segment(header, 1));
  for (TxSegment& segment : segments) segment.payload_bytes = 4096;
  EXPECT_EQ(lane.room(), 4u);
  EXPECT_EQ(lane.Send({segments.data(), 1}), 1u);  // leaves at once
  EXPECT_EQ(lane.room(), 4u);
  EXPECT_EQ(lane.Send(segments), 4u);
  EXPECT_EQ(lane.room(), 0u);
  EXPECT_EQ(lane.Send(segments), 0u);
  struct Recorder : HostDriver {
    std::vector<int64_t> polls;
    Time Poll(Time now) override {
      polls.push_back(now.nanos());
      return Time::Never();
    }
  } recorder;
  fabric->SetDriver(0, &recorder);
  fabric->Run(Time::Never());
  EXPECT_THAT(recorder.polls, testing::ElementsAre(666));  // two packets have left the queue: 2 x 332.8 ns
}

TEST(FabricTest, TimersFireWhenAskedForAndEarlierRequestsWin) {
  auto fabric = Build(SmallSwitch());
  struct Sleeper : HostDriver {
    std::vector<int64_t> polls;
    Time Poll(Time now) override {
      polls.push_back(now.nanos());
      return polls.size() < 4 ? now + Duration::Nanos(100) : Time::Never();
    }
  } sleeper;
  fabric->SetDriver(2, &sleeper);
  fabric->RequestPoll(2, Time::FromNanos(500));
  fabric->RequestPoll(2, Time::FromNanos(50));
  fabric->Run(Time::FromNanos(10'000));
  EXPECT_THAT(sleeper.polls, testing::ElementsAre(50, 150, 250, 350));
}

TEST(FabricTest, DropTailKeepsTheQueueWithinItsLimit) {
  FabricConfig config = SmallSwitch(9);
  config.ecn_max_bytes = 0;
  std::vector<std::unique_ptr<WindowHost>> hosts;
  auto fabric = Blast(config, 20, hosts);
  const FabricCounters& counters = fabric->counters();
  EXPECT_GT(counters.drops, 0u);
  EXPECT_EQ(counters.trims, 0u);
  EXPECT_EQ(counters.ecn_marks, 0u);
  EXPECT_EQ(hosts[0]->received() + counters.drops, 160u);
  EXPECT_EQ(QueueMax(*fabric, true), 178'880u);
  EXPECT_EQ(QueueMax(*fabric, false), 178'880u);
}

TEST(FabricTest, TrimmingDeliversTheHeaderOfEachPacketWithoutRoom) {
  FabricConfig config = SmallSwitch(9);
  config.trimming = true;
  std::vector<std::unique_ptr<WindowHost>> hosts;
  auto fabric = Blast(config, 20, hosts);
  const FabricCounters& counters = fabric->counters();
  EXPECT_GT(counters.trims, 0u);
  EXPECT_EQ(counters.drops, 0u);
  EXPECT_EQ(hosts[0]->cut(), counters.trims);
  EXPECT_EQ(hosts[0]->received() + hosts[0]->cut(), 160u);
}

TEST(FabricTest, MarksRiseWithTheQueue) {
  FabricConfig config = SmallSwitch(5);
  std::vector<std::unique_ptr<WindowHost>> hosts;
  auto fabric = Blast(config, 10, hosts);
  EXPECT_EQ(fabric->counters().drops, 0u);
  EXPECT_GT(fabric->counters().ecn_marks, 3u);
  EXPECT_LT(fabric->counters().ecn_marks, 37u);
  EXPECT_EQ(hosts[0]->marked(), fabric->counters().ecn_marks);
  config.ecn_min_bytes = 0;
  config.ecn_max_bytes = 1;
  hosts.clear();
  fabric = Blast(config, 10, hosts);
  EXPECT_GE(fabric->counters().ecn_marks, 35u);  // whatever leaves something behind
}

TEST(FabricTest, TheMaximumProbabilityScalesMarksBelowTheUpperThresholdOnly) {
  const auto marks = [](uint32_t max_bytes, double probability, uint64_t seed) {
    FabricConfig config = SmallSwitch(9);
    config.queue_bytes = 1'000'000;
    config.ecn_min_bytes = 0;
    config.ecn_max_bytes = max_bytes;
    config.ecn_max_probability = probability;
    config.seed = seed;
    std::vector<std::unique_ptr<WindowHost>> hosts;
    const auto fabric = Blast(config, 20, hosts);
    EXPECT_EQ(fabric->counters().drops, 0u);
    return fabric->counters().ecn_marks;
  };
  uint64_t all = 0, tenth = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    all += marks(1'000'000, 1, seed);
    tenth += marks(1'000'000, 0.1, seed);
  }
  EXPECT_GT(all, 20u * 160 / 5);  // the queue reaches 600 KB: 0.3 in the mean
  EXPECT_GT(tenth, all / 20);
  EXPECT_LT(tenth, all / 5);
  EXPECT_GE(marks(1, 0.1, 1), 150u);
}

TEST(FabricTest, QueueQuantileOverTime) {
  FabricConfig config = SmallSwitch(9);
  std::vector<std::unique_ptr<WindowHost>> hosts;
  auto fabric = Blast(config, 5, hosts);  // 40 packets: the queue falls from about 35 packets in a straight line
  const uint32_t largest = QueueMax(*fabric, true);
  EXPECT_GT(largest, 30u * 4160);
  EXPECT_GT(QueueQuantile(*fabric, 0.99), largest * 9 / 10);
  EXPECT_LE(QueueQuantile(*fabric, 0.99), largest);
  EXPECT_LT(QueueQuantile(*fabric, 0.5), largest * 7 / 10);
}

TEST(FabricTest, LossIsCountedAndFollowsItsProbability) {
  FabricConfig config = SmallSwitch(2);
  config.faults = {Fault{.kind = FaultKind::kLoss, .probability = 0.1, .target = "host:1/nic:0"}};
  auto fabric = Build(config);
  WindowHost sender(*fabric, 0, {1}, 5000, 5000), receiver(*fabric, 1, {0}, 0, 1);
  fabric->Run(Time::Never());
  EXPECT_NEAR(static_cast<double>(receiver.received()), 4500, 110);
  EXPECT_EQ(fabric->counters().fault_losses, 5000 - receiver.received() + receiver.received() - sender.acknowledged());
  EXPECT_EQ(fabric->counters().drops, 0u);
}

TEST(FabricTest, DuplicatesArriveTwice) {
  FabricConfig config = SmallSwitch(2);
  config.faults = {Fault{.kind = FaultKind::kDuplicate, .probability = 1, .target = "host:1/nic:0"}};
  auto fabric = Build(config);
  SimLane& to = fabric->lane(1);
  const std::vector<uint8_t> header(10, 5), payload(100, 6);
  const TxSegment segment = Segment(header, 1, &payload);
  fabric->lane(0).Send({&segment, 1});
  fabric->Run(Time::Never());
  RxSegment in[4];
  ASSERT_EQ(to.Receive(in, fabric->now()), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(std::string(in[i].data, in[i].data + 10), std::string(10, 5));
    EXPECT_EQ(std::string(in[i].data + 10, in[i].data + 110), std::string(100, 6));
  }
}

TEST(FabricTest, ReorderingLetsOthersOvertake) {
  FabricConfig config = SmallSwitch(2);
  config.faults = {
      Fault{.kind = FaultKind::kReorder, .probability = 0.3, .delay = 5'000'000, .target = "host:1/nic:0"}};
  auto fabric = Build(config);
  for (uint16_t i = 1; i <= 5; ++i) {
    const std::vector<uint8_t> header(i);
    const TxSegment segment = Segment(header, 1);
    ASSERT_EQ(fabric->lane(0).Send({&segment, 1}), 1u);
    fabric->Run(fabric->now() + Duration::Nanos(100));
  }
  WindowHost sender(*fabric, 0, {1}, 1000, 1000), receiver(*fabric, 1, {0}, 0, 1);
  fabric->Run(Time::Never());
  EXPECT_EQ(receiver.received(), 1000u);
  EXPECT_GT(fabric->counters().fault_reorders, 300u);
}

TEST(FabricTest, CorruptionTurnsOneBitOrDrops) {
  FabricConfig config = SmallSwitch(2);
  config.faults = {Fault{.kind = FaultKind::kCorrupt, .probability = 1, .target = "host:1/nic:0"}};
  const std::vector<uint8_t> header(10), payload(100);
  const TxSegment segment = Segment(header, 1, &payload);
  for (bool deliver : {false, true}) {
    config.deliver_corrupted = deliver;
    auto fabric = Build(config);
    fabric->lane(0).Send({&segment, 1});
    fabric->Run(Time::Never());
    RxSegment in[2];
    ASSERT_EQ(fabric->lane(1).Receive(in, fabric->now()), deliver ? 1u : 0u);
    EXPECT_EQ(fabric->counters().fault_corruptions, 1u);
    EXPECT_EQ(fabric->counters().fault_losses, deliver ? 0u : 1u);
    int bits = 0;
    for (uint32_t i = 0; deliver && i < in[0].data_bytes; ++i) bits += std::popcount(in[0].data[i]);
    EXPECT_EQ(bits, deliver ? 1 : 0);
  }
}

TEST(FabricTest, LinkDownLosesEverythingUntilItIsUpAgain) {
  FabricConfig config = SmallSwitch(2);
  config.faults = {
      Fault{.kind = FaultKind::kNicDown, .at = 100'000'000, .until = 200'000'000, .target = "host:0/nic:0"}};
  auto fabric = Build(config);
  const std::vector<uint8_t> header(10);
  const TxSegment segment = Segment(header, 1);
  uint64_t arrived[3];
  for (int i = 0; i < 3; ++i) {
    fabric->lane(0).Send({&segment, 1});
    EXPECT_EQ(fabric->lane(0).status().up, i != 1);
    EXPECT_EQ(fabric->lane(0).status().change_count, static_cast<uint32_t>(i));
    fabric->Run(Time::FromNanos(110'000 + 100'000 * i));
    RxSegment in[2];
    arrived[i] = fabric->lane(1).Receive(in, fabric->now());
  }
  EXPECT_THAT(arrived, testing::ElementsAre(1, 0, 1));
  EXPECT_EQ(fabric->counters().fault_losses, 1u);
}

TEST(FabricTest, SlowLinkTakesLonger) {
  FabricConfig config = SmallSwitch(2);
  config.faults = {Fault{.kind = FaultKind::kLinkSlow, .fraction = 0.25, .target = "host:1/nic:0"}};
  auto fabric = Build(config);
  WindowHost sender(*fabric, 0, {1}, 40, 40), receiver(*fabric, 1, {0}, 0, 1);
  fabric->Run(Time::Never());
  EXPECT_EQ(receiver.last_received().nanos(), (332'800 + 2'000'000 + 40 * 4 * 332'800 + 999) / 1000);
}

TEST(FabricTest, TelemetryIsOfEverySwitchPortOnTheWayAndOnlyForThoseWhoAsk) {
  FabricConfig config;
  config.topology.kind = TopologyKind::kFatTree;
  config.topology.hosts = 32;
  auto fabric = Build(config);
  SimLane& from = fabric->lane(0);
  ASSERT_TRUE(from.capabilities().telemetry);
  const std::vector<uint8_t> header(40);
  TxSegment segments[3] = {Segment(header, 31), Segment(header, 31), Segment(header, 31)};
  for (TxSegment& segment : segments) segment.payload_bytes = 4096;
  segments[0].telemetry = segments[2].telemetry = true;
  ASSERT_EQ(from.Send(segments), 3u);
  fabric->Run(Time::Never());
  RxSegment in[4];
  ASSERT_EQ(fabric->lane(31).Receive(in, fabric->now()), 3u);
  EXPECT_TRUE(in[1].telemetry.empty());
  ASSERT_EQ(in[0].telemetry.size(), 5u);  // ToR, aggregation, core, aggregation, ToR; not the NIC
  ASSERT_EQ(in[2].telemetry.size(), 5u);
  const SwitchInfo& tor = fabric->topology().switches()[0];
  EXPECT_GE(in[0].telemetry[0].link, tor.first_up_port);
  EXPECT_LT(in[0].telemetry[0].link, tor.first_up_port + tor.up_ports);
  EXPECT_TRUE(fabric->IsLastHop(in[0].telemetry[4].link));
  for (size_t hop = 0; hop < 5; ++hop) {
    const HopTelemetry &first = in[0].telemetry[hop], &third = in[2].telemetry[hop];
    EXPECT_EQ(first.link, third.link);  // of one path
    EXPECT_EQ(first.rate.gbps(), 100);
    EXPECT_EQ(first.sent_bytes, 4160u);
    EXPECT_EQ(third.sent_bytes, 3 * 4160u);
    EXPECT_EQ(first.queue_bytes, 0u);
    EXPECT_NEAR(third.time_nanos - first.time_nanos, 2 * 332.8, 1);
  }
}

TEST(FabricTest, TelemetryShowsWhatWaitsBehindThePacket) {
  auto fabric = Build(SmallSwitch());
  const std::vector<uint8_t> header(40);
  for (uint32_t host = 1; host < 4; ++host) {
    TxSegment segment = Segment(header, 0);
    segment.payload_bytes = 4096;
    segment.telemetry = true;
    fabric->lane(host).Send({&segment, 1});
  }
  fabric->Run(Time::Never());
  RxSegment in[4];
  ASSERT_EQ(fabric->lane(0).Receive(in, fabric->now()), 3u);
  // The first leaves at once, before the others have come; behind the second the third waits.
  EXPECT_EQ(in[0].telemetry[0].queue_bytes, 0u);
  EXPECT_EQ(in[1].telemetry[0].queue_bytes, 4160u);
  EXPECT_EQ(in[2].telemetry[0].queue_bytes, 0u);
  EXPECT_EQ(in[2].telemetry[0].sent_bytes, 3 * 4160u);
}

TEST(FabricTest, ACopyMadeOnTheWayKeepsItsTelemetry) {
  FabricConfig config = SmallSwitch();
  config.faults = {Fault{.kind = FaultKind::kDuplicate, .probability = 1, .target = "host:0/nic:0"}};
  auto fabric = Build(config);
  const std::vector<uint8_t> header(40);
  TxSegment segment = Segment(header, 0);
  segment.payload_bytes = 4096;
  segment.telemetry = true;
  fabric->lane(1).Send({&segment, 1});
  fabric->Run(Time::Never());
  RxSegment in[4];
  ASSERT_EQ(fabric->lane(0).Receive(in, fabric->now()), 2u);
  ASSERT_EQ(in[0].telemetry.size(), 1u);
  ASSERT_EQ(in[1].telemetry.size(), 1u);
  EXPECT_EQ(in[1].telemetry[0].time_nanos, in[0].telemetry[0].time_nanos);
}

// Two leaves of four hosts and four spines; each host of the first sends over one path.
FabricConfig TwoLeaves(bool adaptive) {
  FabricConfig config;
  config.topology.kind = TopologyKind::kLeafSpine;
  config.topology.hosts = 8;
  config.entropies = 1;
  config.adaptive_routing = adaptive;
  return config;
}

std::vector<std::unique_ptr<WindowHost>> AcrossTheSpines(Fabric& fabric, uint64_t packets) {
  std::vector<std::unique_ptr<WindowHost>> hosts;
  for (uint32_t h = 0; h < 8; ++h) {
    hosts.push_back(std::make_unique<WindowHost>(fabric, h, std::vector<uint32_t>{(h + 4) % 8}, h < 4 ? packets : 0,
                                                 static_cast<uint32_t>(packets)));
  }
  fabric.Run(Time::Never());
  return hosts;
}

TEST(FabricTest, AdaptiveRoutingFillsTheUplinksThatAHashLeavesEmpty) {
  for (const bool adaptive : {false, true}) {
    auto fabric = Build(TwoLeaves(adaptive));
    EXPECT_EQ(fabric->lane(0).capabilities().keeps_path_order, !adaptive);
    const auto hosts = AcrossTheSpines(*fabric, 40);
    const SwitchInfo& leaf = fabric->topology().switches()[0];
    uint64_t least = ~uint64_t{0}, most = 0;
    for (uint32_t port = leaf.first_up_port; port < leaf.first_up_port + leaf.up_ports; ++port) {
      least = std::min(least, fabric->SentBytes(port));
      most = std::max(most, fabric->SentBytes(port));
    }
    if (adaptive) {
      EXPECT_GT(least, 35u * 4160);
      EXPECT_LT(most, 45u * 4160);
      EXPECT_LE(QueueMax(*fabric, false), 3u * 4160);
    } else {
      EXPECT_EQ(least, 0u);  // at least two of the four flows meet
      EXPECT_GE(most, 80u * 4160);
    }
    uint64_t received = 0;
    for (const auto& host : hosts) received += host->received();
    EXPECT_EQ(received, 160u);
  }
}

TEST(FabricTest, AdaptiveRoutingLeavesOutALinkThatIsDownAndPrefersTheFasterOfTwo) {
  FabricConfig config = TwoLeaves(true);
  config.queue_bytes = 1'000'000;
  config.faults = {Fault{.kind = FaultKind::kLinkDown, .target = "tor:0/up:1"},
                   Fault{.kind = FaultKind::kLinkSlow, .fraction = 0.25, .target = "tor:0/up:2"}};
  auto fabric = Build(config);
  const auto hosts = AcrossTheSpines(*fabric, 100);
  uint64_t received = 0;
  for (const auto& host : hosts) received += host->received();
  EXPECT_EQ(received, 400u);
  const uint32_t up = fabric->topology().switches()[0].first_up_port;
  EXPECT_EQ(fabric->SentBytes(up + 1), 0u);
  EXPECT_LT(fabric->SentBytes(up + 2), fabric->SentBytes(up) * 2 / 3);
}

// Packets that went there and whose answer came back.
uint64_t Acknowledged(const std::vector<std::unique_ptr<WindowHost>>& hosts) {
  uint64_t acknowledged = 0;
  for (const auto& host : hosts) acknowledged += host->acknowledged();
  return acknowledged;
}

constexpr Picos kMicro = 1'000'000;

// Each of four hosts sends 400 packets over all its paths, which takes 133 us. The link dies at 20 us.
FabricConfig SpineLinkDies(Picos reroute_delay, const std::string& target) {
  FabricConfig config = TwoLeaves(false);
  config.entropies = 64;
  config.queue_bytes = 10'000'000;
  config.reroute_delay = reroute_delay;
  config.faults = {Fault{.kind = FaultKind::kLinkDown, .at = 20 * kMicro, .target = target}};
  return config;
}

TEST(FabricTest, ADeadLinkIsUsedUntilTheRoutingHasWithdrawnIt) {
  // The link of the senders' leaf, and that of the spine to the receivers' leaf, two switches further.
  for (const char* target : {"tor:0/up:1", "core:1/down:1"}) {
    auto fabric = Build(SpineLinkDies(30 * kMicro, target));
    const uint32_t uplink = fabric->topology().switches()[0].first_up_port + 1;
    uint64_t sent = 0, lost = 0;
    std::vector<std::unique_ptr<WindowHost>> hosts;
    for (uint32_t h = 0; h < 8; ++h) {
      hosts.push_back(
          std::make_unique<WindowHost>(*fabric, h, std::vector<uint32_t>{(h + 4) % 8}, h < 4 ? 400 : 0, 400));
    }
    fabric->Run(Time::FromNanos(49'999));
    lost = fabric->counters().fault_losses;
    EXPECT_GT(lost, 50u) << target;
    fabric->Run(Time::FromNanos(80'000));  // what waited at the link, or was on its way to it
    sent = fabric->SentBytes(uplink);
    lost = fabric->counters().fault_losses;
    fabric->Run(Time::Never());
    EXPECT_EQ(fabric->SentBytes(uplink), sent) << target;
    EXPECT_EQ(fabric->counters().fault_losses, lost) << target;
    EXPECT_LT(lost, 200u) << target;
    EXPECT_EQ(Acknowledged(hosts), 1600 - lost) << target;
  }
}

TEST(FabricTest, WithoutAReroutingDelayADeadLinkIsUsedForEver) {
  auto fabric = Build(SpineLinkDies(0, "tor:0/up:1"));
  const auto hosts = AcrossTheSpines(*fabric, 400);
  EXPECT_GT(fabric->counters().fault_losses, 300u);
  EXPECT_EQ(Acknowledged(hosts), 1600 - fabric->counters().fault_losses);
}

TEST(FabricTest, ALinkThatComesBackIsUsedAgainAfterTheReroutingDelay) {
  FabricConfig config = SpineLinkDies(10 * kMicro, "tor:0/up:1");
  config.faults[0].until = 60 * kMicro;
  auto fabric = Build(config);
  const uint32_t uplink = fabric->topology().switches()[0].first_up_port + 1;
  std::vector<std::unique_ptr<WindowHost>> hosts;
  for (uint32_t h = 0; h < 8; ++h) {
    hosts.push_back(std::make_unique<WindowHost>(*fabric, h, std::vector<uint32_t>{(h + 4) % 8}, h < 4 ? 400 : 0, 400));
  }
  fabric->Run(Time::FromNanos(55'000));
  const uint64_t before = fabric->SentBytes(uplink);
  fabric->Run(Time::FromNanos(69'999));
  EXPECT_EQ(fabric->SentBytes(uplink), before);
  fabric->Run(Time::Never());
  EXPECT_GT(fabric->SentBytes(uplink), before + uint64_t{50} * 4160);
}

// With the shortest queue in place of the hash: of a link that is not its own a switch knows by the routing alone.
TEST(FabricTest, AdaptiveRoutingLeavesOutANextHopThatTheRoutingHasWithdrawn) {
  for (const Picos reroute_delay : {Picos{0}, 10 * kMicro}) {
    FabricConfig config = SpineLinkDies(reroute_delay, "core:1/down:1");
    config.adaptive_routing = true;
    auto fabric = Build(config);
    const auto hosts = AcrossTheSpines(*fabric, 400);
    EXPECT_EQ(Acknowledged(hosts), 1600 - fabric->counters().fault_losses);
    if (reroute_delay == 0) {
      EXPECT_GT(fabric->counters().fault_losses, 250u);
    } else {
      EXPECT_GT(fabric->counters().fault_losses, 10u);
      EXPECT_LT(fabric->counters().fault_losses, 100u);
    }
  }
}

TEST(FabricTest, SameSeedSameRun) {
  uint64_t first_hops = 0, first_marks = 0;
  int64_t first_end = 0;
  for (int i = 0; i < 2; ++i) {
    FabricConfig config;
    config.topology.kind = TopologyKind::kFatTree;
    config.topology.hosts = 32;
    config.seed = 42;
    config.faults = {Fault{.kind = FaultKind::kLoss, .probability = 0.01}};
    auto fabric = Build(config);
    std::vector<std::unique_ptr<WindowHost>> hosts;
    for (uint32_t h = 0; h < 32; ++h) {
      hosts.push_back(
          std::make_unique<WindowHost>(*fabric, h, std::vector<uint32_t>{(h + 16) % 32, (h + 5) % 32}, 200, 80));
    }
    fabric->Run(Time::Never());
    if (i == 0) {
      first_hops = fabric->counters().packet_hops;
      first_marks = fabric->counters().ecn_marks;
      first_end = fabric->now_picos();
      continue;
    }
    EXPECT_EQ(fabric->counters().packet_hops, first_hops);
    EXPECT_EQ(fabric->counters().ecn_marks, first_marks);
    EXPECT_EQ(fabric->now_picos(), first_end);
  }
}

TEST(FabricTest, SeriesCoversTheRunWithinItsBound) {
  std::vector<std::unique_ptr<WindowHost>> hosts;
  auto fabric = Blast(SmallSwitch(2), 10'000, hosts);  // 3.3 ms: more than 512 samples of 1 us
  const Series& series = fabric->series();
  EXPECT_LE(series.size(), Series::kMaxPoints);
  EXPECT_EQ(series.interval(), 8'000'000);
  const uint32_t port = 2;  // the switch's port to host 0; 0 and 1 are the NICs
  ASSERT_TRUE(fabric->IsLastHop(port));
  uint64_t delivered = 0, sent = 0;
  for (size_t point = 0; point < series.size(); ++point) {
    delivered += series.delivered_payload_bytes(point);
    sent += series.sent_bytes(point, port);
    EXPECT_LE(series.queue_peak_bytes(point, port), 2u * 4160);
  }
  EXPECT_EQ(delivered, fabric->counters().delivered_payload_bytes);
  EXPECT_EQ(sent, 10'000u * 4160);
  EXPECT_EQ(fabric->SentBytes(port), sent);
}

TEST(FabricTest, CountsMoreBytesThan32BitsHold) {
  FabricConfig config = SmallSwitch(2);
  config.mtu_bytes = 65536;
  auto fabric = Build(config);
  constexpr uint64_t kPackets = 140'000;
  WindowHost receiver(*fabric, 0, {1}, 0, 1), sender(*fabric, 1, {0}, kPackets, 16);
  fabric->Run(Time::Never());
  ASSERT_GT(kPackets * 65600, uint64_t{1} << 33);
  EXPECT_EQ(fabric->SentBytes(1), kPackets * 65600);  // by the NIC
  EXPECT_EQ(fabric->SentBytes(2), kPackets * 65600);  // by the switch
}

TEST(SeriesTest, IntervalsHoldMoreThan32Bits) {
  Series series(1, 1);
  for (size_t point = 0; point <= Series::kMaxPoints; ++point) {
    series.Append(0);
    series.Set(0, 0, uint64_t{3} << 30);
  }
  EXPECT_EQ(series.interval(), 2);
  EXPECT_EQ(series.sent_bytes(0, 0), uint64_t{6} << 30);
  EXPECT_EQ(series.sent_bytes(series.size() - 1, 0), uint64_t{3} << 30);
}

TEST(FabricTest, RebootLosesWhatWaitsAndTheLinksComeBack) {
  FabricConfig config = SmallSwitch(9);
  config.faults = {
      Fault{.kind = FaultKind::kSwitchReboot, .at = 10'000'000, .until = 40'000'000, .target = "switch:tor:0"}};
  auto fabric = Build(config);
  std::vector<std::unique_ptr<WindowHost>> hosts;
  hosts.push_back(std::make_unique<WindowHost>(*fabric, 0, std::vector<uint32_t>{1}, 0, 1));
  for (uint32_t host = 1; host < 9; ++host) {
    hosts.push_back(std::make_unique<WindowHost>(*fabric, host, std::vector<uint32_t>{0}, 200, 200));
  }
  fabric->Run(Time::FromNanos(9'999));
  const uint32_t last_hop = fabric->topology().links()[0].reverse;
  EXPECT_GT(fabric->port(last_hop).data_bytes, 100'000u);
  fabric->Run(Time::FromNanos(10'001));
  EXPECT_EQ(fabric->port(last_hop).data_bytes, 0u);
  EXPECT_FALSE(fabric->lane(3).status().up);
  const uint64_t before = hosts[0]->received();
  fabric->Run(Time::FromNanos(40'000));
  EXPECT_EQ(hosts[0]->received(), before);
  fabric->Run(Time::Never());
  EXPECT_GT(hosts[0]->received(), before);
  EXPECT_TRUE(fabric->lane(3).status().up);
  EXPECT_GT(fabric->counters().fault_losses, 8u * 80);
  EXPECT_EQ(fabric->packets_in_flight(), 0u);
}

TEST(FabricTest, SlowHostActsLate) {
  FabricConfig config = SmallSwitch(2);
  auto fabric = Build(config);
  WindowHost sender(*fabric, 0, {1}, 1, 1), receiver(*fabric, 1, {0}, 0, 1);
  fabric->Run(Time::Never());
  const int64_t usual = sender.last_acknowledged().nanos();
  config.faults = {Fault{.kind = FaultKind::kHostSlow, .delay = 7'000'000, .target = "host:1"}};
  auto slow = Build(config);
  WindowHost slow_sender(*slow, 0, {1}, 1, 1), slow_receiver(*slow, 1, {0}, 0, 1);
  slow->Run(Time::Never());
  EXPECT_NEAR(slow_sender.last_acknowledged().nanos(), usual + 7000, 1);
}

TEST(FabricTest, RefusesBadNumbers) {
  FabricConfig config = SmallSwitch();
  config.queue_bytes = 100;
  EXPECT_THAT(std::string(Fabric::Create(config).status().message()), testing::HasSubstr("fabric.queue_bytes"));
  config = SmallSwitch();
  config.ecn_max_bytes = 10;
  EXPECT_THAT(std::string(Fabric::Create(config).status().message()), testing::HasSubstr("fabric.ecn_max_bytes"));
  for (const double probability : {0.0, -0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    config = SmallSwitch(2);
    config.ecn_max_probability = probability;
    EXPECT_THAT(std::string(Fabric::Create(config).status().message()),
                testing::HasSubstr("must be above 0 and at most 1"));
  }
  config = SmallSwitch();
  config.mtu_bytes = 0;
  EXPECT_THAT(std::string(Fabric::Create(config).status().message()), testing::HasSubstr("fabric.mtu_bytes"));
  config = SmallSwitch();
  config.reroute_delay = -5'000'000;
  EXPECT_THAT(std::string(Fabric::Create(config).status().message()),
              testing::HasSubstr("fabric.reroute_us = -5 must be at least 0"));
}

}  // namespace
}  // namespace paceline::sim
