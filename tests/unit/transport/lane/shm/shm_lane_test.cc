// What is the shm lane's own; the contract of all lanes is held in tests/conformance/lane_conformance_test.cc.
#include "transport/lane/shm/shm_lane.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/lane_traffic.h"
#include "transport/lane/shm/shm_address.h"

namespace paceline {
namespace {

std::unique_ptr<Lane> Make(const ShmLaneOptions& options = {}) {
  auto lane = CreateShmLane(options);
  EXPECT_TRUE(lane.ok()) << lane.status();
  return lane.ok() ? *std::move(lane) : nullptr;
}

size_t Descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

size_t Mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t rings = 0;
  for (std::string line; std::getline(maps, line);) rings += line.find("paceline-ring") != std::string::npos;
  return rings;
}

class ShmLaneTest : public ::testing::Test {
 protected:
  // Sends from `list` until there is no room; returns how many went.
  static size_t Fill(Lane& from, const SegmentList& list, uint32_t peer) {
    size_t sent = 0;
    while (sent < list.size() && from.RoomTo(peer) > 0) sent += from.Send(list.all().subspan(sent, 1));
    return sent;
  }

  std::unique_ptr<Lane> a_ = Make(), b_ = Make(), c_ = Make();
  uint32_t to_b_ = a_->OpenPeer(b_->address());
};

TEST_F(ShmLaneTest, StatesWhatItCanDo) {
  const LaneCapabilities& can = a_->capabilities();
  EXPECT_FALSE(can.remote_placement);
  EXPECT_TRUE(can.keeps_path_order);
  EXPECT_TRUE(can.keeps_bytes_intact);
  EXPECT_TRUE(can.this_machine_only);
  EXPECT_EQ(can.receive_buffer_bytes, 0u) << "nothing is dropped for want of room";
  EXPECT_FALSE(can.link_rate.is_zero());
  EXPECT_TRUE(a_->status().up);
}

TEST_F(ShmLaneTest, AFullRingIsBackPressureAndNothingIsLost) {
  SegmentList list;
  list.AddRun(200, to_b_, 0, a_->capabilities().max_packet_bytes);
  size_t sent = 0, seen = 0;
  while (sent < list.size()) {
    const size_t more = Fill(*a_, list, to_b_);
    ASSERT_GT(more, 0u);
    sent += more;
    for (const ReceivedSegment& segment : ReceiveSome(*b_, more))
      seen += segment.bytes.size() == list.contents(0).size();
    b_->Receive({}, Time());  // gives back the last of them
  }
  EXPECT_EQ(seen, sent);
  EXPECT_EQ(a_->counters().tx_drops, 0u);
}

TEST_F(ShmLaneTest, APeerThatTakesNothingHoldsUpNobodyElse) {
  const uint32_t to_c = a_->OpenPeer(c_->address());
  SegmentList list;
  list.AddRun(200, to_b_, 0, a_->capabilities().max_packet_bytes);
  ASSERT_LT(Fill(*a_, list, to_b_), list.size());
  EXPECT_EQ(a_->RoomTo(to_b_), 0u);
  EXPECT_GT(a_->RoomTo(to_c), 0u);
  EXPECT_GT(a_->room(), 0u);
  SegmentList other;
  other.Add(to_c, 0, 1000);
  EXPECT_EQ(a_->Send(other.all()), 1u);
  EXPECT_EQ(ReceiveSome(*c_, 1).size(), 1u);
}

TEST_F(ShmLaneTest, SmallPacketsStillGoWhenThereIsNoRoomForData) {
  SegmentList list, acknowledgement;
  list.AddRun(200, to_b_, 0, a_->capabilities().max_packet_bytes);
  const size_t sent = Fill(*a_, list, to_b_);
  acknowledgement.AddRun(16, to_b_, 0, 100);
  EXPECT_EQ(a_->Send(acknowledgement.all()), 16u);
  EXPECT_EQ(a_->counters().tx_drops, 0u);
  EXPECT_EQ(ReceiveSome(*b_, sent + 16).size(), sent + 16);
}

TEST_F(ShmLaneTest, TheDescriptorTellsOfRoom) {
  SegmentList list;
  list.AddRun(200, to_b_, 0, a_->capabilities().max_packet_bytes);
  const size_t sent = Fill(*a_, list, to_b_);
  a_->Receive({}, Time());
  ASSERT_TRUE(a_->PrepareToWait());
  pollfd waiting{a_->wait_descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
  EXPECT_EQ(ReceiveSome(*b_, sent).size(), sent);
  b_->Receive({}, Time());
  EXPECT_EQ(poll(&waiting, 1, 2000), 1);
  a_->Receive({}, Time());
  EXPECT_GT(a_->RoomTo(to_b_), 0u);
}

// Nobody asks for room there any more, as when a connection to it has ended.
TEST_F(ShmLaneTest, APeerThatWasFullKeepsNobodyAwake) {
  for (const bool closed : {false, true}) {
    SegmentList list;
    list.AddRun(200, to_b_, 0, a_->capabilities().max_packet_bytes);
    const size_t sent = Fill(*a_, list, to_b_);
    EXPECT_EQ(a_->RoomTo(to_b_), 0u);
    if (closed) a_->ClosePeer(to_b_);
    EXPECT_EQ(ReceiveSome(*b_, sent).size(), sent);
    b_->Receive({}, Time());
    int refused = 0;
    while (refused < 10 && !a_->PrepareToWait()) {
      a_->Receive({}, Time());
      ++refused;
    }
    EXPECT_LE(refused, 1) << closed;
  }
}

TEST_F(ShmLaneTest, NobodyWaitsWhileItHoldsWhatOthersWaitFor) {
  SegmentList list;
  list.Add(to_b_, 0, 100);
  a_->Send(list.all());
  std::array<RxSegment, 4> out;
  size_t got = 0;
  while ((got = b_->Receive(out, Time())) == 0) continue;
  EXPECT_FALSE(b_->PrepareToWait()) << "the packet's place is not given back";
  EXPECT_EQ(b_->Receive(out, Time()), 0u);
  EXPECT_TRUE(b_->PrepareToWait());
}

TEST_F(ShmLaneTest, NoSystemCallWhileBothAreAwake) {
  SegmentList list;
  list.Add(to_b_, 0, 100);
  a_->Send(list.all());
  ASSERT_EQ(ReceiveSome(*b_, 1).size(), 1u);  // it may have slept for this one
  const uint64_t rings = a_->counters().tx_calls;
  std::array<RxSegment, 4> out;
  for (int i = 0; i < 100; ++i) {
    a_->Send(list.all());
    EXPECT_EQ(b_->Receive(out, Time()), 1u);
  }
  EXPECT_EQ(a_->counters().tx_calls, rings);
}

// As one of many processes that yield to each other: so many polls as it makes otherwise between looks take seconds.
TEST_F(ShmLaneTest, WhoPollsSeldomHearsOfAPeerAllTheSame) {
  SegmentList list;
  list.Add(to_b_, 0, 100);
  a_->Send(list.all());
  std::array<RxSegment, 4> out;
  Time now;
  size_t got = 0;
  for (int poll = 0; poll < 10 && got == 0; ++poll) got = b_->Receive(out, now = now + Duration::Millis(10));
  EXPECT_EQ(got, 1u);
}

TEST_F(ShmLaneTest, WhatAPeerHadSentBeforeItsEndStillArrives) {
  SegmentList first, list;
  first.Add(to_b_, 0, 1000);
  a_->Send(first.all());
  ASSERT_EQ(ReceiveSome(*b_, 1).size(), 1u);
  list.AddRun(10, to_b_, 0, 1000);
  a_->Send(list.all());
  a_.reset();
  b_->PrepareToWait();  // the next look begins with the sockets: it hears of the end before it reads
  EXPECT_EQ(ReceiveSome(*b_, 10).size(), 10u);
  EXPECT_EQ(ReceiveSome(*b_, 1, 64, 20).size(), 0u);
}

TEST_F(ShmLaneTest, WhatIsSentToAPeerThatEndedIsDroppedAndCounted) {
  const LaneAddress address = b_->address();
  b_.reset();
  SegmentList list;
  list.AddRun(10, to_b_, 0, 1000);
  ReceiveSome(*a_, 1, 64, 20);  // hears of its end
  EXPECT_GT(a_->RoomTo(to_b_), 0u) << "nobody waits for it";
  EXPECT_EQ(a_->Send(list.all()), 10u);
  EXPECT_EQ(a_->counters().tx_drops, 10u);
  a_->ClosePeer(to_b_);
  EXPECT_EQ(a_->OpenPeer(address), 0u);
}

TEST_F(ShmLaneTest, ATokenThatNobodyHasIsNotReached) { EXPECT_EQ(a_->OpenPeer(ToLaneAddress(ShmToken{1, 2, 3})), 0u); }

TEST_F(ShmLaneTest, ComingAndGoingLeavesNothing) {
  size_t descriptors = 0, mappings = 0;
  for (int round = 0; round < 300; ++round) {
    if (round == 100) {
      descriptors = Descriptors();
      mappings = Mappings();
    }
    const auto guest = Make();
    const uint32_t to_guest = a_->OpenPeer(guest->address());
    const uint32_t to_host = guest->OpenPeer(a_->address());
    SegmentList there, back;
    there.Add(to_guest, 0, 3000);
    back.Add(to_host, 0, 3000);
    a_->Send(there.all());
    guest->Send(back.all());
    ASSERT_EQ(ReceiveSome(*guest, 1).size(), 1u);
    ASSERT_EQ(ReceiveSome(*a_, 1).size(), 1u);
    a_->ClosePeer(to_guest);
  }
  ReceiveSome(*a_, 1, 64, 20);
  EXPECT_LE(Descriptors(), descriptors);
  EXPECT_LE(Mappings(), mappings);
}

TEST_F(ShmLaneTest, UnusedPeersAreKeptWithinABound) {
  std::vector<std::unique_ptr<Lane>> guests;
  for (int i = 0; i < 150; ++i) {
    guests.push_back(Make());
    a_->ClosePeer(a_->OpenPeer(guests.back()->address()));
  }
  // Ours and b's with both maps of each ring: what the guests have not taken in yet is mapped here only.
  EXPECT_LE(Mappings(), 2u * (1 + 64 + 1));
}

TEST(ShmLane, RefusesOptionsThatCannotBe) {
  ShmLaneOptions options;
  options.max_packet_bytes = 100;
  EXPECT_NE(CreateShmLane(options).status().message().find("max_packet_bytes 100"), std::string::npos);
  options = {};
  options.ring_bytes = 100'000;
  EXPECT_NE(CreateShmLane(options).status().message().find("ring_bytes 100000"), std::string::npos);
  options.ring_bytes = 1 << 16;
  options.max_packet_bytes = 1 << 16;
  EXPECT_FALSE(CreateShmLane(options).ok()) << "not even four packets";
}

}  // namespace
}  // namespace paceline
