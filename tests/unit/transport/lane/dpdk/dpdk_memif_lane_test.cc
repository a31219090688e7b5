// The lane over net_memif: shared memory between two ports, here of one process. The driver copies while it sends, so
// payload is referred to and not copied by the lane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

class DpdkMemifTest : public DpdkTest {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "memif_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string Device(const std::string& role, const std::string& address) const {
    static int made = 0;
    return absl::StrCat("net_memif_test", made++, ",role=", role, ",socket=", folder_.string(),
                        "/s,socket-abstract=no,address=", address);
  }
  void StartServer(const std::string& settings = "") { server_ = MakeLane(Device("server", "192.0.2.1") + settings); }
  void StartClient(const std::string& settings = "") { client_ = MakeLane(Device("client", "192.0.2.2") + settings); }

  // Polls both until `done`, for at most 20 s.
  template <typename Done>
  bool PollUntil(Done done) {
    const Time end = MonotonicNow() + Duration::Seconds(20);
    while (!done()) {
      if (MonotonicNow() > end) return false;
      for (Lane* lane : {server_.get(), client_.get()}) {
        if (lane != nullptr) lane->Receive(out_, MonotonicNow());
      }
    }
    return true;
  }
  void ExpectTraffic() {
    const uint32_t peer = client_->OpenPeer(server_->address());
    ASSERT_NE(peer, 0u);
    ASSERT_TRUE(PollUntil([&] { return client_->status().up && server_->status().up && client_->RoomTo(peer) > 0; }));
    SegmentList list;
    for (const uint32_t bytes : {0u, 100u, 255u + 24, 256u + 24, 1400u, 1472u}) list.Add(peer, 0, bytes);
    ASSERT_EQ(client_->Send(list.all()), list.size());
    const auto got = ReceiveSome(*server_, list.size());
    ASSERT_EQ(got.size(), list.size());
    for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(got[i].bytes, list.contents(i));
    client_->ClosePeer(peer);
  }

  std::filesystem::path folder_;
  std::unique_ptr<Lane> server_, client_;
  std::array<RxSegment, 64> out_;
};

// All buffers that are left in the pools whose names begin so.
class TakenBuffers {
 public:
  explicit TakenBuffers(std::string prefix) : prefix_(std::move(prefix)) {
    rte_mempool_walk(
        [](rte_mempool* pool, void* self) {
          auto* taken = static_cast<TakenBuffers*>(self);
          if (std::string_view(pool->name).substr(0, taken->prefix_.size()) != taken->prefix_) return;
          while (rte_mbuf* buffer = rte_pktmbuf_alloc(pool)) taken->buffers_.push_back(buffer);
        },
        this);
  }
  ~TakenBuffers() {
    for (rte_mbuf* buffer : buffers_) rte_pktmbuf_free(buffer);
  }
  TakenBuffers(const TakenBuffers&) = delete;
  TakenBuffers& operator=(const TakenBuffers&) = delete;
  size_t count() const { return buffers_.size(); }

 private:
  std::string prefix_;
  std::vector<rte_mbuf*> buffers_;
};

TEST_F(DpdkMemifTest, ServerAndClientMeetAndPromiseNothingOfWhatIsBeyond) {
  StartServer();
  ASSERT_TRUE(server_ != nullptr);
  EXPECT_FALSE(server_->status().up) << "nobody has connected";
  StartClient();
  ASSERT_TRUE(client_ != nullptr);
  ExpectTraffic();
  // One end of a memif that somebody names is as a rule a switch, which leads to a network.
  EXPECT_FALSE(server_->capabilities().this_machine_only);
  EXPECT_FALSE(server_->capabilities().keeps_bytes_intact);
}

TEST_F(DpdkMemifTest, ThePairThatIsMadeWithoutAPortStaysOnThisMachine) {
  setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  auto server = OpenDpdkLanes({}), client = OpenDpdkLanes({});
  ASSERT_TRUE(server.ok() && client.ok()) << server.status() << client.status();
  server_ = std::move(server->front());
  client_ = std::move(client->front());
  ExpectTraffic();
  for (const Lane* lane : {server_.get(), client_.get()}) {
    EXPECT_TRUE(lane->capabilities().this_machine_only);
    EXPECT_TRUE(lane->capabilities().keeps_bytes_intact);
  }
}

TEST_F(DpdkMemifTest, WhatIsSentIsWhatStoodThereDuringTheCall) {
  StartServer();
  StartClient();
  ASSERT_TRUE(server_ != nullptr && client_ != nullptr);
  const uint32_t peer = client_->OpenPeer(server_->address());
  ASSERT_TRUE(PollUntil([&] { return client_->status().up && client_->RoomTo(peer) > 0; }));
  std::string payload(1400, 'a');
  TxSegment segment;
  segment.peer = peer;
  segment.payload = reinterpret_cast<const uint8_t*>(payload.data());
  segment.payload_bytes = 1400;
  for (int i = 0; i < 500; ++i) {  // more than one batch of references
    std::fill(payload.begin(), payload.end(), static_cast<char>('a' + i % 26));
    ASSERT_EQ(client_->Send({&segment, 1}), 1u) << i;
    std::fill(payload.begin(), payload.end(), '#');  // the buffer is its owner's again
    const auto got = ReceiveSome(*server_, 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].bytes, std::string(1400, static_cast<char>('a' + i % 26)));
  }
}

TEST_F(DpdkMemifTest, PathsHaveQueuesWhereBothSidesAskForThem) {
  StartServer(",queues=4");
  StartClient(",queues=4");
  ASSERT_TRUE(server_ != nullptr && client_ != nullptr);
  ExpectTraffic();
  const uint32_t peer = client_->OpenPeer(server_->address());
  SegmentList list;
  for (uint16_t entropy = 0; entropy < 60; ++entropy) list.Add(peer, entropy, 1400);
  ASSERT_EQ(client_->Send(list.all()), list.size());
  const auto got = ReceiveSome(*server_, list.size());
  ASSERT_EQ(got.size(), list.size());
  // The first queue's first: entropies 0, 4, 8 and so on.
  std::multiset<std::string> sent, arrived;
  for (size_t i = 0; i < list.size(); ++i) sent.insert(list.contents(i));
  for (const auto& segment : got) arrived.insert(segment.bytes);
  EXPECT_TRUE(arrived == sent);
  EXPECT_NE(got[1].bytes, list.contents(1)) << "all came by one queue";
}

TEST_F(DpdkMemifTest, WithoutABufferToReferByPayloadIsCopied) {
  StartServer();
  StartClient();
  ASSERT_TRUE(server_ != nullptr && client_ != nullptr);
  const TakenBuffers taken("paceline_ref_");
  EXPECT_GT(taken.count(), 0u);
  ExpectTraffic();
}

// The driver puts others over packets that the other end has not taken yet.
TEST_F(DpdkMemifTest, PacketsAreAsLargeAsTheirFramesFitIntoOneBuffer) {
  const auto try_mtu = [this](const std::string& settings, uint32_t mtu) {
    DpdkLaneOptions options;
    options.devices = {Device("server", "192.0.2.1") + settings};
    options.mtu = mtu;
    return std::string(OpenDpdkLanes(options).status().message());
  };
  EXPECT_THAT(try_mtu("", 2035), HasSubstr("mtu 2035: may be 576 to 2034, or 0 for the port's own (1500; a frame has "
                                           "to fit into bsize=2048)"));
  EXPECT_THAT(try_mtu(",bsize=4096", 4083), HasSubstr("may be 576 to 4082"));
  EXPECT_THAT(try_mtu(",bsize=1024", 1011), HasSubstr("may be 576 to 1010, or 0 for the port's own (1010;"));
  server_ = MakeLane(Device("server", "192.0.2.1") + ",rsize=4", 2034);
  client_ = MakeLane(Device("client", "192.0.2.2") + ",rsize=4", 2034);
  ASSERT_TRUE(server_ != nullptr && client_ != nullptr);
  ExpectTraffic();
  const uint32_t peer = client_->OpenPeer(server_->address());
  SegmentList list;
  for (uint32_t i = 0; i < 500; ++i) list.Add(peer, 0, i % 3 == 0 ? 40 : 2034 - 28);
  for (size_t sent = 0, seen = 0; seen < list.size();) {
    sent += client_->Send(list.all().subspan(sent));
    const auto got = ReceiveSome(*server_, sent - seen);
    ASSERT_EQ(got.size(), sent - seen);
    for (const auto& segment : got) ASSERT_TRUE(segment.bytes == list.contents(seen++)) << seen;
  }
}

TEST_F(DpdkMemifTest, ThePairThatIsMadeWithoutAPortHasBuffersForLargePackets) {
  setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  DpdkLaneOptions options;
  options.mtu = 9000;
  auto server = OpenDpdkLanes(options), client = OpenDpdkLanes(options);
  ASSERT_TRUE(server.ok() && client.ok()) << server.status() << client.status();
  server_ = std::move(server->front());
  client_ = std::move(client->front());
  EXPECT_EQ(client_->capabilities().max_packet_bytes, 9000u - 28);
  ExpectTraffic();
}

TEST_F(DpdkMemifTest, AClientComesBackToAServerThatWasAway) {
  StartServer();
  StartClient();
  ASSERT_TRUE(server_ != nullptr && client_ != nullptr);
  ExpectTraffic();
  const uint32_t changes = client_->status().change_count;
  server_.reset();
  ASSERT_TRUE(PollUntil([&] { return !client_->status().up; }));
  EXPECT_GT(client_->status().change_count, changes);
  SegmentList list;
  list.Add(client_->OpenPeer(ToLaneAddress(IpVersion::kV4, {192, 0, 2, 1}, DpdkDevice::kDefaultUdpPort)), 0, 100);
  const uint64_t drops = client_->counters().tx_drops;
  EXPECT_EQ(client_->Send(list.all()), 1u) << "lost rather than kept for ever";
  EXPECT_EQ(client_->counters().tx_drops, drops + 1);
  const Time later = MonotonicNow() + Duration::Seconds(1);
  ASSERT_TRUE(PollUntil([&] { return MonotonicNow() > later; }));  // it looks for the server in vain
  StartServer();
  ASSERT_TRUE(server_ != nullptr);
  ExpectTraffic();
}

TEST_F(DpdkMemifTest, AServerTakesAClientThatComesAgain) {
  StartServer();
  StartClient();
  ASSERT_TRUE(server_ != nullptr && client_ != nullptr);
  ExpectTraffic();
  client_.reset();
  ASSERT_TRUE(PollUntil([&] { return !server_->status().up; }));
  StartClient();
  ASSERT_TRUE(client_ != nullptr);
  ExpectTraffic();
}

// The driver gives the shared memory back on its own thread: not while another takes packets out of it.
TEST_F(DpdkMemifTest, AClientMayGoWhileTheServerTakesItsPackets) {
  constexpr int kRounds = 20;
  constexpr uint32_t kMtu = 9000;
  server_ = MakeLane(Device("server", "192.0.2.1") + ",bsize=9216,rsize=10", kMtu);
  ASSERT_TRUE(server_ != nullptr);
  std::atomic<bool> go{true}, stop{false}, up{false};
  std::thread taker([&] {
    while (!stop) {
      if (!go) continue;
      server_->Receive(out_, MonotonicNow());
      up = server_->status().up;
    }
  });
  std::array<RxSegment, 64> out;
  int met = 0;
  for (; met < kRounds; ++met) {
    client_ = MakeLane(Device("client", "192.0.2.2") + ",bsize=9216,rsize=10", kMtu);
    if (client_ == nullptr) break;
    const uint32_t peer = client_->OpenPeer(server_->address());
    const Time end = MonotonicNow() + Duration::Seconds(20);
    while (!(up && client_->status().up && client_->RoomTo(peer) > 0) && MonotonicNow() < end) {
      client_->Receive(out, MonotonicNow());
    }
    if (MonotonicNow() >= end) break;
    SegmentList list;
    for (int i = 0; i < 1000; ++i) list.Add(peer, 0, 8000);
    go = false;
    client_->Send(list.all());
    go = true;
    client_.reset();
    while (up && MonotonicNow() < end) std::this_thread::yield();
  }
  stop = true;
  taker.join();
  EXPECT_EQ(met, kRounds);
  EXPECT_GT(server_->counters().rx_packets, 0u);
}

TEST_F(DpdkMemifTest, TheDriverHearsThatTheClientHasGoneWhenTheLaneLooks) {
  const std::string device = Device("server", "192.0.2.1");
  server_ = MakeLane(device);
  StartClient();
  ASSERT_TRUE(server_ != nullptr && client_ != nullptr);
  ExpectTraffic();
  uint16_t id = 0;
  ASSERT_EQ(rte_eth_dev_get_port_by_name(device.substr(0, device.find(',')).c_str(), &id), 0);
  client_.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // for a driver that hears it by itself
  rte_eth_link link{};
  ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
  EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP) << "its memory is there while its queues may be in use";
  EXPECT_TRUE(PollUntil([&] {
    return !server_->status().up && rte_eth_link_get_nowait(id, &link) == 0 && link.link_status == RTE_ETH_LINK_DOWN;
  }));
}

TEST_F(DpdkMemifTest, AClientWithoutAServerSaysSo) {
  DpdkLaneOptions options;
  options.devices = {Device("client", "192.0.2.2")};
  const auto lanes = OpenDpdkLanes(options);
  ASSERT_FALSE(lanes.ok());
  EXPECT_NE(lanes.status().message().find("start"), absl::string_view::npos) << lanes.status();
}

}  // namespace
}  // namespace paceline
