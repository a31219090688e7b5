// Peers that are no lanes of ours: wrong offers, and rings with anything in them. The lane loses them, nothing else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "tests/support/lane_traffic.h"
#include "transport/base/random.h"
#include "transport/lane/shm/shm_lane.h"
#include "transport/lane/shm/shm_memory.h"
#include "transport/lane/shm/shm_socket.h"
#include "transport/lane/shm/shm_sources.h"
#include "transport/lane/unix_socket.h"

namespace paceline {
namespace {

constexpr uint64_t kRing = ShmMemory::kLeastRing;

class ShmHostileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto lane = CreateShmLane({}), friendly = CreateShmLane({});
    ASSERT_TRUE(lane.ok() && friendly.ok());
    lane_ = *std::move(lane);
    friend_ = *std::move(friendly);
    to_lane_ = friend_->OpenPeer(lane_->address());
  }
  FileDescriptor Connect() {
    ShmToken token;
    EXPECT_TRUE(ToShmToken(lane_->address(), token));
    auto socket = ConnectShm(token);
    EXPECT_TRUE(socket.ok()) << socket.status();
    return *std::move(socket);
  }
  static ShmOffer GoodOffer() {
    ShmOffer offer;
    offer.ring_bytes = kRing;
    return offer;
  }
  void ExpectOthersAreServed() {
    SegmentList list;
    list.AddRun(5, to_lane_, 0, 2000);
    EXPECT_EQ(friend_->Send(list.all()), 5u);
    EXPECT_EQ(ReceiveSome(*lane_, 5).size(), 5u);
  }
  // The lane has hung up.
  static bool HungUp(const FileDescriptor& socket) {
    pollfd waiting{socket.get(), POLLIN, 0};
    return poll(&waiting, 1, 0) == 1 && (waiting.revents & POLLHUP) != 0;
  }
  void LetItLook() { EXPECT_EQ(ReceiveSome(*lane_, 1, 64, 10).size(), 0u); }

  std::unique_ptr<Lane> lane_, friend_;
  uint32_t to_lane_ = 0;
};

TEST_F(ShmHostileTest, BadOffersAreTurnedAway) {
  FileDescriptor good;
  const auto memory = ShmMemory::Create(kRing, &good);
  ASSERT_TRUE(memory.ok());
  const FileDescriptor unsealed(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.get(), kShmControlBytes + kRing), 0);
  const FileDescriptor null(open("/dev/null", O_RDWR));
  std::vector<FileDescriptor> sockets;
  const auto offer = [&](const ShmOffer& what, const FileDescriptor& with) {
    sockets.push_back(Connect());
    EXPECT_TRUE(SendOffer(sockets.back(), what, with));
  };
  ShmOffer wrong = GoodOffer();
  wrong.version = 2;
  offer(wrong, good);
  wrong = GoodOffer();
  wrong.ring_bytes *= 2;
  offer(wrong, good);
  wrong.ring_bytes = 0;
  offer(wrong, good);
  wrong.ring_bytes = ~uint64_t{0};
  offer(wrong, good);
  wrong = GoodOffer();
  wrong.source_bytes = LaneAddress::kMaxBytes + 1;
  offer(wrong, good);
  offer(GoodOffer(), unsealed);
  offer(GoodOffer(), null);
  sockets.push_back(Connect());
  EXPECT_EQ(send(sockets.back().get(), "x", 1, 0), 1);
  sockets.push_back(Connect());
  const ShmOffer without_memory = GoodOffer();
  EXPECT_GT(send(sockets.back().get(), &without_memory, sizeof(without_memory), 0), 0);
  LetItLook();
  for (size_t i = 0; i < sockets.size(); ++i) EXPECT_TRUE(HungUp(sockets[i])) << i;
  ExpectOthersAreServed();
}

TEST_F(ShmHostileTest, WhoOffersNothingIsWaitedForAndWhoHangsUpIsForgotten) {
  const FileDescriptor silent = Connect();
  { const FileDescriptor gone = Connect(); }
  LetItLook();
  EXPECT_FALSE(HungUp(silent));
  ExpectOthersAreServed();
}

TEST_F(ShmHostileTest, AScribbledRingIsGivenUpAndOthersAreServed) {
  uint64_t given_up = 0, arrived = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    FileDescriptor descriptor;
    auto memory = ShmMemory::Create(kRing, &descriptor);
    ASSERT_TRUE(memory.ok());
    const FileDescriptor socket = Connect();
    ASSERT_TRUE(SendOffer(socket, GoodOffer(), descriptor));
    const ShmRingMemory& ring = memory->ring();
    for (uint64_t at = 0; at < kRing; at += 8) {
      // Often a length that looks possible, so that some get through.
      const uint64_t junk = random.Below(3) == 0 ? random.Next() : random.Below(200) << 32 | random.Below(3000);
      std::memcpy(ring.packets + at, &junk, sizeof(junk));
    }
    std::array<RxSegment, 64> out;
    for (int step = 0; step < 100 && !HungUp(socket); ++step) {
      ring.control->written = random.Below(8) == 0 ? random.Next() : ring.control->written + random.Below(16'000);
      ring.control->released = random.Next() >> random.Below(64);
      ring.control->reader_sleeps = static_cast<uint32_t>(random.Next());
      ring.control->writer_sleeps = static_cast<uint32_t>(random.Next());
      lane_->PrepareToWait();
      const size_t count = lane_->Receive(out, Time());
      for (size_t i = 0; i < count; ++i) {
        ++arrived;
        ASSERT_LE(out[i].data_bytes, 1024u);
        ASSERT_LE(out[i].payload_bytes, kRing);
        uint64_t sum = 0;  // every byte is there to be read
        for (uint32_t b = 0; b < out[i].payload_bytes; ++b) sum += out[i].payload[b];
        EXPECT_LE(sum, uint64_t{255} * out[i].payload_bytes);
      }
    }
    given_up += HungUp(socket);
  }
  EXPECT_GT(arrived, 50u);
  EXPECT_GT(given_up, 30u);
  ExpectOthersAreServed();
}

TEST_F(ShmHostileTest, OneLookTakesInABoundedNumberOfConnections) {
  const ShmToken token = {8, 8, 8, static_cast<uint8_t>(getpid()), static_cast<uint8_t>(getpid() >> 8)};
  auto listener = ListenShm(token);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const FileDescriptor same(dup(listener->get()));
  const FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  ShmSources sources(*std::move(listener), epoll.get(), 1);
  std::vector<FileDescriptor> waiting;
  for (int i = 0; i < 200; ++i) waiting.push_back(*ConnectShm(token));
  sources.OnListener();
  EXPECT_FALSE(sources.AskForPackets()) << "to take in the others is work to do";
  EXPECT_TRUE(AcceptUnix(same).valid()) << "whoever connects faster than we accept would hold us for ever";
  for (int i = 0; i < 10 && sources.connections_wait(); ++i) sources.OnListener();
  EXPECT_TRUE(sources.AskForPackets());
  EXPECT_FALSE(AcceptUnix(same).valid()) << "the others are taken in by later looks";
}

TEST_F(ShmHostileTest, OneLookTakesInABoundedNumberOfRings) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor here(ends[0]);
  FileDescriptor there(ends[1]);
  int rings = 0;
  for (; rings < 100 && send(there.get(), "", 1, MSG_NOSIGNAL) == 1; ++rings) {
  }
  ASSERT_EQ(rings, 100);
  EXPECT_TRUE(TakeRings(here));
  char byte;
  EXPECT_EQ(recv(here.get(), &byte, 1, MSG_PEEK), 1) << "whoever rings faster than we listen would hold us for ever";
  EXPECT_TRUE(TakeRings(here));
  EXPECT_EQ(recv(here.get(), &byte, 1, MSG_PEEK), -1);
  there = FileDescriptor();
  EXPECT_FALSE(TakeRings(here));
}

// Connections wait while this process has no descriptor left. They must not keep it awake.
TEST_F(ShmHostileTest, WithoutDescriptorsTheLaneSleepsAndGoesOnWhenThereAreSome) {
  SegmentList list;
  list.AddRun(5, to_lane_, 0, 2000);
  EXPECT_EQ(friend_->Send(list.all()), 5u);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = dup(0);
  ASSERT_GE(lowest_free, 0);
  close(lowest_free);
  const rlimit none = {static_cast<rlim_t>(lowest_free), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  ASSERT_EQ(dup(0), -1);
  std::array<RxSegment, 8> out;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(lane_->Receive(out, Time()), 0u);  // one of them looks at the sockets
  pollfd waiting{lane_->wait_descriptor(), POLLIN, 0};
  EXPECT_TRUE(lane_->PrepareToWait());
  EXPECT_EQ(poll(&waiting, 1, 0), 0) << "every sleep would end at once";
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(ReceiveSome(*lane_, 5).size(), 5u);
}

// The reader lies about what it has released: the writer stops sending there, and neither stops nor loses others.
TEST_F(ShmHostileTest, AReaderThatLiesGetsNothingMore) {
  const ShmToken token = {9, 9, 9, static_cast<uint8_t>(getpid()), static_cast<uint8_t>(getpid() >> 8)};
  auto listener = ListenShm(token);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const uint32_t liar = lane_->OpenPeer(ToLaneAddress(token));
  ASSERT_NE(liar, 0u);
  const FileDescriptor socket = AcceptUnix(*listener);
  ShmOffer offer;
  FileDescriptor descriptor;
  ASSERT_EQ(TakeOffer(socket, &offer, &descriptor), OfferState::kTaken);
  auto memory = ShmMemory::Map(descriptor, offer.ring_bytes);
  ASSERT_TRUE(memory.ok());
  memory->ring().control->released = ~uint64_t{0};
  SegmentList list;
  list.AddRun(200, liar, 0, 32'000);
  size_t sent = 0;
  while (sent < list.size()) {
    ASSERT_GT(lane_->RoomTo(liar), 0u);
    sent += lane_->Send(list.all().subspan(sent, 1));
  }
  EXPECT_GT(lane_->counters().tx_drops, 100u);
  ExpectOthersAreServed();
}

}  // namespace
}  // namespace paceline
