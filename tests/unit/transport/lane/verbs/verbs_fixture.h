// Two verbs lanes, each on a card of its own, in memory and by a clock of the test's.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_verbs.h"
#include "transport/lane/verbs/verbs_address.h"
#include "transport/lane/verbs/verbs_lane.h"

namespace paceline::support {

class VerbsFixture : public ::testing::Test {
 protected:
  struct Arrived {
    SegmentKind kind = SegmentKind::kPacket;
    std::string bytes;  // packets
    LaneAddress source;
    uint32_t connection = 0;
    uint32_t immediate = 0;
    uint32_t placed = 0;
    uint16_t entropy = 0;
    bool marked = false;
    Time received_at;
  };

  void SetUp() override { Start(); }
  void Start() {
    a_ = Make("fake0");
    b_ = Make("fake1");
    ASSERT_TRUE(a_ != nullptr && b_ != nullptr);
    to_b_ = a_->OpenPeer(b_->address());
    to_a_ = b_->OpenPeer(a_->address());
    ASSERT_NE(to_b_, 0u);
    memory_.assign(64 * 1024, 0);
    key_ = b_->RegisterMemory({.base = memory_.data(), .bytes = memory_.size()});
    ASSERT_NE(key_, 0u);
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
    EXPECT_EQ(cards_.objects(), 0u) << "objects that nobody destroyed";
    EXPECT_EQ(cards_.violations(), std::vector<std::string>());
  }
  std::unique_ptr<Lane> Make(const std::string& device, bool reliable = false) {
    VerbsLaneOptions options;
    options.device = device;
    options.reliable = reliable;
    options.traffic_class = traffic_class_;
    auto lane = CreateVerbsLane(options, &cards_);
    EXPECT_TRUE(lane.ok()) << lane.status();
    return lane.ok() ? *std::move(lane) : nullptr;
  }

  TxSegment WriteOf(uint32_t immediate, uint32_t bytes, uint16_t entropy = 0, uint32_t connection = 7) {
    payload_.assign(4096, static_cast<uint8_t>(immediate));
    TxSegment segment;
    segment.kind = SegmentKind::kWrite;
    segment.peer = to_b_;
    segment.entropy = entropy;
    segment.connection = connection;
    segment.immediate = immediate;
    segment.payload = payload_.data();
    segment.payload_bytes = bytes;
    segment.remote_address = reinterpret_cast<uint64_t>(memory_.data());
    segment.remote_key = key_;
    return segment;
  }
  void Send(const TxSegment& segment) { EXPECT_EQ(a_->Send({&segment, 1}), 1u); }
  void SendPacket(Lane& lane, uint32_t peer, const std::string& text, bool ecn_capable = false) {
    TxSegment segment;
    segment.peer = peer;
    segment.ecn_capable = ecn_capable;
    segment.header = reinterpret_cast<const uint8_t*>(text.data());
    segment.header_bytes = static_cast<uint16_t>(text.size());
    EXPECT_EQ(lane.Send({&segment, 1}), 1u);
  }
  std::vector<Arrived> Receive(Lane& lane) {
    std::vector<Arrived> result;
    std::array<RxSegment, 64> out;
    for (size_t count = 1; count > 0;) {
      count = lane.Receive(out, now_);
      for (size_t i = 0; i < count; ++i) {
        Arrived& one = result.emplace_back();
        one.kind = out[i].kind;
        if (out[i].data != nullptr) one.bytes.assign(reinterpret_cast<char*>(out[i].data), out[i].data_bytes);
        if (out[i].source != nullptr) one.source = *out[i].source;
        one.connection = out[i].connection;
        one.immediate = out[i].immediate;
        one.placed = out[i].placed_bytes;
        one.entropy = out[i].entropy;
        one.marked = out[i].congestion_experienced;
        one.received_at = out[i].received_at;
      }
    }
    return result;
  }
  // Both lanes look at what has come, for a while; what arrived at B.
  std::vector<Arrived> Run(Duration duration = Duration::Millis(1)) {
    std::vector<Arrived> result;
    for (int step = 0; step < 10; ++step) {
      now_ = now_ + duration / 10;
      Receive(*a_);
      for (Arrived& one : Receive(*b_)) result.push_back(std::move(one));
    }
    return result;
  }
  // The immediates of what was written.
  static std::vector<uint32_t> Immediates(const std::vector<Arrived>& arrived) {
    std::vector<uint32_t> list;
    for (const Arrived& one : arrived) {
      if (one.kind == SegmentKind::kWrite) list.push_back(one.immediate);
    }
    return list;
  }
  using List = std::vector<uint32_t>;

  FakeVerbs cards_{2};
  Time now_ = Time::FromNanos(1'000'000'000);
  std::unique_ptr<Lane> a_, b_;
  uint32_t to_b_ = 0, to_a_ = 0;
  std::vector<uint8_t> memory_, payload_;
  uint64_t key_ = 0;
  uint8_t traffic_class_ = 0;  // of lanes made from now on
};

}  // namespace paceline::support
