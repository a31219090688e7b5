// Several ports: all are used, one may die and come back, and nothing is lost as long as a path lives.
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "tests/support/core_fixture.h"

namespace paceline::support {
namespace {

class PortsTest : public CoreSetupTest {
 protected:
  // Network port number of a host's port.
  uint32_t NetworkPort(uint32_t host, uint32_t port) { return world().lane(host, port).port(); }
  uint64_t SentOn(uint32_t host, uint32_t port) { return world().lane(host, port).counters().tx_bytes; }

  // A stream of messages from host 0 to host 1 that goes on while the test breaks things.
  void StartStream(size_t messages, size_t bytes) {
    for (size_t i = 0; i < messages; ++i) {
      stream_.push_back(&NewBuffer(bytes));
      Receive(1, *stream_.back(), 1);
      Send(0, NewFilled(bytes, i), 1);
    }
  }
  void ExpectStream() {
    AwaitAll();
    for (size_t i = 0; i < stream_.size(); ++i) EXPECT_TRUE(stream_[i]->Holds(i)) << i;
    for (uint32_t at = 0; at < 2; ++at) {
      for (const Completion& completion : host(at).completions) EXPECT_EQ(completion.status, OperationStatus::kOk);
    }
  }
  std::vector<GuardedBuffer*> stream_;
};
INSTANTIATE_TEST_SUITE_P(Setups, PortsTest,
                         testing::Values(CoreSetup{LaneKind::kPackets, TestControl::kWindow, 2},
                                         CoreSetup{LaneKind::kPackets, TestControl::kCredit, 2},
                                         CoreSetup{LaneKind::kPackets, TestControl::kWindow, 4},
                                         CoreSetup{LaneKind::kHca, TestControl::kWindow, 2},
                                         CoreSetup{LaneKind::kHca, TestControl::kCredit, 2}),
                         CoreSetupName);

TEST_P(PortsTest, AllPortsShareTheLoad) {
  Exchange(0, 8'000'000);
  for (uint32_t port = 0; port < GetParam().ports; ++port) {
    EXPECT_GT(SentOn(0, port), 8'000'000u / GetParam().ports / 3) << port;
  }
}

// The backlog is the connection's: when the last of it leaves through one port, the controllers of the others hear of
// it.
TEST_P(PortsTest, NoControllerBelievesInABacklogThatIsGone) {
  for (int i = 0; i < 50; ++i) {
    Exchange(0, 5'000 + i * 4'321);
    world().RunFor(Duration::Micros(100));
    EXPECT_GT(host(0).control().senders, 0u);
    EXPECT_EQ(host(0).control().backlogged_senders, 0) << i;
  }
}

TEST_P(PortsTest, TwoPortsAreFasterThanOne) {
  const Time start = now();
  Exchange(0, 8'000'000);
  const Duration both = now() - start;
  // One port at 100 Gb/s takes 640 us for the payload alone.
  EXPECT_TRUE(GetParam().lanes == LaneKind::kHca || both < Duration::Micros(620)) << both.micros();
}

// One port leads to a link a hundred times slower, whose queue loses nothing. Messages of 64 KB must not wait for it:
// the transfer takes little longer than through the other ports alone.
TEST_P(PortsTest, ASlowPortHoldsUpNoMessages) {
  const uint32_t slow = NetworkPort(0, 1);
  Time free_at;
  network().SetHook([&, slow](NetworkPacket& packet, Fate& fate) {
    if (packet.from != slow) return;
    free_at = std::max(free_at, now()) + Rate::Gbps(1).TimeFor(static_cast<int64_t>(packet.size()));
    fate.extra_delay = free_at - now();
  });
  for (int i = 0; i < 20; ++i) Exchange(0, 64'000);  // the delays are measured
  const uint64_t through_slow = SentOn(0, 1);
  const Time start = now();
  for (int i = 0; i < 10; ++i) {
    StartStream(8, 64'000);
    ExpectStream();
    stream_.clear();
  }
  const auto others = static_cast<int64_t>(GetParam().ports - 1);
  EXPECT_LT(now() - start, Rate::Gbps(100).TimeFor(80 * 64'000) / others * 2 + Duration::Micros(10 * 60));
  EXPECT_LT(SentOn(0, 1) - through_slow, 80 * 64'000u / 20);
}

TEST_P(PortsTest, OwnPortGoesDownAndComesBack) {
  StartStream(20, 200'000);
  world().RunFor(Duration::Micros(100));
  network().SetPortUp(NetworkPort(0, 1), false);
  world().RunFor(Duration::Millis(300));
  ExpectStream();
  const uint64_t before = SentOn(0, 1);
  network().SetPortUp(NetworkPort(0, 1), true);
  world().RunFor(Duration::Millis(100));
  for (int i = 0; i < 5; ++i) Exchange(0, 2'000'000);
  EXPECT_GT(SentOn(0, 1), before + 1'000'000) << "the port's share did not come back";
}

TEST_P(PortsTest, OwnPortGoesDownWhileClosing) {
  StartStream(20, 200'000);
  world().RunFor(Duration::Micros(100));
  endpoint(0).Close(connection(0), now());
  const Time start = now();
  network().SetPortUp(NetworkPort(0, 1), false);
  ExpectStream();
  // The other port takes 300 us for all of it.
  EXPECT_LT(now() - start, Duration::Millis(5));
}

TEST_P(PortsTest, ThePeersPortGoesDownSilently) {
  StartStream(20, 200'000);
  world().RunFor(Duration::Micros(100));
  const uint32_t dead = NetworkPort(1, 1);
  network().SetHook(
      [dead](NetworkPacket& packet, Fate& fate) { fate.drop = packet.to == dead || packet.from == dead; });
  ExpectStream();
  const Time start = now();
  Exchange(0, 1'000'000);
  EXPECT_LT(now() - start, Duration::Millis(500));
}

// Small messages at long intervals: the working ports have nothing outstanding while the dead port is probed.
TEST_P(PortsTest, APortThatStaysDeadEndsNoConnection) {
  const uint32_t dead = NetworkPort(1, 1);
  for (const size_t bytes : {64, 20'000}) {
    network().SetHook(nullptr);
    StartStream(20, 200'000);
    world().RunFor(Duration::Micros(100));
    network().SetHook(
        [dead](NetworkPacket& packet, Fate& fate) { fate.drop = packet.to == dead || packet.from == dead; });
    ExpectStream();
    stream_.clear();
    const Time end = now() + EndpointOptions().peer_timeout * 3;
    while (now() < end) {
      Exchange(0, bytes);
      world().RunFor(Duration::Millis(130));
      if (HasFailure()) break;
    }
    world().RunFor(EndpointOptions().peer_timeout * 2);
    Exchange(0, bytes);
  }
}

// A cable that is pulled under load: whether the port tells of it or not, what was on its way there is through by way
// of the other ports within three retransmission time-outs, and its share is back when it is.
TEST_P(PortsTest, APulledPortIsFeltForLessThanThreeTimeouts) {
  for (const bool told : {true, false}) {
    SCOPED_TRACE(told ? "told" : "silent");
    const uint32_t pulled = NetworkPort(0, 1);
    const uint64_t timeouts = endpoint(0).counters().timeouts;
    StartStream(60, 200'000);
    world().RunFor(Duration::Micros(200));
    const size_t all = host(1).completions.size() + pending(1);
    ASSERT_GT(pending(1), 10u);
    if (told) {
      network().SetPortUp(pulled, false);
    } else {
      network().SetHook(
          [pulled](NetworkPacket& packet, Fate& fate) { fate.drop = packet.to == pulled || packet.from == pulled; });
    }
    const Time start = now();
    ASSERT_TRUE(world().RunUntil([&] { return host(1).completions.size() == all; }));
    // The other ports take a millisecond for all of it.
    EXPECT_LT(now() - start, EndpointOptions().min_timeout * 3);
    EXPECT_LT(endpoint(0).counters().timeouts - timeouts, 3u);
    ExpectStream();
    stream_.clear();

    network().SetPortUp(pulled, true);
    network().SetHook(nullptr);
    world().RunFor(Duration::Millis(300));
    // One that was silent is tried, and grants for it come, with the first messages.
    for (int i = 0; i < 3; ++i) Exchange(0, 2'000'000);
    uint64_t before = 0, after = 0;
    for (uint32_t port = 0; port < GetParam().ports; ++port) before += SentOn(0, port);
    const uint64_t own = SentOn(0, 1);
    for (int i = 0; i < 5; ++i) Exchange(0, 2'000'000);
    for (uint32_t port = 0; port < GetParam().ports; ++port) after += SentOn(0, port);
    const double share = static_cast<double>(SentOn(0, 1) - own) / static_cast<double>(after - before);
    EXPECT_GT(share, 0.8 / GetParam().ports);
    EXPECT_LT(share, 1.2 / GetParam().ports);
  }
}

TEST_P(PortsTest, ADeadPortFromTheStart) {
  network().SetPortUp(NetworkPort(0, 0), false);
  Exchange(0, 1'000'000);
  Exchange(1, 1'000'000);
}

TEST_P(PortsTest, EverythingDownForASecond) {
  StartStream(20, 200'000);
  world().RunFor(Duration::Micros(100));
  for (uint32_t port = 0; port < GetParam().ports; ++port) network().SetPortUp(NetworkPort(0, port), false);
  world().RunFor(Duration::Seconds(1));
  for (uint32_t port = 0; port < GetParam().ports; ++port) network().SetPortUp(NetworkPort(0, port), true);
  ExpectStream();
}

TEST_P(PortsTest, PortsThatFlap) {
  StartStream(40, 300'000);
  for (int i = 0; i < 60; ++i) {
    const uint32_t port = NetworkPort(static_cast<uint32_t>(i) % 2, static_cast<uint32_t>(i / 2) % GetParam().ports);
    network().SetPortUp(port, !network().port_up(port));
    world().RunFor(Duration::Micros(137));
  }
  for (uint32_t h = 0; h < 2; ++h) {
    for (uint32_t port = 0; port < GetParam().ports; ++port) network().SetPortUp(NetworkPort(h, port), true);
  }
  ExpectStream();
  EXPECT_GT(endpoint(0).counters().port_changes, 0u);
}

// Ports of several kinds together, as shared memory beside a network: each has paths of its own number. (The scripted
// lane counts an entropy that it does not have as a broken rule.)
class MixedPortsTest : public PortsTest {
 protected:
  void SetUp() override {
    WorldOptions options = OptionsFor(GetParam());
    options.customize_lane = [](uint32_t port, LaneCapabilities& capabilities) {
      if (port % 2 == 1) capabilities.entropies = port;  // beside 64
    };
    Start(options);
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, MixedPortsTest,
                         testing::Values(CoreSetup{LaneKind::kPackets, TestControl::kWindow, 4},
                                         CoreSetup{LaneKind::kPackets, TestControl::kCredit, 4},
                                         CoreSetup{LaneKind::kHca, TestControl::kCredit, 2}),
                         CoreSetupName);

TEST_P(MixedPortsTest, ProbesTakePathsThatTheirPortHas) {
  for (int round = 0; round < 10; ++round) {
    StartStream(4, 100'000);
    bool silent = false;
    network().SetHook([&silent](NetworkPacket&, Fate& fate) { fate.drop = silent; });
    world().RunFor(Duration::Micros(3 + round));
    silent = true;
    world().RunFor(Duration::Millis(2 + 10 * round));
    silent = false;
    ExpectStream();
    stream_.clear();
  }
  EXPECT_GT(endpoint(0).counters().tail_probes, 20u);
}

// A connection for one port of each side, as a channel of a collective library has it.
class OwnPortTest : public PortsTest {
 protected:
  void SetUp() override {
    Start(OptionsFor(GetParam()), /*connect=*/false);
    std::tie(a_, b_) = world().Establish(0, 1, 1u << kOwn);
  }
  static constexpr uint32_t kOwn = 1;
};
INSTANTIATE_TEST_SUITE_P(Setups, OwnPortTest,
                         testing::Values(CoreSetup{LaneKind::kPackets, TestControl::kWindow, 4},
                                         CoreSetup{LaneKind::kPackets, TestControl::kCredit, 4}),
                         CoreSetupName);

TEST_P(OwnPortTest, NothingGoesThroughTheOthers) {
  for (uint32_t from : {0u, 1u}) {
    Exchange(from, 8'000'000);
    Exchange(from, 100);
  }
  for (uint32_t host : {0u, 1u}) {
    EXPECT_GT(SentOn(host, kOwn), 8'000'000u);
    for (uint32_t port : {0u, 2u, 3u}) EXPECT_EQ(SentOn(host, port), 0u) << "host " << host << " port " << port;
  }
}

TEST_P(OwnPortTest, TheOthersStandInWhileItIsDown) {
  StartStream(20, 200'000);
  world().RunFor(Duration::Micros(100));
  network().SetPortUp(NetworkPort(0, kOwn), false);
  ExpectStream();
  EXPECT_GT(SentOn(0, 0) + SentOn(0, 2) + SentOn(0, 3), 2'000'000u);
  network().SetPortUp(NetworkPort(0, kOwn), true);
  world().RunFor(Duration::Millis(300));
  const uint64_t own = SentOn(0, kOwn);
  for (int i = 0; i < 5; ++i) Exchange(0, 2'000'000);
  EXPECT_GT(SentOn(0, kOwn), own + 9'000'000) << "its share did not come back";
}

TEST_P(OwnPortTest, TheOthersStandInWhereThePeersIsSilent) {
  StartStream(20, 200'000);
  world().RunFor(Duration::Micros(100));
  const uint32_t dead = NetworkPort(1, kOwn);
  network().SetHook(
      [dead](NetworkPacket& packet, Fate& fate) { fate.drop = packet.to == dead || packet.from == dead; });
  ExpectStream();
}

}  // namespace
}  // namespace paceline::support
