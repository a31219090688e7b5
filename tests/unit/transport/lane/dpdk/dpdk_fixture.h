// Ports of DPDK in memory, for tests: pairs of net_ring ports, where what one sends the other receives. They are made
// by the test, as by an application that uses DPDK itself, and found by the lane by their names.
#pragma once

#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/lane_traffic.h"
#include "tests/unit/transport/lane/dpdk/ring_pair.h"
#include "transport/lane/dpdk/dpdk_eal.h"
#include "transport/lane/dpdk/dpdk_packet_lane.h"
#include "transport/lane/dpdk/dpdk_peers.h"

namespace paceline {

// The frames of a port, without a lane.
class BarePort {
 public:
  explicit BarePort(const std::string& name, uint16_t queues = 1) {
    EXPECT_EQ(rte_eth_dev_get_port_by_name(name.c_str(), &id_), 0);
    pool_ = rte_pktmbuf_pool_create(absl::StrCat("pl_bare_", id_).c_str(), 511, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
    const rte_eth_conf conf{};
    EXPECT_EQ(rte_eth_dev_configure(id_, queues, queues, &conf), 0);
    for (uint16_t i = 0; i < queues; ++i) {
      EXPECT_EQ(rte_eth_rx_queue_setup(id_, i, 512, 0, nullptr, pool_), 0);
      EXPECT_EQ(rte_eth_tx_queue_setup(id_, i, 512, 0, nullptr), 0);
    }
    EXPECT_EQ(rte_eth_dev_start(id_), 0);
  }
  ~BarePort() { rte_eth_dev_stop(id_); }
  BarePort(const BarePort&) = delete;
  BarePort& operator=(const BarePort&) = delete;

  std::vector<std::vector<uint8_t>> Receive(uint16_t queue = 0) {
    std::array<rte_mbuf*, 64> got;
    const uint16_t count = rte_eth_rx_burst(id_, queue, got.data(), got.size());
    std::vector<std::vector<uint8_t>> frames;
    for (uint16_t i = 0; i < count; ++i) {
      const auto* bytes = rte_pktmbuf_mtod(got[i], const uint8_t*);
      frames.emplace_back(bytes, bytes + rte_pktmbuf_data_len(got[i]));
      rte_pktmbuf_free(got[i]);
    }
    return frames;
  }
  void SendBytes(std::span<const uint8_t> frame, uint16_t queue = 0) {
    rte_mbuf* buffer = rte_pktmbuf_alloc(pool_);
    ASSERT_NE(buffer, nullptr);
    std::memcpy(rte_pktmbuf_append(buffer, static_cast<uint16_t>(frame.size())), frame.data(), frame.size());
    ASSERT_EQ(rte_eth_tx_burst(id_, queue, &buffer, 1), 1);
  }
  static std::vector<uint8_t> Frame(const FrameFlow& flow, size_t payload_bytes) {
    const std::vector<uint8_t> payload(payload_bytes, 0x5a);
    const std::span<const uint8_t> piece(payload);
    std::vector<uint8_t> frame(FrameHeaderBytes(flow.version));
    WriteFrameHeaders(flow, {&piece, 1}, UdpChecksumMode::kComputed, frame.data());
    frame.insert(frame.end(), payload.begin(), payload.end());
    return frame;
  }
  void Send(const FrameFlow& flow, size_t payload_bytes, uint16_t queue = 0) {
    SendBytes(Frame(flow, payload_bytes), queue);
  }
  // Answers what was asked for, as the owner of `address`.
  void AnswerArp(const IpAddress& address) {
    Neighbours::Options options;
    options.mac = {{0x02, 0, 0, 0, 0, 0x77}};
    options.address = address;
    Neighbours neighbours(options);
    for (const auto& frame : Receive()) neighbours.HandleFrame(frame, Time());
    while (const auto answer = neighbours.PollTransmit(Time())) SendBytes(answer->view());
  }

 private:
  uint16_t id_ = 0;
  rte_mempool* pool_ = nullptr;
};

class DpdkTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const absl::Status status = StartDpdkEal({}, "");
    ASSERT_TRUE(status.ok()) << status;
  }
  static std::unique_ptr<Lane> MakeLane(const std::string& device, uint32_t mtu = 0) {
    DpdkLaneOptions options;
    options.devices = {device};
    options.mtu = mtu;
    auto lanes = OpenDpdkLanes(options);
    EXPECT_TRUE(lanes.ok()) << lanes.status();
    return lanes.ok() ? std::move(lanes->front()) : nullptr;
  }
  // The lane, which has opened the peer 192.0.2.2, asks for it, and `other` answers: from now on it is known.
  static void Introduce(Lane& lane, BarePort& other) {
    std::array<RxSegment, 64> out;
    lane.Receive(out, MonotonicNow());
    other.AnswerArp({192, 0, 2, 2});
    lane.Receive(out, MonotonicNow());
  }
};

// Two lanes facing each other that know where the other is.
class DpdkPairTest : public DpdkTest {
 protected:
  void Connect(const std::string& address_a, const std::string& address_b, uint32_t mtu = 0) {
    const RingPair ports = RingPair::Make();
    a_ = MakeLane(absl::StrCat(ports.a, ",address=", address_a), mtu);
    b_ = MakeLane(absl::StrCat(ports.b, ",address=", address_b), mtu);
    ASSERT_TRUE(a_ != nullptr && b_ != nullptr);
    to_b_ = a_->OpenPeer(b_->address());
    to_a_ = b_->OpenPeer(a_->address());
    ASSERT_NE(to_b_, 0u);
    ASSERT_NE(to_a_, 0u);
    Time now = MonotonicNow();
    for (int i = 0; i < 10 && (a_->RoomTo(to_b_) == 0 || b_->RoomTo(to_a_) == 0); ++i) {
      EXPECT_EQ(a_->Receive(out_, now), 0u);
      EXPECT_EQ(b_->Receive(out_, now), 0u);
    }
    ASSERT_GT(a_->RoomTo(to_b_), 0u);
    ASSERT_GT(b_->RoomTo(to_a_), 0u);
  }

  std::unique_ptr<Lane> a_, b_;
  uint32_t to_b_ = 0, to_a_ = 0;
  std::array<RxSegment, 64> out_;
};

}  // namespace paceline
