// Every lane between processes, held to the contract of transport/lane/lane.h: two of its kind, facing each other.
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tests/support/cabled_namespaces.h"
#include "tests/support/lane_traffic.h"
#include "transport/engine/lane_factory.h"

namespace paceline {
namespace {

class LaneConformance : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const LaneKindInfo& kind : ListLaneKinds()) {
      if (kind.name == GetParam() && !kind.usable) GTEST_SKIP() << kind.name << ": " << kind.reason;
    }
    // Lanes that meet at a place in the file system meet at one of their own.
    std::string folder = ::testing::TempDir() + "lanes_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    if (GetParam() == kXdp) cable_ = std::make_unique<CabledNamespaces>();
    if (cable_ != nullptr && !cable_->why_not().empty()) GTEST_SKIP() << cable_->why_not();
    ASSERT_TRUE(cable_ == nullptr || cable_->Introduce());
    a_ = Make(0);
    b_ = Make(1);
    ASSERT_TRUE(a_ != nullptr && b_ != nullptr);
    to_b_ = a_->OpenPeer(b_->address());
    to_a_ = b_->OpenPeer(a_->address());
    BecomeAcquainted();
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  // Lanes that have to find out first where a peer is say so: they have no room for it yet.
  void BecomeAcquainted() {
    std::array<RxSegment, 4> none;
    const Time end = MonotonicNow() + Duration::Seconds(20);
    while (a_->RoomTo(to_b_) == 0 || b_->RoomTo(to_a_) == 0) {
      ASSERT_LT(MonotonicNow(), end) << "the lanes do not find each other";
      for (Lane* lane : {a_.get(), b_.get()}) ASSERT_EQ(lane->Receive(none, MonotonicNow()), 0u);
    }
  }
  std::unique_ptr<Lane> Make(size_t side) {
    LaneFactoryOptions options;
    options.kind = GetParam();
    if (cable_ != nullptr) {
      options.devices = {CabledNamespaces::kDevice};
      cable_->Enter(side);
    }
    auto lanes = CreateLanes(options);
    if (cable_ != nullptr) cable_->Leave();
    EXPECT_TRUE(lanes.ok()) << lanes.status();
    return lanes.ok() ? std::move(lanes->front()) : nullptr;
  }
  static bool Readable(const Lane& lane, int patience_ms) {
    pollfd waiting{lane.wait_descriptor(), POLLIN, 0};
    return poll(&waiting, 1, patience_ms) == 1;
  }
  // Nothing waits at the lane any more, what its descriptor had to say included.
  static void Settle(Lane& lane) {
    ReceiveSome(lane, 1, 64, 10);
    while (!lane.PrepareToWait()) ReceiveSome(lane, 1, 64, 10);
  }
  // In steps that any lane holds; checks number, order and contents.
  void SendAndCheck(const SegmentList& list, size_t out_size = 64) {
    size_t sent = 0, seen = 0;
    while (sent < list.size()) {
      const size_t step = std::min<size_t>({a_->RoomTo(to_b_), 8, list.size() - sent});
      ASSERT_GT(step, 0u);
      const size_t taken = a_->Send(list.all().subspan(sent, step));
      sent += taken;
      for (const ReceivedSegment& segment : ReceiveSome(*b_, taken, out_size)) {
        ASSERT_EQ(segment.bytes, list.contents(seen)) << "segment " << seen;
        EXPECT_TRUE(segment.source == a_->address());
        ++seen;
      }
    }
    EXPECT_EQ(seen, list.size());
    EXPECT_EQ(a_->counters().tx_packets, list.size());
    EXPECT_EQ(b_->counters().rx_packets, list.size());
    EXPECT_EQ(a_->counters().tx_bytes, b_->counters().rx_bytes);
    EXPECT_EQ(a_->counters().tx_drops + b_->counters().rx_drops, 0u);
  }

  static constexpr std::string_view kXdp = "xdp";  // is at home on cables only

  std::unique_ptr<CabledNamespaces> cable_;
  std::filesystem::path folder_;
  std::unique_ptr<Lane> a_, b_;
  uint32_t to_b_ = 0, to_a_ = 0;
};

TEST_P(LaneConformance, AllSizesArriveInOrderAndIntact) {
  const uint32_t most = a_->capabilities().max_packet_bytes;
  SegmentList list;
  for (uint32_t bytes = 1; bytes < most; bytes += bytes / 3 + 1) list.Add(to_b_, 0, bytes);
  for (const uint32_t bytes : {most, most - 1, 64u, 1u, most}) list.Add(to_b_, 0, bytes);
  for (uint32_t i = 0; i < 300; ++i) list.Add(to_b_, 0, 1 + i * 7919 % most);
  SendAndCheck(list);
}

TEST_P(LaneConformance, ASmallOutKeepsTheRestForTheNextCall) {
  SegmentList list;
  list.AddRun(40, to_b_, 0, 1000);
  list.AddRun(40, to_b_, 0, 333);
  SendAndCheck(list, 3);
}

TEST_P(LaneConformance, EmptyPacketsArrive) {
  SegmentList list;
  list.Add(to_b_, 0, 0);
  list.Add(to_b_, 0, 10);
  EXPECT_EQ(a_->Send(list.all()), 2u);
  const auto got = ReceiveSome(*b_, 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].bytes.size(), 0u);
}

TEST_P(LaneConformance, OversizeIsDroppedAndCountedAndTheRestGoesOn) {
  SegmentList list;
  list.Add(to_b_, 0, 100);
  list.Add(to_b_, 0, a_->capabilities().max_packet_bytes + 1);
  list.Add(to_b_, 0, 200);
  EXPECT_EQ(a_->Send(list.all()), 3u);
  EXPECT_EQ(a_->counters().tx_drops, 1u);
  const auto got = ReceiveSome(*b_, 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1].bytes, list.contents(2));
}

TEST_P(LaneConformance, AnAddressHasOneNumberWhileItIsOpen) {
  EXPECT_NE(to_b_, 0u);
  EXPECT_EQ(a_->OpenPeer(b_->address()), to_b_);
  a_->ClosePeer(to_b_);
  SegmentList list;
  list.Add(to_b_, 0, 100);
  EXPECT_EQ(a_->Send(list.all()), 1u);
  EXPECT_EQ(ReceiveSome(*b_, 1).size(), 1u) << "still open once";
}

TEST_P(LaneConformance, AddressesOfOtherKindsAreNotReached) {
  LaneAddress foreign;
  foreign.size = 5;
  foreign.bytes[0] = 0xee;
  EXPECT_EQ(a_->OpenPeer(foreign), 0u);
  EXPECT_EQ(a_->OpenPeer(LaneAddress{}), 0u);
  SegmentList list;
  list.Add(0, 0, 100);
  list.Add(to_b_, 0, 50);
  EXPECT_EQ(a_->Send(list.all()), 2u);
  EXPECT_EQ(a_->counters().tx_drops, 1u);
  EXPECT_EQ(ReceiveSome(*b_, 1).size(), 1u);
}

TEST_P(LaneConformance, TheDescriptorTellsOfArrivalsAndIsSilentOtherwise) {
  if (a_->wait_descriptor() < 0) GTEST_SKIP() << a_->name() << " has no descriptor: it is polled";
  for (int round = 0; round < 3; ++round) {
    Settle(*b_);
    EXPECT_FALSE(Readable(*b_, 0)) << "nothing was sent";
    SegmentList list;
    list.Add(to_b_, 0, 100);
    ASSERT_EQ(a_->Send(list.all()), 1u);
    EXPECT_TRUE(Readable(*b_, 2000));
    EXPECT_EQ(ReceiveSome(*b_, 1).size(), 1u);
  }
}

TEST_P(LaneConformance, BothWaysAtOnce) {
  SegmentList there, back;
  there.AddRun(20, to_b_, 0, 700);
  back.AddRun(20, to_a_, 0, 900);
  EXPECT_EQ(a_->Send(there.all()), 20u);
  EXPECT_EQ(b_->Send(back.all()), 20u);
  const auto at_b = ReceiveSome(*b_, 20), at_a = ReceiveSome(*a_, 20);
  ASSERT_EQ(at_b.size(), 20u);
  ASSERT_EQ(at_a.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(at_b[i].bytes, there.contents(i));
    EXPECT_EQ(at_a[i].bytes, back.contents(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, LaneConformance, ::testing::Values("udp", "shm", "verbs", "xdp", "dpdk"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace paceline
