// The lane over net_tap: at the other end is the kernel of a network namespace of the test's own, with a lane of UDP
// sockets. Skipped with the reason where that cannot be.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/support/cabled_namespaces.h"
#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"
#include "transport/lane/udp/udp_lane.h"

namespace paceline {
namespace {

class DpdkTapTest : public DpdkTest {
 protected:
  void SetUp() override {
    if (!namespaces_.why_not().empty()) GTEST_SKIP() << namespaces_.why_not();
    if (access("/dev/net/tun", R_OK | W_OK) != 0) GTEST_SKIP() << "no /dev/net/tun";
  }
  void Start(uint32_t mtu, const std::string& settings) {
    static int made = 0;
    namespaces_.Enter(0);
    lane_ = MakeLane(absl::StrCat("net_tap", made++, ",iface=pltap", settings, ",address=192.0.2.1/24"), mtu);
    EXPECT_EQ(std::system("ip addr add 192.0.2.2/24 dev pltap && ip link set pltap up"), 0);
    UdpLaneOptions options;
    options.bind_address = "192.0.2.2:0";
    auto kernel = CreateUdpLane(options);
    namespaces_.Leave();
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    kernel_ = *std::move(kernel);
    ASSERT_TRUE(lane_ != nullptr);
    to_kernel_ = lane_->OpenPeer(kernel_->address());
    to_lane_ = kernel_->OpenPeer(lane_->address());
    for (int i = 0; i < 5000 && lane_->RoomTo(to_kernel_) == 0; ++i) {
      lane_->Receive(out_, MonotonicNow());
      usleep(1000);
    }
    ASSERT_GT(lane_->RoomTo(to_kernel_), 0u);
  }
  // While the lane answers the kernel, which asks for its address.
  std::vector<std::string> ReceivedByLane(size_t count) {
    std::vector<std::string> contents;
    for (const auto& segment : ReceiveSome(*lane_, count)) contents.push_back(segment.bytes);
    std::sort(contents.begin(), contents.end());
    return contents;
  }

  CabledNamespaces namespaces_;
  std::unique_ptr<Lane> lane_, kernel_;
  uint32_t to_kernel_ = 0, to_lane_ = 0;
  std::array<RxSegment, 64> out_;
};

std::vector<std::string> Sorted(const SegmentList& list) {
  std::vector<std::string> contents;
  for (size_t i = 0; i < list.size(); ++i) contents.push_back(list.contents(i));
  std::sort(contents.begin(), contents.end());
  return contents;
}

TEST_F(DpdkTapTest, PacketsGoToAndComeFromSocketsOfTheKernelByAllQueues) {
  for (const char* settings : {"", ",queues=4"}) {
    Start(0, settings);
    const uint32_t most = lane_->capabilities().max_packet_bytes;
    EXPECT_EQ(most, 1500u - 28);
    SegmentList there, back;
    for (uint16_t entropy = 0; entropy < 16; ++entropy) {
      for (const uint32_t bytes : {64u, 300u, most}) there.Add(to_kernel_, entropy, bytes);
    }
    ASSERT_EQ(lane_->Send(there.all()), there.size());
    std::vector<std::string> got;
    for (const auto& segment : ReceiveSome(*kernel_, there.size())) got.push_back(segment.bytes);
    std::sort(got.begin(), got.end());
    EXPECT_TRUE(got == Sorted(there)) << got.size();
    for (uint16_t entropy = 0; entropy < kernel_->capabilities().entropies; ++entropy) {
      for (const uint32_t bytes : {64u, 300u, most}) back.Add(to_lane_, entropy, bytes);
    }
    ASSERT_EQ(kernel_->Send(back.all()), back.size());
    EXPECT_TRUE(ReceivedByLane(back.size()) == Sorted(back));
    EXPECT_EQ(lane_->counters().rx_drops, 0u);
    lane_.reset();
  }
}

TEST_F(DpdkTapTest, WhatIsSentIsWhatStoodThereDuringTheCall) {
  Start(0, "");
  std::string payload(1400, 'a');
  TxSegment segment;
  segment.peer = to_kernel_;
  segment.payload = reinterpret_cast<const uint8_t*>(payload.data());
  segment.payload_bytes = 1400;
  ASSERT_EQ(lane_->Send({&segment, 1}), 1u);
  std::fill(payload.begin(), payload.end(), '#');  // the buffer is its owner's again
  const auto got = ReceiveSome(*kernel_, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].bytes, std::string(1400, 'a'));
}

TEST_F(DpdkTapTest, TheMtuIsTheInterfacesToo) {
  Start(1280, "");
  const uint32_t most = 1280 - 28;
  EXPECT_EQ(lane_->capabilities().max_packet_bytes, most);
  EXPECT_EQ(kernel_->capabilities().max_packet_bytes, most);
  SegmentList there, back;
  there.Add(to_kernel_, 0, most);
  back.Add(to_lane_, 0, most);
  ASSERT_EQ(lane_->Send(there.all()), 1u);
  const auto got = ReceiveSome(*kernel_, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(got[0].bytes == there.contents(0));
  ASSERT_EQ(kernel_->Send(back.all()), 1u);
  EXPECT_TRUE(ReceivedByLane(1) == Sorted(back));
}

}  // namespace
}  // namespace paceline
