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
  constexpr size_t kConnections = 40;
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

// So that they take few calls, of each of which only the last packet may be shorter than the others.
TEST(ControlPathTest, ThoseOfAPeerTogetherAndTheLongerOnesFirst) {
  constexpr size_t kConnections = 8;
  EndpointPair pair;
  std::vector<uint8_t> out(20'000), in(20'000);  // long enough to be acknowledged at once
  std::vector<std::pair<ConnectionId, ConnectionId>> connections;
  for (size_t i = 0; i < kConnections; ++i) connections.push_back(pair.Connect(/*host=*/i % 3 == 0));
  const auto receive = [&](ConnectionId id) {
    ASSERT_EQ(pair.b().PostReceive(id, {.buffer = {in.data(), in.size()}}, pair.now()), PostResult::kOk);
  };
  for (const auto& [a, b] : connections) {
    for (int i = 0; i < 9; ++i) receive(b);
  }
  pair.Step();
  pair.Advance(Duration::Millis(1));
  for (size_t i = 0; i < kConnections; ++i) {
    const auto [a, b] = connections[i];
    ASSERT_EQ(pair.a().PostSend(a, {.buffer = {out.data(), out.size()}}, pair.now()), PostResult::kOk);
    if (i % 2 == 1) receive(b);  // of which the acknowledgement says, too
  }
  pair.Step();
  const auto packets = pair.last_of_b();
  ASSERT_EQ(packets.size(), kConnections);
  size_t changes = 0;
  for (size_t i = 1; i < kConnections; ++i) {
    if (packets[i].peer != packets[i - 1].peer) {
      ++changes;
    } else {
      EXPECT_LE(packets[i].header_bytes, packets[i - 1].header_bytes) << i;
    }
  }
  EXPECT_EQ(changes, 1u);
  EXPECT_GT(packets[0].header_bytes, packets[kConnections - 1].header_bytes);
}

// What is due and waits all the same has taken no path.
TEST(ControlPathTest, NoneIsPassedOver) {
  constexpr size_t kEntropies = 4;
  LaneCapabilities lane = PairCapabilities(4096 + 96, 16);
  lane.entropies = kEntropies;
  EndpointPair pair(nullptr, lane, true);
  const auto [a, b] = pair.Connect();
  std::vector<uint8_t> memory(1 << 20);
  std::set<uint16_t> taken;
  for (int i = 0; i < 20; ++i) {
    for (const bool to_b : {true, false}) {
      Endpoint& from = to_b ? pair.a() : pair.b();
      Endpoint& to = to_b ? pair.b() : pair.a();
      ASSERT_EQ(to.PostReceive(to_b ? b : a, {.buffer = {memory.data(), memory.size()}}, pair.now()), PostResult::kOk);
      ASSERT_EQ(from.PostSend(to_b ? a : b, {.buffer = {memory.data(), memory.size()}}, pair.now()), PostResult::kOk);
    }
    for (int step = 0; step < 100; ++step) {
      pair.Step(Duration::Micros(1));
      for (const TxSegment& segment : pair.last_of_b()) {
        if (segment.control) taken.insert(segment.entropy);
      }
    }
  }
  EXPECT_EQ(taken.size(), kEntropies);
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
