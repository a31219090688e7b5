// Two processes, one of which is killed: the other goes on, and nothing stays behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "tests/support/lane_traffic.h"
#include "transport/lane/shm/shm_address.h"
#include "transport/lane/shm/shm_lane.h"

namespace paceline {
namespace {

bool SocketExists(const LaneAddress& address) {
  ShmToken token;
  EXPECT_TRUE(ToShmToken(address, token));
  const std::string name = SocketName(token);
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

class ShmProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(pipe_), 0); }
  void TearDown() override {
    if (child_ > 0) Kill();
    for (const int end : pipe_) close(end);
  }
  // The child makes a lane, tells its address and does `work` until it is killed.
  void Start(const std::function<void(Lane&)>& work) {
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // it must not outlive a test that failed
      auto lane = CreateShmLane({});
      if (!lane.ok() || write(pipe_[1], &(*lane)->address(), sizeof(LaneAddress)) < 0) _exit(1);
      while (true) work(**lane);
    }
    ASSERT_EQ(read(pipe_[0], &address_, sizeof(address_)), static_cast<ssize_t>(sizeof(address_)));
    auto lane = CreateShmLane({});  // after the fork: the child must not hold our descriptors
    ASSERT_TRUE(lane.ok()) << lane.status();
    lane_ = *std::move(lane);
    peer_ = lane_->OpenPeer(address_);
    ASSERT_NE(peer_, 0u);
  }
  void Kill() {
    kill(child_, SIGKILL);
    EXPECT_EQ(waitpid(child_, nullptr, 0), child_);
    child_ = -1;
  }
  void SendOne() {
    SegmentList list;
    list.Add(peer_, 0, 8000);
    lane_->Send(list.all());
  }

  int pipe_[2] = {-1, -1};
  pid_t child_ = -1;
  LaneAddress address_;
  std::unique_ptr<Lane> lane_;
  uint32_t peer_ = 0;
};

// Sends back what it gets, sleeping whenever there is nothing.
void Echo(Lane& lane) {
  static uint32_t to_parent = 0;
  for (const ReceivedSegment& segment : ReceiveSome(lane, 1)) {
    if (to_parent == 0) to_parent = lane.OpenPeer(segment.source);
    TxSegment answer;
    answer.peer = to_parent;
    answer.header = reinterpret_cast<const uint8_t*>(segment.bytes.data());
    answer.header_bytes = 24;
    answer.payload = answer.header + 24;
    answer.payload_bytes = static_cast<uint32_t>(segment.bytes.size() - 24);
    lane.Send({&answer, 1});
  }
}

TEST_F(ShmProcessesTest, ThereAndBack) {
  Start(Echo);
  for (int i = 0; i < 200; ++i) {
    SegmentList list;
    list.Add(peer_, 0, 24 + static_cast<uint32_t>(i * 97 % 20'000));
    ASSERT_EQ(lane_->Send(list.all()), 1u);
    const auto got = ReceiveSome(*lane_, 1, 64, 20'000);
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0].bytes, list.contents(0));
    ASSERT_TRUE(got[0].source == address_);
  }
}

TEST_F(ShmProcessesTest, AReaderIsKilledWhileItsRingIsFull) {
  Start([](Lane&) { pause(); });
  while (lane_->RoomTo(peer_) > 0) SendOne();
  EXPECT_EQ(lane_->counters().tx_drops, 0u);
  ASSERT_TRUE(SocketExists(address_));
  Kill();
  EXPECT_FALSE(SocketExists(address_));
  ReceiveSome(*lane_, 1, 64, 50);  // hears of its end
  EXPECT_GT(lane_->RoomTo(peer_), 0u) << "nobody waits for the dead";
  SendOne();
  EXPECT_EQ(lane_->counters().tx_drops, 1u);
  lane_->ClosePeer(peer_);
  EXPECT_EQ(lane_->OpenPeer(address_), 0u);
}

TEST_F(ShmProcessesTest, AWriterIsKilledWhileItWrites) {
  for (int round = 0; round < 10; ++round) {
    Start([](Lane& lane) {
      static uint32_t to_parent = 0;
      if (to_parent == 0) {
        const auto got = ReceiveSome(lane, 1);
        if (got.empty()) return;
        to_parent = lane.OpenPeer(got[0].source);
      }
      static const SegmentList list = [] {
        SegmentList made;
        made.AddRun(8, to_parent, 0, 30'000);
        return made;
      }();
      if (lane.RoomTo(to_parent) >= 8) lane.Send(list.all());
    });
    SendOne();
    const auto got = ReceiveSome(*lane_, 50 + 13 * static_cast<size_t>(round), 64, 20'000);
    ASSERT_GE(got.size(), 50u);
    Kill();
    // What is whole is read; what it was writing when it died is not there.
    for (const ReceivedSegment& segment : ReceiveSome(*lane_, 1000, 64, 10)) ASSERT_EQ(segment.bytes.size(), 30'000u);
    EXPECT_EQ(lane_->counters().rx_drops, 0u);
    EXPECT_FALSE(SocketExists(address_));
  }
}

}  // namespace
}  // namespace paceline
