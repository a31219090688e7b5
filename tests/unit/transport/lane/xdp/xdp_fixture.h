// xdp lanes on either end of a virtual cable, and UDP lanes as their peers; skipped with the reason where that cannot
// be.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/cabled_namespaces.h"
#include "tests/support/lane_traffic.h"
#include "transport/lane/udp/udp_lane.h"
#include "transport/lane/xdp/xdp_lane.h"

namespace paceline {

class XdpFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status status = CheckXdpLane(); !status.ok()) GTEST_SKIP() << status.message();
    cable_ = std::make_unique<CabledNamespaces>();
    if (!cable_->why_not().empty()) GTEST_SKIP() << cable_->why_not();
  }

  absl::StatusOr<std::unique_ptr<Lane>> TryXdp(size_t side, const XdpLaneOptions& options) {
    cable_->Enter(side);
    auto lane = CreateXdpLane(options);
    cable_->Leave();
    return lane;
  }
  std::unique_ptr<Lane> Xdp(size_t side, const std::string& bind = CabledNamespaces::kDevice) {
    XdpLaneOptions options;
    options.bind_address = bind;
    auto lane = TryXdp(side, options);
    EXPECT_TRUE(lane.ok()) << lane.status();
    return lane.ok() ? *std::move(lane) : nullptr;
  }
  std::unique_ptr<Lane> Udp(size_t side, const std::string& bind = CabledNamespaces::kDevice) {
    UdpLaneOptions options;
    options.bind_address = bind;
    cable_->Enter(side);
    auto lane = CreateUdpLane(options);
    cable_->Leave();
    EXPECT_TRUE(lane.ok()) << lane.status();
    return lane.ok() ? *std::move(lane) : nullptr;
  }

  // All of it arrives, in order and intact.
  static void SendAndCheck(Lane& from, Lane& to, const SegmentList& list) {
    size_t sent = 0, seen = 0;
    while (sent < list.size()) {
      const size_t taken = from.Send(list.all().subspan(sent, std::min<size_t>(16, list.size() - sent)));
      ASSERT_GT(taken, 0u);
      sent += taken;
      for (const ReceivedSegment& segment : ReceiveSome(to, taken)) {
        ASSERT_TRUE(segment.bytes == list.contents(seen))
            << "segment " << seen << ", " << segment.bytes.size() << " bytes";
        EXPECT_EQ(segment.source == from.address(), list.all()[seen].entropy == 0);
        ++seen;
      }
      ASSERT_EQ(seen, sent) << "from " << from.name() << " to " << to.name() << ", dropped " << from.counters().tx_drops
                            << " and " << to.counters().rx_drops;
      Idle(from);
    }
  }
  static void SendAndCheck(Lane& from, Lane& to, size_t count = 20, uint32_t bytes = 500) {
    const uint32_t peer = from.OpenPeer(to.address());
    SegmentList list;
    list.AddRun(count, peer, 0, bytes);
    SendAndCheck(from, to, list);
    from.ClosePeer(peer);
  }

  // Polls as an engine does, without anything that arrives being expected.
  static void Idle(Lane& lane) {
    std::array<RxSegment, 8> out;
    lane.Receive(out, MonotonicNow());
  }
  static void Idle(Lane& lane, int milliseconds) {
    for (int i = 0; i < milliseconds; ++i) {
      Idle(lane);
      usleep(1100);
    }
  }
  // The descriptor has nothing to tell. The kernel's news of neighbours counts too, and may come any time.
  static bool WaitForSilence(Lane& lane) {
    pollfd waiting{lane.wait_descriptor(), POLLIN, 0};
    for (int i = 0; i < 100; ++i) {
      Idle(lane, 2);
      if (poll(&waiting, 1, 0) == 0) return true;
    }
    return false;
  }
  static bool WaitFor(Lane& lane, bool up) {
    for (int i = 0; i < 3000; ++i) {
      Idle(lane, 1);
      if (lane.status().up == up) return true;
    }
    return false;
  }

  std::unique_ptr<CabledNamespaces> cable_;
};

}  // namespace paceline
