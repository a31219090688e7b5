// Retransmission costs little more than what was lost: on the simulated fabric with random loss, data packets sent
// again stay within 1.3 times those that the network took, for every controller.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/sim_network.h"
#include "tests/support/test_host.h"
#include "transport/lane/sim/sim_lane.h"

namespace paceline::simulation {
namespace {

using support::GuardedBuffer;
using support::SimNetwork;
using support::TestHost;

struct Case {
  std::string controller;
  double loss = 0;  // of each packet, on its whole way
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const AlgorithmInfo& algorithm : CongestionControlAlgorithms()) {
    for (const double loss : {0.01, 0.1}) cases.push_back({algorithm.name, loss});
  }
  return cases;
}

class EfficiencyTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, EfficiencyTest, testing::ValuesIn(AllCases()), [](const auto& one) {
  return one.param.controller + (one.param.loss < 0.05 ? "_1_percent" : "_10_percent");
});

TEST_P(EfficiencyTest, RetransmissionStaysNearToWhatWasLost) {
  constexpr size_t kMessages = 60;
  constexpr size_t kBytes = 512 * 1024;
  sim::FabricConfig config;
  config.topology.kind = sim::TopologyKind::kLeafSpine;
  config.topology.hosts = 4;
  config.topology.tor_radix = 2;
  sim::Fault loss;
  loss.probability = GetParam().loss / 2;  // a path crosses two links of hosts
  loss.target = "hosts";
  config.faults.push_back(loss);
  auto fabric = sim::Fabric::Create(config);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  SimNetwork network(*std::move(fabric));
  std::vector<std::unique_ptr<TestHost>> hosts;
  for (uint32_t i = 0; i < 4; ++i) {
    EndpointOptions options;
    options.seed = i + 1;
    options.congestion_control = GetParam().controller;
    auto control = CreateCongestionControl(GetParam().controller, {}, options.seed);
    ASSERT_TRUE(control.ok());
    hosts.push_back(std::make_unique<TestHost>(options, *std::move(control),
                                               std::vector<Lane*>{&network.fabric().lane(i)}, &network));
  }
  TestHost& from = *hosts[0];
  TestHost& to = *hosts[3];  // on another leaf
  const ConnectionId a = from.endpoint().ReserveConnection();
  const ConnectionId b = to.endpoint().ReserveConnection();
  from.endpoint().Establish(a, {.peer_connection = b, .addresses = {network.fabric().lane(3).address()}}, Time());
  to.endpoint().Establish(b, {.peer_connection = a, .addresses = {network.fabric().lane(0).address()}}, Time());

  GuardedBuffer out(kBytes);
  out.Fill(1);
  std::vector<std::unique_ptr<GuardedBuffer>> in;
  for (size_t i = 0; i < kMessages; ++i) {
    in.push_back(std::make_unique<GuardedBuffer>(kBytes));
    ASSERT_EQ(to.endpoint().PostReceive(b, {.buffer = in.back()->local(), .user_data = i + 1}, Time()),
              PostResult::kOk);
    ASSERT_EQ(from.endpoint().PostSend(a, {.buffer = out.local(), .user_data = i + 1}, Time()), PostResult::kOk);
  }
  from.Touch();
  to.Touch();
  ASSERT_TRUE(network.Run(Time() + Duration::Seconds(60),
                          [&] { return from.completions.size() == kMessages && to.completions.size() == kMessages; }));
  for (const auto& buffer : in) EXPECT_TRUE(buffer->Holds(1));
  network.Run(network.now() + Duration::Millis(100), [] { return false; });

  const EndpointCounters& sent = from.endpoint().counters();
  const EndpointCounters& received = to.endpoint().counters();
  const uint64_t lost = sent.tx_data_packets - received.rx_data_packets - received.rx_duplicates;
  const double ratio = static_cast<double>(sent.retransmits) / static_cast<double>(lost);
  std::printf("%s, %.0f %% loss: %lu of %lu data packets lost, %lu sent again (%.3f), %lu of them for nothing\n",
              GetParam().controller.c_str(), GetParam().loss * 100, lost, sent.tx_data_packets, sent.retransmits, ratio,
              sent.spurious_retransmits);
  ASSERT_GT(lost, 20u);
  EXPECT_LE(ratio, 1.3);
  for (const auto& host : hosts) EXPECT_TRUE(host->Violations().empty()) << host->Violations()[0];
}

}  // namespace
}  // namespace paceline::simulation
