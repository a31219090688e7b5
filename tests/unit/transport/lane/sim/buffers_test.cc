#include "transport/lane/sim/buffers.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/unit/transport/lane/sim/fabric_helpers.h"

namespace paceline::sim {
namespace {

// n ports that are always full hold alpha / (1 + n alpha) of the memory each.
TEST(BuffersTest, SharedMemoryFollowsItsDynamicThreshold) {
  for (const double alpha : {0.5, 1.0, 4.0}) {
    for (const uint32_t busy : {1u, 2u}) {
      FabricConfig config = SmallSwitch(12);
      config.buffers = {.shared = true, .shared_bytes = 4160 * 200, .alpha = alpha};
      auto fabric = Build(config);
      std::vector<std::unique_ptr<WindowHost>> hosts;
      for (uint32_t host = 0; host < 12; ++host) {
        // Those above `busy` send to 0 .. busy - 1 in turn, more than the memory holds.
        hosts.push_back(std::make_unique<WindowHost>(
            *fabric, host, std::vector<uint32_t>{host < busy ? 11 : host % busy}, host < busy ? 0 : 200, 200));
      }
      fabric->Run(Time::Never());
      EXPECT_GT(fabric->counters().drops, 0u);
      const double share = alpha / (1 + busy * alpha);
      // And the packet being sent; a queue below the threshold takes one packet over it.
      EXPECT_NEAR(QueueMax(*fabric, true), share * 4160 * 200, 4160 * 4) << alpha << ", " << busy << " ports";
    }
  }
}

TEST(BuffersTest, LosslessSwitchPausesNicsAndLosesNothing) {
  FabricConfig config = SmallSwitch(9);
  config.buffers.lossless = true;
  std::vector<std::unique_ptr<WindowHost>> hosts;
  auto fabric = Blast(config, 200, hosts);
  EXPECT_EQ(fabric->counters().drops, 0u);
  EXPECT_EQ(hosts[0]->received(), 1600u);
  EXPECT_GT(fabric->counters().pfc_pauses, 8u);
  EXPECT_GT(fabric->PausedPicos(), 1'000'000);
  EXPECT_EQ(fabric->packets_in_flight(), 0u);
  for (uint32_t port = 0; port < fabric->end_port(); ++port) EXPECT_FALSE(fabric->port(port).paused);
}

// Of nine ports, each with 25 KB that a link holds there and back, and three packets.
constexpr uint32_t kHeadroomOfNine = 9 * 37'480;

TEST(BuffersTest, LosslessInSharedMemory) {
  for (const double alpha : {0.125, 1.0, 8.0}) {
    for (const uint32_t pool : {4160u * 2, 4160u * 20, 4160u * 200}) {
      FabricConfig config = SmallSwitch(9);
      config.buffers = {.shared = true, .shared_bytes = kHeadroomOfNine + pool, .alpha = alpha, .lossless = true};
      std::vector<std::unique_ptr<WindowHost>> hosts;
      auto fabric = Blast(config, 200, hosts);
      EXPECT_EQ(fabric->counters().drops, 0u) << alpha << ", " << pool;
      EXPECT_EQ(hosts[0]->received(), 1600u) << alpha << ", " << pool;
      EXPECT_GT(fabric->counters().pfc_pauses, 8u);
      EXPECT_LE(QueueMax(*fabric, true), kHeadroomOfNine + pool + 4160);
      EXPECT_EQ(fabric->packets_in_flight(), 0u);
      for (uint32_t port = 0; port < fabric->end_port(); ++port) EXPECT_FALSE(fabric->port(port).paused) << port;
    }
  }
}

// Eight links that come in for one port have alpha / (1 + 8 alpha) of the pool each before they are paused.
TEST(BuffersTest, LinksSharePoolByTheDynamicThreshold) {
  constexpr uint32_t kPool = 4160 * 400;
  for (const double alpha : {0.0625, 0.25, 1.0}) {
    FabricConfig config = SmallSwitch(9);
    config.buffers = {.shared = true, .shared_bytes = kHeadroomOfNine + kPool, .alpha = alpha, .lossless = true};
    std::vector<std::unique_ptr<WindowHost>> hosts;
    auto fabric = Blast(config, 400, hosts);
    EXPECT_EQ(fabric->counters().drops, 0u);
    const double shares = 8 * alpha / (1 + 8 * alpha) * kPool;
    EXPECT_GT(QueueMax(*fabric, true), shares) << alpha;
    EXPECT_LE(QueueMax(*fabric, true), shares + kHeadroomOfNine) << alpha;
  }
}

TEST(BuffersTest, HeadroomThatIsTooSmallLoses) {
  FabricConfig config = SmallSwitch(9);
  config.buffers = {.shared = true, .shared_bytes = 4160 * 100, .lossless = true, .headroom_bytes = 4160};
  std::vector<std::unique_ptr<WindowHost>> hosts;
  EXPECT_GT(Blast(config, 200, hosts)->counters().drops, 0u);
}

// The memory is taken by eight links before the ninth sends anything: its first packets go into its headroom, and it is
// told to go on when they have left, though no share is free for it then.
TEST(BuffersTest, ALinkWithoutAShareIsNotForgotten) {
  FabricConfig config = SmallSwitch(11);
  config.buffers = {.shared = true, .shared_bytes = 11 * 37'480 + 2 * 4160, .alpha = 0.125, .lossless = true};
  auto fabric = Build(config);
  std::vector<std::unique_ptr<WindowHost>> hosts;
  for (uint32_t host = 0; host < 8; ++host) {
    hosts.push_back(std::make_unique<WindowHost>(*fabric, host, std::vector<uint32_t>{10}, 200, 200));
  }
  WindowHost crowded(*fabric, 10, {0}, 0, 1), sender(*fabric, 8, {9}, 200, 4), receiver(*fabric, 9, {8}, 0, 1);
  fabric->Run(Time::Never());
  EXPECT_EQ(receiver.received(), 200u);
  EXPECT_EQ(crowded.received(), 1600u);
  EXPECT_EQ(fabric->counters().drops, 0u);
}

TEST(BuffersTest, SharedMemoryMustHoldTheHeadroom) {
  FabricConfig config = SmallSwitch(9);
  config.buffers = {.shared = true, .shared_bytes = 200'000, .lossless = true};
  const std::string message(Fabric::Check(config).message());
  EXPECT_NE(message.find("fabric.shared_buffer_bytes = 200000"), std::string::npos) << message;
  EXPECT_NE(message.find("tor:0 at least 345640"), std::string::npos) << message;
  config.buffers.shared_bytes = 345'640;
  EXPECT_TRUE(Fabric::Check(config).ok()) << Fabric::Check(config);
  config.buffers.xoff_bytes = 10'000;
  EXPECT_NE(std::string(Fabric::Check(config).message()).find("fabric.pfc_xoff_bytes"), std::string::npos);
}

TEST(BuffersTest, ControlPassesAPausedLink) {
  FabricConfig config = SmallSwitch(9);
  config.buffers = {.lossless = true, .xoff_bytes = 8320, .xon_bytes = 4160};
  std::vector<std::unique_ptr<WindowHost>> hosts;
  auto fabric = Blast(config, 50, hosts);
  // Host 0 answers every packet; its own uplink is never paused, and those of the senders carry no data to others.
  for (uint32_t host = 1; host < 9; ++host) EXPECT_EQ(hosts[host]->acknowledged(), 50u);
  EXPECT_EQ(fabric->counters().drops, 0u);
  const uint32_t last_hop = fabric->topology().links()[0].reverse;
  EXPECT_LE(fabric->QueueMaxBytes(last_hop), 8 * (8320 + 29160 + 4160));
}

// Head-of-line blocking: three hosts of a leaf send to one host of the other, the fourth to another one. Without pauses
// only what goes to the crowded port is held up.
TEST(BuffersTest, PausesSpreadToVictims) {
  const auto victim_micros = [](bool lossless) {
    FabricConfig config = SmallSwitch(8);
    config.topology.kind = TopologyKind::kLeafSpine;
    config.topology.tor_radix = 4;
    config.buffers.lossless = lossless;
    auto fabric = Build(config);
    std::vector<std::unique_ptr<WindowHost>> hosts;
    for (uint32_t host = 0; host < 3; ++host) {
      hosts.push_back(std::make_unique<WindowHost>(*fabric, host, std::vector<uint32_t>{4}, 500, 500));
    }
    WindowHost crowded(*fabric, 4, {0}, 0, 1), sender(*fabric, 3, {5}, 500, 500), victim(*fabric, 5, {3}, 0, 1);
    fabric->Run(Time::Never());
    EXPECT_EQ(victim.received(), 500u);
    EXPECT_EQ(fabric->counters().drops == 0, lossless);
    return static_cast<double>((victim.last_received() - Time()).nanos()) / 1e3;
  };
  const double alone = 500 * 0.3328 + 3 * 0.3328 + 4;
  EXPECT_LT(victim_micros(false), alone * 1.1);
  EXPECT_GT(victim_micros(true), alone * 1.5);
}

}  // namespace
}  // namespace paceline::sim
