// Endpoints that stand for one: connection requests that come to one and are taken by another, connections whose
// numbers differ everywhere, regions that are known by one name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/core/memory_table.h"
#include "transport/wire/checksum.h"

namespace paceline::support {
namespace {

constexpr uint32_t kDoor = 1, kTaker = 2;  // where requests of host 0 come to, and where they go

// Host 0 connects to two others, in clear or with a key.
class SeveralEndpointsTest : public CoreFixture, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    WorldOptions options = OptionsFor({.encrypted = GetParam()});
    options.hosts = 3;
    options.customize = [keys = options.customize](uint32_t host, EndpointOptions& endpoint) {
      if (keys) keys(host, endpoint);
      endpoint.id_prefix_bits = 2;
      endpoint.id_prefix = host;
    };
    Start(options, /*connect=*/false);
    const uint32_t listener = endpoint(kDoor).Listen();
    address_ = endpoint(kDoor).listen_address(listener);
    ASSERT_NE(endpoint(kTaker).Listen({}, address_.nonce), 0u);
    host(kDoor).pass_on = [this](const ConnectionRequest& request) {
      EXPECT_EQ(request.listener, address_.nonce);
      seen_.insert({request.client_nonce, request.client});
      ++passed_on_;
      endpoint(kTaker).TakeRequest(request, now());
      host(kTaker).Touch();
      return PassedOn::kYes;
    };
  }
  size_t Count(uint32_t at, ConnectionEventKind kind) {
    return static_cast<size_t>(std::count_if(host(at).events.begin(), host(at).events.end(),
                                             [kind](const ConnectionEvent& event) { return event.kind == kind; }));
  }
  bool AwaitEstablished(ConnectionId connection) {
    return world().RunUntil([&] { return Event(0, ConnectionEventKind::kEstablished, connection) != nullptr; });
  }

  ListenAddress address_;
  std::set<std::pair<uint64_t, ConnectionId>> seen_;
  int passed_on_ = 0;
};

TEST_P(SeveralEndpointsTest, TheOneThatTakesTheRequestAnswersIt) {
  const ConnectionId connection = endpoint(0).Connect(address_, now());
  ASSERT_TRUE(AwaitEstablished(connection));
  EXPECT_EQ(passed_on_, 1);
  EXPECT_EQ(host(kDoor).events.size(), 0u);
  EXPECT_EQ(endpoint(kDoor).connections(), 0u);
  ASSERT_TRUE(world().RunUntil([&] { return Count(kTaker, ConnectionEventKind::kEstablished) == 1; }));
  const ConnectionId taken = host(kTaker).events.back().connection;
  std::vector<uint8_t> from(100'000, 7), to(from.size());
  ASSERT_EQ(endpoint(kTaker).PostReceive(taken, {.buffer = {to.data(), to.size()}}, now()), PostResult::kOk);
  ASSERT_EQ(endpoint(0).PostSend(connection, {.buffer = {from.data(), from.size()}}, now()), PostResult::kOk);
  host(kTaker).Touch();
  host(0).Touch();
  ASSERT_TRUE(world().RunUntil([&] { return to == from; }));
  EXPECT_EQ(endpoint(kDoor).counters().rx_data_packets, 0u);
}

TEST_P(SeveralEndpointsTest, ARequestThatComesAgainIsOneConnection) {
  int accepts = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    fate.drop = (packet.bytes[0] & 0x0f) == static_cast<uint8_t>(wire::PacketType::kAccept) && accepts++ < 3;
  });
  const ConnectionId connection = endpoint(0).Connect(address_, now());
  ASSERT_TRUE(AwaitEstablished(connection));
  EXPECT_EQ(accepts, 4);
  EXPECT_EQ(passed_on_, 4);
  EXPECT_EQ(seen_.size(), 1u) << "copies of a request are not known for such";
  EXPECT_EQ(Count(kTaker, ConnectionEventKind::kRequest), 1u);
  EXPECT_EQ(endpoint(kTaker).connections(), 1u);
}

TEST_P(SeveralEndpointsTest, WhatComesForNoListenerThereIsRefusedFromThere) {
  address_.nonce ^= 1;  // the door would not know it either, but is not asked
  const ConnectionId connection = endpoint(0).Connect(address_, now());
  ASSERT_TRUE(world().RunUntil([&] { return Event(0, ConnectionEventKind::kClosed, connection) != nullptr; }));
  EXPECT_EQ(Event(0, ConnectionEventKind::kClosed, connection)->reason, CloseReason::kRefusedNoListener);
  EXPECT_EQ(endpoint(kTaker).counters().handshakes_refused, 1u);
  EXPECT_EQ(endpoint(kDoor).counters().handshakes_refused, 0u);
}

TEST_P(SeveralEndpointsTest, LeavesARequestUnansweredWhileItsEngineHasNoRoom) {
  const auto pass_on = std::exchange(host(kDoor).pass_on, [](const ConnectionRequest&) { return PassedOn::kFull; });
  const ConnectionId connection = endpoint(0).Connect(address_, now());
  world().RunFor(Duration::Seconds(1));
  EXPECT_GT(endpoint(kDoor).counters().listen_overflows, 1u) << "the client asks again";
  EXPECT_EQ(endpoint(kDoor).counters().handshakes_refused, 0u);
  EXPECT_EQ(endpoint(kDoor).connections(), 0u);
  EXPECT_EQ(endpoint(kTaker).connections(), 0u);
  host(kDoor).pass_on = pass_on;
  EXPECT_TRUE(AwaitEstablished(connection));
}

TEST_P(SeveralEndpointsTest, NothingIsPassedOnThatIsNotVouchedFor) {
  if (!GetParam()) GTEST_SKIP() << "without a key nobody vouches for anything";
  network().SetHook([&](NetworkPacket& packet, Fate&) {  // as by another key
    if ((packet.bytes[0] & 0x0f) != static_cast<uint8_t>(wire::PacketType::kInit)) return;
    packet.bytes[packet.header_bytes - 1] ^= 1;
    std::memset(packet.bytes.data() + 8, 0, 4);
    const uint32_t crc = wire::Crc32c(std::span(packet.bytes).first(packet.header_bytes));
    std::memcpy(packet.bytes.data() + 8, &crc, 4);
  });
  const ConnectionId connection = endpoint(0).Connect(address_, now());
  ASSERT_TRUE(world().RunUntil([&] { return Event(0, ConnectionEventKind::kClosed, connection) != nullptr; }));
  EXPECT_EQ(passed_on_, 0);
  EXPECT_GT(endpoint(kDoor).counters().rx_forged, 0u);
}

TEST_P(SeveralEndpointsTest, WhatIsNoRequestIsNotTaken) {
  std::vector<uint8_t> bytes(40, 0x5a);
  ConnectionRequest request = {.client_address = world().lane(0).address(), .listener = address_.nonce, .body = bytes};
  endpoint(kTaker).TakeRequest(request, now());
  request.body = {};
  endpoint(kTaker).TakeRequest(request, now());
  request.port = 7;  // there is none
  endpoint(kTaker).TakeRequest(request, now());
  world().RunFor(Duration::Millis(10));
  EXPECT_EQ(endpoint(kTaker).connections(), 0u);
  EXPECT_EQ(host(kTaker).events.size(), 0u);
}

TEST_P(SeveralEndpointsTest, NumbersOfConnectionsBeginWithTheEndpoints) {
  std::map<uint32_t, std::set<ConnectionId>> numbers;
  for (uint32_t round = 0; round < 3000; ++round) {  // a slot is used more often than the rest of the bits can count
    for (uint32_t at = 0; at < 3; ++at) {
      const ConnectionId connection = endpoint(at).ReserveConnection();
      EXPECT_EQ(connection >> 30, at);
      EXPECT_NE(connection, kNoConnection);
      if (round < 1000) {
        EXPECT_TRUE(numbers[at].insert(connection).second);
      }
      endpoint(at).Abort(connection, now());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SeveralEndpointsTest, ::testing::Bool(),
                         [](const auto& keyed) { return keyed.param ? "WithAKey" : "InClear"; });

// ---- regions

TEST(SeveralTables, ARegionHasTheSameNumberInAll) {
  MemoryTable first, second;
  std::vector<uint8_t> bytes(64);
  std::vector<RegionId> live;
  uint64_t key = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    Region region = {.base = bytes.data(), .bytes = bytes.size(), .access = kRemoteRead, .key = ++key};
    region.id = first.Add(region);
    ASSERT_NE(region.id, kUnregistered);
    ASSERT_EQ(second.Add(region), region.id);
    ASSERT_NE(second.Find(region.id), nullptr);
    EXPECT_EQ(second.CheckRemote(key, 0, 64, kRemoteRead, kNoConnection), second.Find(region.id));
    live.push_back(region.id);
    if (i % 3 == 2) {  // some go, in another order
      const size_t at = (i * 7) % live.size();
      first.Remove(live[at]);
      second.Remove(live[at]);
      EXPECT_EQ(second.Find(live[at]), nullptr);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  // One that is in use is not taken again.
  Region again = {.base = bytes.data(), .bytes = bytes.size(), .id = live.front(), .key = ++key};
  EXPECT_EQ(second.Add(again), kUnregistered);
  EXPECT_EQ(second.CheckRemote(key, 0, 1, 0, kNoConnection), nullptr);
}

TEST(SeveralTables, EndpointsRegisterUnderTheNameThatTheFirstOneGave) {
  WorldOptions options;
  ScriptedWorld world(options);
  std::vector<uint8_t> bytes(64);
  Endpoint &first = world.endpoint(0), &second = world.endpoint(1);
  first.DeregisterMemory(first.RegisterMemory(bytes.data(), 8, kRemoteRead), world.now());  // they are not in step
  const RegionId region = first.RegisterMemory(bytes.data(), bytes.size(), kRemoteRead);
  const uint64_t key = first.ExportMemory(region).key;
  EXPECT_EQ(second.RegisterMemory(bytes.data(), bytes.size(), kRemoteRead, MemoryKind::kHost, kNoConnection,
                                  {.id = region, .key = key}),
            region);
  EXPECT_EQ(second.ExportMemory(region).key, key);
  EXPECT_EQ(
      second.RegisterMemory(bytes.data(), 8, kRemoteRead, MemoryKind::kHost, kNoConnection, {.id = region, .key = key}),
      kUnregistered)
      << "the key is in use";
  const RegionId chosen = first.RegisterMemoryAs(42, 1000, bytes.data(), bytes.size(), kRemoteRead);
  EXPECT_EQ(second.RegisterMemoryAs(42, 1000, bytes.data(), bytes.size(), kRemoteRead, {.id = chosen}), chosen);
  EXPECT_EQ(second.ExportMemory(chosen).bytes, 1000 + bytes.size());
}

}  // namespace
}  // namespace paceline::support
