// The paths that control packets take.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/endpoint_pair.h"

namespace paceline::support {
namespace {

// Those of one burst go together, so that a lane may hand them over in one piece; the next burst takes another path.
TEST(ControlPathTest, OneForEachBurst) {
  constexpr size_t kConnections = 16;
  constexpr int kBursts = 8;
  EndpointPair pair;
  std::vector<std::pair<ConnectionId, ConnectionId>> connections;
  for (size_t i = 0; i < kConnections; ++i) connections.push_back(pair.Connect());
  std::array<uint8_t, 64> out{}, in{};
  std::set<uint16_t> all;
  for (int burst = 0; burst < kBursts; ++burst) {
    for (const auto& [a, b] : connections) {
      ASSERT_EQ(pair.b().PostReceive(b, {.buffer = {in.data(), in.size()}}, pair.now()), PostResult::kOk);
      ASSERT_EQ(pair.a().PostSend(a, {.buffer = {out.data(), out.size()}}, pair.now()), PostResult::kOk);
    }
    pair.Step();
    for (int i = 0; i < 100 && pair.last_of_b().empty(); ++i) pair.Step(Duration::Micros(20));  // acknowledgements wait
    std::set<uint16_t> taken;
    size_t packets = 0;
    for (const TxSegment& segment : pair.last_of_b()) {
      ASSERT_TRUE(segment.control);
      taken.insert(segment.entropy);
      ++packets;
    }
    ASSERT_EQ(packets, kConnections);
    EXPECT_EQ(taken.size(), 1u);
    all.insert(taken.begin(), taken.end());
    pair.Advance(Duration::Millis(1));
  }
  EXPECT_EQ(all.size(), static_cast<size_t>(kBursts));
}

// On a lane that sends each packet by itself there is nothing to gain, and where many hosts talk to many, control
// packets that leave together on one path meet in the network.
TEST(ControlPathTest, OneForEachPacketWhereALaneSendsOneByOne) {
  constexpr size_t kConnections = 16;
  EndpointPair pair(nullptr, 4096 + 96, true, /*burst_segments=*/1);
  std::array<uint8_t, 64> out{}, in{};
  for (size_t i = 0; i < kConnections; ++i) {
    const auto [a, b] = pair.Connect();
    ASSERT_EQ(pair.b().PostReceive(b, {.buffer = {in.data(), in.size()}}, pair.now()), PostResult::kOk);
    ASSERT_EQ(pair.a().PostSend(a, {.buffer = {out.data(), out.size()}}, pair.now()), PostResult::kOk);
  }
  pair.Step();
  for (int i = 0; i < 100 && pair.last_of_b().empty(); ++i) pair.Step(Duration::Micros(20));
  std::set<uint16_t> taken;
  for (const TxSegment& segment : pair.last_of_b()) taken.insert(segment.entropy);
  EXPECT_EQ(taken.size(), kConnections);
}

}  // namespace
}  // namespace paceline::support
