// Endpoints with a cluster key: who gets in, what an attacker on the network can and cannot do.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/wire/checksum.h"
#include "transport/wire/handshake.h"
#include "transport/wire/packet.h"
#include "transport/wire/presence.h"

namespace paceline::support {
namespace {

wire::PacketType TypeOf(const NetworkPacket& packet) {
  return packet.bytes.empty() ? wire::PacketType::kInvalid : static_cast<wire::PacketType>(packet.bytes[0] & 0x0f);
}

void RefreshChecksum(NetworkPacket& packet) {
  wire::RefreshChecksum(std::span(packet.bytes).first(packet.header_bytes));
}

bool Contains(const std::vector<uint8_t>& bytes, const std::vector<uint8_t>& part) {
  return std::search(bytes.begin(), bytes.end(), part.begin(), part.end()) != bytes.end();
}

crypto::Secret Key(uint8_t fill) {
  crypto::Secret key;
  key.fill(fill);
  return key;
}

class ProtectionTest : public CoreFixture, public testing::WithParamInterface<bool> {
 protected:
  static WorldOptions Keyed(int key_of_0, int key_of_1, bool encrypt = false) {
    WorldOptions options;
    options.customize = [=](uint32_t host, EndpointOptions& endpoint) {
      const int key = host == 0 ? key_of_0 : key_of_1;
      if (key >= 0) endpoint.cluster_key = Key(static_cast<uint8_t>(key));
      endpoint.key_seed = Key(static_cast<uint8_t>(100 + host));
      endpoint.encrypt = encrypt;
    };
    return options;
  }
  // What becomes of an attempt of host 0 to connect.
  const ConnectionEvent* Attempt(const WorldOptions& options) {
    Start(options, false);
    const ConnectionId connection = endpoint(0).Connect(endpoint(1).listen_address(endpoint(1).Listen()), now());
    world().RunUntil([&] {
      return Event(0, ConnectionEventKind::kClosed, connection) != nullptr ||
             Event(0, ConnectionEventKind::kEstablished, connection) != nullptr;
    });
    const ConnectionEvent* closed = Event(0, ConnectionEventKind::kClosed, connection);
    return closed != nullptr ? closed : Event(0, ConnectionEventKind::kEstablished, connection);
  }
};

TEST_P(ProtectionTest, TheSameKeyConnectsAndCarriesEverything) {
  Start(Keyed(1, 1, GetParam()));
  network().StartCapture();
  std::vector<uint8_t> mark(64);
  for (size_t i = 0; i < mark.size(); ++i) mark[i] = static_cast<uint8_t>(3 * i + 1);
  GuardedBuffer& out = NewBuffer(100'000);
  for (size_t at = 0; at + mark.size() <= out.size(); at += mark.size()) {
    std::copy(mark.begin(), mark.end(), out.data() + at);
  }
  GuardedBuffer& in = NewBuffer(out.size());
  const uint64_t received = Receive(1, in);
  Send(0, out);
  AwaitOk(1, received);
  EXPECT_EQ(std::memcmp(in.data(), out.data(), out.size()), 0);
  Exchange(1, 50'000);
  bool in_clear = false;
  for (const NetworkPacket& packet : network().captured()) {
    EXPECT_NE(packet.bytes[1] & wire::kProtected, 0);
    in_clear |= Contains(packet.bytes, mark);
  }
  EXPECT_EQ(in_clear, !GetParam());
  for (uint32_t i : {0u, 1u}) {
    EXPECT_EQ(endpoint(i).counters().rx_forged, 0u);
    EXPECT_EQ(endpoint(i).counters().rx_replayed, 0u);
    EXPECT_EQ(endpoint(i).counters().retransmits, 0u);
  }
}

TEST_P(ProtectionTest, EncryptsWhenOneSideWantsIt) {
  WorldOptions options = Keyed(1, 1);
  const auto keyed = options.customize;
  options.customize = [keyed](uint32_t host, EndpointOptions& endpoint) {
    keyed(host, endpoint);
    endpoint.encrypt = (host == 0) == GetParam();
  };
  Start(options);
  network().StartCapture();
  GuardedBuffer& out = NewBuffer(1000);
  std::fill_n(out.data(), out.size(), uint8_t{0xab});
  GuardedBuffer& in = NewBuffer(1000);
  const uint64_t received = Receive(1, in);
  Send(0, out);
  AwaitOk(1, received);
  EXPECT_EQ(in.data()[999], 0xab);
  for (const NetworkPacket& packet : network().captured()) {
    EXPECT_FALSE(Contains(packet.bytes, std::vector<uint8_t>(32, 0xab)));
  }
}

TEST_P(ProtectionTest, NewKeysUnderWay) {
  WorldOptions options = Keyed(1, 1, GetParam());
  const auto keyed = options.customize;
  options.customize = [keyed](uint32_t host, EndpointOptions& endpoint) {
    keyed(host, endpoint);
    endpoint.packets_per_key = 100;
  };
  Start(options);
  Exchange(0, 10'000'000);
  Exchange(1, 10'000'000);
  EXPECT_GT(endpoint(0).counters().tx_packets, 2000u);
  EXPECT_EQ(endpoint(0).counters().rx_forged + endpoint(1).counters().rx_forged, 0u);
}

TEST_P(ProtectionTest, OtherKeysAreRefused) {
  for (const auto& [first, second] : {std::pair(1, 2), std::pair(1, -1), std::pair(-1, 1)}) {
    const ConnectionEvent* event = Attempt(Keyed(first, second, GetParam()));
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(event->kind, ConnectionEventKind::kClosed) << first << " " << second;
    EXPECT_EQ(event->reason, CloseReason::kRefusedKey) << first << " " << second;
    EXPECT_NE(event->detail.find("cluster key"), std::string::npos) << event->detail;
    EXPECT_EQ(endpoint(1).connections(), 0u);
    EXPECT_GT(endpoint(1).counters().rx_forged, 0u);
    EXPECT_EQ(host(1).events.size(), 0u);
  }
}

TEST_P(ProtectionTest, ARefusalOfAFriendIsBelievedAtOnce) {
  Start(Keyed(1, 1, GetParam()), false);
  const uint32_t listener = endpoint(1).Listen();
  const ListenAddress address = endpoint(1).listen_address(listener);
  endpoint(1).CloseListener(listener);
  const Time began = now();
  const ConnectionId connection = endpoint(0).Connect(address, now());
  ASSERT_TRUE(world().RunUntil([&] { return Event(0, ConnectionEventKind::kClosed, connection) != nullptr; }));
  EXPECT_EQ(Event(0, ConnectionEventKind::kClosed, connection)->reason, CloseReason::kRefusedNoListener);
  EXPECT_LT(now() - began, Duration::Millis(10));
}

// Somebody on the way answers each request with a refusal of his own: the connection is made all the same.
TEST_P(ProtectionTest, AForgedRefusalStopsNothing) {
  Start(Keyed(1, 1, GetParam()), false);
  network().SetHook([this](NetworkPacket& packet, Fate&) {
    if (TypeOf(packet) != wire::PacketType::kInit) return;
    const auto init = wire::ParseInit(std::span(packet.bytes).subspan(wire::kCommonBytes));
    ASSERT_TRUE(init.has_value());
    for (const bool tagged : {false, true}) {
      NetworkPacket forged;
      forged.from = packet.to;
      forged.to = packet.from;
      forged.bytes.resize(limits::kMaxControlBytes);
      const wire::RefusePacket refuse{.client_nonce = init->client_nonce, .reason = 5, .version = 1, .tagged = tagged};
      forged.header_bytes = static_cast<uint32_t>(wire::EncodeRefuse(refuse, init->client_connection, forged.bytes));
      forged.bytes.resize(forged.header_bytes);
      network().Inject(forged);
    }
  });
  const ConnectionId connection = endpoint(0).Connect(endpoint(1).listen_address(endpoint(1).Listen()), now());
  ASSERT_TRUE(world().RunUntil([&] { return Event(0, ConnectionEventKind::kEstablished, connection) != nullptr; }));
  EXPECT_GT(endpoint(0).counters().rx_forged, 0u);
}

// The server itself is made to refuse something that looks like the request: another version, a tag that is not right.
TEST_P(ProtectionTest, TheServersOwnRefusalsOfForgedRequestsStopNothing) {
  Start(Keyed(1, 1, GetParam()), false);
  size_t longest = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (TypeOf(packet) == wire::PacketType::kRefuse) longest = std::max(longest, packet.bytes.size());
    if (TypeOf(packet) != wire::PacketType::kInit) return;
    fate.extra_delay = Duration::Micros(100);  // the forged ones are answered first
    NetworkPacket other_version = packet;
    other_version.bytes.resize(wire::kCommonBytes + 16);
    other_version.header_bytes = wire::kCommonBytes + 16;
    wire::FinishPacket(other_version.bytes, wire::PacketType::kInit, 0, 0);
    other_version.bytes[0] = static_cast<uint8_t>((wire::kVersion + 1) << 4 | 1);
    RefreshChecksum(other_version);
    network().Inject(other_version);
    NetworkPacket bad_tag = packet;  // with the cookie, when the packet has one
    bad_tag.bytes.back() ^= 1;
    RefreshChecksum(bad_tag);
    network().Inject(bad_tag);
  });
  const ConnectionId connection = endpoint(0).Connect(endpoint(1).listen_address(endpoint(1).Listen()), now());
  ASSERT_TRUE(world().RunUntil([&] { return Event(0, ConnectionEventKind::kEstablished, connection) != nullptr; }));
  EXPECT_GT(endpoint(0).counters().rx_forged, 0u);
  EXPECT_GT(longest, 0u);
  EXPECT_LE(longest, wire::kCommonBytes + 16) << "an answer longer than the question amplifies";
}

// Somebody on the way answers each question with a Gone, with its right token: the peer, who is only stopped for a
// while, is not taken for gone.
TEST_P(ProtectionTest, AForgedGoneEndsNothing) {
  Start(Keyed(1, 1, GetParam()));
  uint32_t forgeries = 0;
  network().SetHook([&](NetworkPacket& packet, Fate&) {
    if (TypeOf(packet) != wire::PacketType::kAsk) return;
    const auto ask = wire::ParsePresence(std::span(packet.bytes).subspan(wire::kCommonBytes));
    ASSERT_TRUE(ask.has_value());
    wire::PresencePacket gone = *ask;
    gone.connection = connection(1);
    for (const bool tagged : {false, true}) {  // the tag is the question's
      gone.tagged = tagged;
      NetworkPacket forged;
      forged.from = packet.to;
      forged.to = packet.from;
      forged.bytes.resize(limits::kMaxControlBytes);
      forged.header_bytes =
          static_cast<uint32_t>(wire::EncodePresence(wire::PacketType::kGone, gone, ask->connection, forged.bytes));
      forged.bytes.resize(forged.header_bytes);
      network().Inject(forged);
      ++forgeries;
    }
  });
  const uint64_t received = Receive(1, NewBuffer(100'000));
  const uint64_t sent = Send(0, NewFilled(100'000, 1));
  world().RunFor(Duration::Micros(3));
  host(1).Freeze();
  world().RunFor(Duration::Seconds(3));
  host(1).Thaw();
  AwaitOk(0, sent);
  AwaitOk(1, received);
  EXPECT_GE(forgeries, 4u);
  EXPECT_EQ(endpoint(0).counters().rx_forged, forgeries);
}

// Questions of who has no key, or another one, are not answered; nor of who has one where there is none.
TEST_P(ProtectionTest, QuestionsOfStrangersAreNotAnswered) {
  for (const auto& [first, second] : {std::pair(1, 2), std::pair(1, -1), std::pair(-1, 1)}) {
    Start(Keyed(first, second, GetParam()), false);
    // A connection that only one side has, of an endpoint without its peer.
    const ConnectionId ours = endpoint(0).ReserveConnection();
    endpoint(0).Establish(ours, {.peer_connection = 77, .addresses = {world().lane(1).address()}}, now());
    std::array<uint8_t, 8> bytes{};
    endpoint(0).PostSend(ours, {.buffer = {.data = bytes.data(), .bytes = bytes.size()}}, now());
    host(0).Touch();
    world().RunFor(Duration::Seconds(1));
    EXPECT_GT(endpoint(0).counters().asks_sent, 0u);
    EXPECT_GT(endpoint(1).counters().rx_forged, 0u) << first << " " << second;
    EXPECT_EQ(endpoint(1).counters().gones_sent, 0u) << first << " " << second;
    EXPECT_EQ(endpoint(0).counters().connections_gone, 0u);
  }
}

// What made one connection makes no other one when that is over.
TEST_P(ProtectionTest, ARecordedHandshakeMakesNoConnection) {
  Start(Keyed(1, 1, GetParam()), false);
  const ListenAddress address = endpoint(1).listen_address(endpoint(1).Listen());
  network().StartCapture();
  const ConnectionId connection = endpoint(0).Connect(address, now());
  ASSERT_TRUE(world().RunUntil([&] { return Event(0, ConnectionEventKind::kEstablished, connection) != nullptr; }));
  endpoint(0).Close(connection, now());
  world().RunFor(Duration::Seconds(3));
  ASSERT_EQ(endpoint(1).connections(), 0u);
  const std::vector<NetworkPacket> packets = network().captured();
  const size_t events = host(1).events.size();
  for (int seconds = 0; seconds < 90; seconds += 5) {
    for (const NetworkPacket& packet : packets) network().Inject(packet);
    world().RunFor(Duration::Seconds(5));
    EXPECT_EQ(endpoint(1).connections(), 0u);
  }
  EXPECT_EQ(host(1).events.size(), events);
}

// Packets that are not the peer's leave nothing behind at an idle connection.
TEST_P(ProtectionTest, ForgedPacketsCostNoMemory) {
  Start(Keyed(1, 1, GetParam()));
  network().StartCapture();
  Exchange(0, 10'000);
  world().RunFor(Duration::Seconds(1));
  const size_t idle = endpoint(1).MemoryOf(connection(1));
  NetworkPacket forged = network().captured().front();
  ASSERT_EQ(forged.to, 1u);
  for (const uint64_t counter : {uint64_t{1000}, SecureChannel::kPacketsPerEpoch, ~uint64_t{0}}) {
    std::memcpy(forged.bytes.data() + forged.header_bytes - SecureChannel::kTrailerBytes, &counter, sizeof(counter));
    RefreshChecksum(forged);
    network().Inject(forged);
    world().RunFor(Duration::Micros(100));
    EXPECT_EQ(endpoint(1).MemoryOf(connection(1)), idle) << counter;
  }
  EXPECT_EQ(endpoint(1).counters().rx_forged, 3u);
  Exchange(0, 10'000);
}

// A card that places data by itself would place it in clear: what is encrypted goes as packets.
TEST_P(ProtectionTest, CardsPlaceNothingOfAnEncryptedConnection) {
  WorldOptions options = Keyed(1, 1, GetParam());
  options.lanes = LaneKind::kHca;
  Start(options);
  network().StartCapture();
  GuardedBuffer& memory = NewBuffer(100'000);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  AwaitOk(0, Write(0, NewFilled(100'000, 5), remote));
  EXPECT_TRUE(memory.Holds(5));
  Exchange(0, 200'000);
  size_t placed = 0;
  for (const NetworkPacket& packet : network().captured()) placed += packet.kind == SegmentKind::kWrite;
  EXPECT_EQ(placed == 0, GetParam());
}

// Headers are not encrypted: a card's key in them would let whoever sees it write into the receive's buffer.
TEST_P(ProtectionTest, KeysOfCardsAreNotTold) {
  WorldOptions options = Keyed(1, 1, GetParam());
  options.lanes = LaneKind::kHca;
  Start(options);
  network().StartCapture();
  GuardedBuffer& in = NewBuffer(200'000);
  const RegionId region = endpoint(1).RegisterMemory(in.data(), in.size(), kLocalOnly);
  const uint64_t receive = Receive(1, in, 1, 0, nullptr, region);
  Send(0, NewFilled(200'000, 1), 1);
  AwaitOk(1, receive);
  std::array<uint8_t, 8> address;
  const auto at = reinterpret_cast<uintptr_t>(in.data());
  for (size_t i = 0; i < address.size(); ++i) address[i] = static_cast<uint8_t>(at >> (8 * i));
  size_t told = 0;
  for (const NetworkPacket& packet : network().captured()) {
    for (const bool reversed : {false, true}) {
      const auto& bytes = packet.bytes;
      const auto found = reversed ? std::search(bytes.begin(), bytes.end(), address.rbegin(), address.rend())
                                  : std::search(bytes.begin(), bytes.end(), address.begin(), address.end());
      told += found != bytes.end();
    }
  }
  EXPECT_EQ(told == 0, GetParam());
}

// Nothing of the handshake can be changed under way: not the addresses, not the keys, not what was agreed.
TEST_P(ProtectionTest, AChangedHandshakeMakesNoConnection) {
  for (const wire::PacketType type : {wire::PacketType::kInit, wire::PacketType::kAccept}) {
    size_t bytes = 0;
    Start(Keyed(1, 1, GetParam()), false);
    network().SetHook([&](NetworkPacket& packet, Fate&) {
      if (TypeOf(packet) == type) bytes = packet.header_bytes;
    });
    world().Connect(0, 1);
    ASSERT_GT(bytes, 60u);
    for (size_t at = wire::kCommonBytes; at < bytes; ++at) {
      if (type == wire::PacketType::kInit && at >= wire::kCommonBytes + wire::kInitCookieAt &&
          at < wire::kCommonBytes + wire::kInitCookieAt + sizeof(wire::Cookie)) {
        continue;  // the server's own: a wrong one is answered with a right one, for ever
      }
      WorldOptions options = Keyed(1, 1, GetParam());
      options.endpoint.connect_timeout = Duration::Millis(200);
      Start(options, false);
      network().SetHook([&](NetworkPacket& packet, Fate&) {
        if (TypeOf(packet) != type) return;
        packet.bytes[at] ^= 0x04;
        RefreshChecksum(packet);
      });
      const ConnectionId connection = endpoint(0).Connect(endpoint(1).listen_address(endpoint(1).Listen()), now());
      world().RunFor(Duration::Seconds(1));
      ASSERT_EQ(Event(0, ConnectionEventKind::kEstablished, connection), nullptr)
          << "type " << static_cast<int>(type) << ", byte " << at;
      if (type == wire::PacketType::kInit) {
        ASSERT_EQ(host(1).events.size(), 0u) << "byte " << at;
      }
    }
  }
}

// Somebody on the way changes a tenth of the packets so that their checksums are right: everything arrives intact.
TEST_P(ProtectionTest, ChangedPacketsAreLostPackets) {
  Start(Keyed(1, 1, GetParam()));
  uint64_t changed = 0;
  network().SetHook([&](NetworkPacket& packet, Fate&) {
    if (packet.index % 10 != 0) return;
    packet.bytes[wire::kCommonBytes + packet.index / 10 % (packet.bytes.size() - wire::kCommonBytes)] ^= 0x10;
    RefreshChecksum(packet);
    ++changed;
  });
  Exchange(0, 3'000'000);
  Exchange(1, 3'000'000);
  world().RunFor(Duration::Millis(1));
  EXPECT_GT(changed, 100u);
  uint64_t dropped = 0;  // (A number that was changed may look like an old one.)
  for (const uint32_t at : {0u, 1u}) dropped += endpoint(at).counters().rx_forged + endpoint(at).counters().rx_replayed;
  EXPECT_EQ(dropped, changed);
}

// A packet is sealed before the lane copies its payload. What the application changes in between no tag fits any more:
// such a packet is a lost one, and what is sent again is sealed anew, so the operation ends all the same. Encryption
// copies the payload as it seals.
TEST_P(ProtectionTest, MemoryThatChangesUnderASendDelaysItOnly) {
  Start(Keyed(1, 1, GetParam()));
  GuardedBuffer& out = NewFilled(1000, 5);
  GuardedBuffer& in = NewBuffer(1000);
  const uint64_t received = Receive(1, in);
  const uint8_t sealed = out.data()[500];
  const auto changed = static_cast<uint8_t>(~sealed);
  const uint64_t sent = Send(0, out);
  auto burst = std::make_unique<TxBurst>();
  const size_t count = endpoint(0).PollTransmit(0, *burst, TxBurst::kSegments, now());
  ASSERT_EQ(count, 1u);
  out.data()[500] = changed;
  ASSERT_EQ(world().lane(0).Send(std::span(burst->segments).first(count)), 1u);
  AwaitOk(1, received);
  AwaitOk(0, sent);
  EXPECT_EQ(in.data()[500], GetParam() ? sealed : changed);
  EXPECT_EQ(endpoint(1).counters().rx_forged, GetParam() ? 0u : 1u);
  EXPECT_EQ(endpoint(0).counters().retransmits > 0, !GetParam());
}

// Everything ever sent comes again, later: nothing is taken, nothing is answered. The second time the connection
// was idle in between and has given back what it can make anew.
TEST_P(ProtectionTest, ReplaysAreCountedAndLeftAlone) {
  for (const Duration pause : {Duration::Millis(100), Duration::Seconds(1)}) {
    Start(Keyed(1, 1, GetParam()));
    network().StartCapture();
    Exchange(0, 200'000);
    Exchange(1, 200'000);
    const std::vector<NetworkPacket> packets = network().captured();
    world().RunFor(pause);
    const EndpointCounters before[2] = {endpoint(0).counters(), endpoint(1).counters()};
    for (const NetworkPacket& packet : packets) network().Inject(packet);
    world().RunFor(Duration::Millis(100));
    uint64_t replayed = 0;
    for (uint32_t i : {0u, 1u}) {
      replayed += endpoint(i).counters().rx_replayed;
      EXPECT_EQ(endpoint(i).counters().rx_data_packets, before[i].rx_data_packets);
      EXPECT_EQ(endpoint(i).counters().tx_packets, before[i].tx_packets);
    }
    EXPECT_EQ(replayed, packets.size());
    Exchange(0, 10'000);
  }
}

// Whoever knows both connection numbers can still say nothing in their names.
TEST_P(ProtectionTest, UnprotectedPacketsAreNotHeard) {
  Start(Keyed(1, 1, GetParam()));
  network().StartCapture();
  Exchange(0, 10'000);
  world().RunFor(Duration::Millis(10));
  const NetworkPacket sample = network().captured().front();
  NetworkPacket abort = sample;
  abort.bytes.assign(wire::kCommonBytes + 4, 0);
  abort.header_bytes = wire::kCommonBytes + 4;
  abort.payload_bytes = 0;
  abort.bytes[wire::kCommonBytes] = 10;  // Abort
  wire::FinishPacket(abort.bytes, wire::PacketType::kControl, 0, connection(1));
  network().Inject(abort);
  wire::FinishPacket(abort.bytes, wire::PacketType::kControl, wire::kProtected, connection(1));
  network().Inject(abort);
  world().RunFor(Duration::Millis(10));
  EXPECT_EQ(endpoint(1).counters().rx_forged, 2u);
  EXPECT_EQ(Event(1, ConnectionEventKind::kClosed, connection(1)), nullptr);
  Exchange(0, 10'000);
}

// A header that a switch has cut the payload from proves nothing; the loss shows in other ways.
TEST_P(ProtectionTest, TrimmedPacketsAreLostPackets) {
  WorldOptions options = Keyed(1, 1, GetParam());
  options.packet_capabilities.trimming = true;
  Start(options);
  network().SetHook([](NetworkPacket& packet, Fate&) {
    if (packet.payload_bytes > 0 && packet.index % 7 == 0) packet.Trim();
  });
  Exchange(0, 1'000'000);
  EXPECT_EQ(endpoint(1).counters().rx_forged, 0u);
  EXPECT_GT(endpoint(1).counters().rx_trimmed, 0u);
  EXPECT_EQ(endpoint(0).counters().lost_trimmed, 0u);
}

// Each connection has keys of its own: what opens one opens no other.
TEST_P(ProtectionTest, NoPublicKeyIsUsedTwice) {
  Start(Keyed(1, 1, GetParam()), false);
  network().StartCapture();
  for (int i = 0; i < 20; ++i) ASSERT_NE(world().Connect(i % 2, 1 - i % 2).first, kNoConnection);
  std::set<std::array<uint8_t, 32>> clients, servers;
  for (const NetworkPacket& packet : network().captured()) {
    const auto body = std::span(packet.bytes).subspan(wire::kCommonBytes);
    if (TypeOf(packet) == wire::PacketType::kInit) clients.insert(wire::ParseInit(body)->credentials.public_key);
    if (TypeOf(packet) == wire::PacketType::kAccept) servers.insert(wire::ParseAccept(body)->credentials.public_key);
  }
  EXPECT_EQ(clients.size(), 20u);
  EXPECT_EQ(servers.size(), 20u);
  for (const auto& key : clients) EXPECT_EQ(servers.count(key), 0u);
}

// Who knows the seed of everything else, or has seen many keys, knows no other one.
TEST_P(ProtectionTest, MemoryKeysAndNoncesFollowFromTheSecret) {
  const auto numbers = [](uint8_t secret) {
    WorldOptions options;
    options.customize = [secret](uint32_t, EndpointOptions& endpoint) {
      endpoint.seed = 5;
      endpoint.key_seed = Key(secret);
    };
    ScriptedWorld world(options);
    Endpoint& endpoint = world.endpoint(0);
    std::vector<uint64_t> drawn;
    std::array<uint8_t, 64> memory{};
    for (int i = 0; i < 100; ++i) {
      drawn.push_back(endpoint.ExportMemory(endpoint.RegisterMemory(memory.data(), 64, kRemoteRead)).key);
      drawn.push_back(endpoint.listen_address(endpoint.Listen()).nonce);
    }
    return drawn;
  };
  const std::vector<uint64_t> one = numbers(1), other = numbers(2);
  EXPECT_EQ(one, numbers(1));
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_NE(one[i], other[i]);
    // Nor is the secret part the same each time.
    if (i > 0) {
      EXPECT_NE(one[i] ^ other[i], one[i - 1] ^ other[i - 1]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ProtectionTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Encrypted" : "Authenticated"; });

}  // namespace
}  // namespace paceline::support
