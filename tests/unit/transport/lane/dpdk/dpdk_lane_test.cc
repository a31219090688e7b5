// The lane over rings in memory: what one port sends is what the other receives, frame by frame.
#include <gmock/gmock.h>

#include <algorithm>
#include <barrier>
#include <random>
#include <semaphore>
#include <set>
#include <thread>

#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

TEST_F(DpdkPairTest, SegmentsOfAllSizesArriveIntact) {
  for (const auto& [own, peer] : {std::pair{"192.0.2.1/24", "192.0.2.2/24"}, std::pair{"fd00::1/64", "fd00::2/64"}}) {
    Connect(own, peer);
    SegmentList list;
    const uint32_t most = a_->capabilities().max_packet_bytes;
    EXPECT_EQ(most, own[0] == 'f' ? 1500u - 48 : 1500u - 28);
    for (const uint32_t bytes : {0u, 1u, 24u, 25u, 64u, 300u, 1400u, most}) list.Add(to_b_, 0, bytes);
    ASSERT_EQ(a_->Send(list.all()), list.size());
    ASSERT_EQ(b_->Receive(out_, MonotonicNow()), list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(out_[i].data), out_[i].data_bytes), list.contents(i));
      EXPECT_TRUE(*out_[i].source == a_->address());
    }
    EXPECT_EQ(a_->counters().tx_bytes, b_->counters().rx_bytes);
  }
}

TEST_F(DpdkPairTest, JumboFrames) {
  Connect("192.0.2.1", "192.0.2.2", 9000);
  SegmentList list;
  list.Add(to_b_, 0, 9000 - 28);
  ASSERT_EQ(a_->Send(list.all()), 1u);
  ASSERT_EQ(b_->Receive(out_, MonotonicNow()), 1u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(out_[0].data), out_[0].data_bytes), list.contents(0));
}

TEST_F(DpdkPairTest, AnEntropyIsASourcePortAndZeroIsTheOneThatAnswersReach) {
  Connect("192.0.2.1/24", "192.0.2.2/24,udp_port=65530");
  SegmentList list;
  const uint32_t entropies = b_->capabilities().entropies;
  for (uint32_t e = 0; e < entropies; ++e) list.Add(to_a_, static_cast<uint16_t>(e), 100);
  ASSERT_EQ(b_->Send(list.all()), list.size());
  ASSERT_EQ(a_->Receive(out_, MonotonicNow()), list.size());
  std::set<std::string> sources;
  for (uint32_t e = 0; e < entropies; ++e) sources.insert(FormatLaneAddress(*out_[e].source));
  EXPECT_EQ(sources.size(), entropies) << "also past the last port";
  EXPECT_TRUE(*out_[0].source == b_->address());
  EXPECT_EQ(FormatLaneAddress(b_->address()), "192.0.2.2:65530");
}

// The frame itself, by a port of DPDK without a lane.
TEST_F(DpdkPairTest, EcnAndTrafficClassAreSetAndMarksAreSeen) {
  const RingPair ports = RingPair::Make();
  DpdkLaneOptions options;
  options.devices = {ports.a + ",address=192.0.2.1"};
  options.traffic_class = 0xfb;  // its two lowest bits are not the user's
  auto lanes = OpenDpdkLanes(options);
  ASSERT_TRUE(lanes.ok()) << lanes.status();
  Lane& lane = *lanes->front();
  BarePort other(ports.b);
  const uint32_t peer = lane.OpenPeer(ToLaneAddress(IpVersion::kV4, {192, 0, 2, 2}, 777));
  Introduce(lane, other);
  SegmentList list;
  list.Add(peer, 0, 64, true);
  list.Add(peer, 3, 64, false);
  ASSERT_EQ(lane.Send(list.all()), 2u);
  const auto frames = other.Receive();
  ASSERT_EQ(frames.size(), 2u);
  const auto marked = ParseFrame(frames[0], true), plain = ParseFrame(frames[1], true);
  ASSERT_TRUE(marked && plain);
  EXPECT_EQ(marked->flow.traffic_class, 0xf8 | kEcnCapable);
  EXPECT_EQ(plain->flow.traffic_class, 0xf8);
  EXPECT_EQ(marked->flow.destination_port, 777);
  EXPECT_EQ(marked->flow.source_port, DpdkDevice::kDefaultUdpPort);
  EXPECT_EQ(plain->flow.source_port, DpdkDevice::kDefaultUdpPort + 3);

  FrameFlow back = marked->flow;
  std::swap(back.source_mac, back.destination_mac);
  std::swap(back.source, back.destination);
  std::swap(back.source_port, back.destination_port);
  for (const uint8_t ecn : {0, 1, 2, 3}) {
    back.traffic_class = ecn;
    other.Send(back, 50);
  }
  ASSERT_EQ(lane.Receive(out_, MonotonicNow()), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(out_[i].congestion_experienced, i == 3) << i;

  // Nobody's: another address, port, Ethernet address.
  const FrameFlow good = back;
  back.destination[3] = 9;
  other.Send(back, 50);
  back = good;
  ++back.destination_port;
  other.Send(back, 50);
  back = good;
  back.destination_mac.bytes[5] ^= 1;
  other.Send(back, 50);
  EXPECT_EQ(lane.Receive(out_, MonotonicNow()), 0u);
  other.Send(good, 50);
  EXPECT_EQ(lane.Receive(out_, MonotonicNow()), 1u);

  EXPECT_EQ(lane.counters().rx_drops, 0u) << "they were not for this lane";

  // More of them than one burst takes hide nothing.
  for (int i = 0; i < 200; ++i) other.Send(back, 50);
  other.Send(good, 50);
  EXPECT_EQ(lane.Receive(out_, MonotonicNow()), 1u);

  // Damaged ones: cut, or with another byte where it must be noticed, which is not the sender's Ethernet address.
  const std::vector<uint8_t> whole = BarePort::Frame(good, 50);
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::vector<uint8_t> damaged = whole;
    if (i % 2 == 0) {
      damaged.resize(1 + random() % (damaged.size() - 1));
    } else {
      const size_t at = random() % 28;
      damaged[at < 6 ? at : at + 6] ^= static_cast<uint8_t>(1 + random() % 255);
    }
    other.SendBytes(damaged);
    EXPECT_EQ(lane.Receive(out_, MonotonicNow()), 0u);
  }
  EXPECT_GT(lane.counters().rx_drops, 200u) << "but for those whose damage says that they are another's";
  EXPECT_LT(lane.counters().rx_drops, 300u);
  other.Send(good, 50);
  EXPECT_EQ(lane.Receive(out_, MonotonicNow()), 1u);
}

TEST_F(DpdkPairTest, WhatIsSentBeforeTheNeighbourIsKnownWaitsWithinABound) {
  const RingPair ports = RingPair::Make();
  a_ = MakeLane(ports.a + ",address=192.0.2.1/24");
  b_ = MakeLane(ports.b + ",address=192.0.2.2/24");
  ASSERT_TRUE(a_ != nullptr && b_ != nullptr);
  to_b_ = a_->OpenPeer(b_->address());
  EXPECT_EQ(a_->RoomTo(to_b_), 0u) << "what can wait does";
  SegmentList list;
  list.AddRun(100, to_b_, 0, 700);
  ASSERT_EQ(a_->Send(list.all()), 100u);
  EXPECT_EQ(a_->counters().tx_drops, 36u);
  a_->ClosePeer(to_b_);  // as who sends a first packet does
  Time now = MonotonicNow();
  a_->Receive(out_, now);
  b_->Receive(out_, now);
  a_->Receive(out_, now);
  ASSERT_EQ(b_->Receive(out_, now), 64u);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(out_[i].data), out_[i].data_bytes), list.contents(i));
  }
  to_b_ = a_->OpenPeer(b_->address());
  EXPECT_GT(a_->RoomTo(to_b_), 0u);
}

TEST_F(DpdkPairTest, ANeighbourThatDoesNotAnswerIsGivenUpAndWhatWaitedIsDropped) {
  const RingPair ports = RingPair::Make();
  a_ = MakeLane(ports.a + ",address=192.0.2.1/24");
  ASSERT_TRUE(a_ != nullptr);
  to_b_ = a_->OpenPeer(ToLaneAddress(IpVersion::kV4, {192, 0, 2, 9}, 1));
  SegmentList list;
  list.Add(to_b_, 0, 100);
  ASSERT_EQ(a_->Send(list.all()), 1u);
  Time now = MonotonicNow();
  for (int i = 0; i < 800 && a_->RoomTo(to_b_) == 0; ++i, now = now + Duration::Millis(10)) a_->Receive(out_, now);
  EXPECT_GT(a_->RoomTo(to_b_), 0u);
  EXPECT_EQ(a_->counters().tx_drops, 1u);
  ASSERT_EQ(a_->Send(list.all()), 1u);
  EXPECT_EQ(a_->counters().tx_drops, 2u) << "lost, as the core will notice";
}

// Of all ports.
unsigned BuffersInUse() {
  unsigned sum = 0;
  rte_mempool_walk(
      [](rte_mempool* pool, void* total) { *static_cast<unsigned*>(total) += rte_mempool_in_use_count(pool); }, &sum);
  return sum;
}

TEST_F(DpdkPairTest, AFullQueueTakesWhatFitsAndLosesNothing) {
  const RingPair ports = RingPair::Make(64);
  a_ = MakeLane(ports.a + ",address=192.0.2.1/24");
  b_ = MakeLane(ports.b + ",address=192.0.2.2/24");
  to_b_ = a_->OpenPeer(b_->address());
  for (int i = 0; i < 3; ++i) {
    a_->Receive(out_, MonotonicNow());
    b_->Receive(out_, MonotonicNow());
  }
  SegmentList list;
  list.AddRun(200, to_b_, 0, 700);
  size_t sent = a_->Send(list.all()), seen = 0;
  EXPECT_EQ(sent, 63u);
  // What is refused costs no buffer, however often.
  const unsigned before = BuffersInUse();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a_->Send(list.all().subspan(sent)), 0u);
  EXPECT_EQ(BuffersInUse(), before);
  for (int round = 0; round < 100 && seen < list.size(); ++round) {
    for (size_t got; (got = b_->Receive(out_, MonotonicNow())) > 0;) {
      for (size_t i = 0; i < got; ++i, ++seen) {
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(out_[i].data), out_[i].data_bytes), list.contents(seen));
      }
    }
    const size_t taken = a_->Send(list.all().subspan(sent));
    EXPECT_EQ(taken, std::min<size_t>(63, list.size() - sent));
    sent += taken;
  }
  EXPECT_EQ(seen, list.size());
  EXPECT_EQ(a_->counters().tx_drops, 0u);
}

// A lane may be handed from thread to thread, and what a thread keeps for the next time is lost to the others.
TEST_F(DpdkPairTest, ThreadsThatWereHereKeepFewBuffers) {
  Connect("192.0.2.1/24", "192.0.2.2/24");
  SegmentList list;
  list.AddRun(32, to_b_, 0, 700);
  constexpr size_t kThreads = 16;
  std::barrier all_done(kThreads + 1);
  std::vector<std::thread> threads;
  std::vector<size_t> sent(kThreads);
  std::binary_semaphore turn_over(0);
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      sent[i] = a_->Send(list.all());
      turn_over.release();
      all_done.arrive_and_wait();
    });
    turn_over.acquire();
    while (b_->Receive(out_, MonotonicNow()) > 0) {
    }
  }
  all_done.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sent, std::vector<size_t>(kThreads, list.size()));
}

TEST_F(DpdkPairTest, ASmallOutGetsTheRestLater) {
  Connect("192.0.2.1/24", "192.0.2.2/24");
  SegmentList list;
  list.AddRun(10, to_b_, 0, 100);
  ASSERT_EQ(a_->Send(list.all()), 10u);
  const std::span<RxSegment> three = std::span(out_).first(3);
  for (const size_t expected : {3u, 3u, 3u, 1u, 0u}) EXPECT_EQ(b_->Receive(three, MonotonicNow()), expected);
}

TEST_F(DpdkPairTest, WhatCannotBeSentIsDroppedAndCountedAndTheRestGoesOn) {
  Connect("192.0.2.1/24", "192.0.2.2/24");
  EXPECT_EQ(a_->OpenPeer(LaneAddress()), 0u);
  EXPECT_EQ(a_->OpenPeer(a_->address()), 0u);
  EXPECT_EQ(a_->OpenPeer(ToLaneAddress(IpVersion::kV6, {0xfd}, 1)), 0u);
  EXPECT_EQ(a_->OpenPeer(ToLaneAddress(IpVersion::kV4, {198, 51, 100, 1}, 1)), 0u) << "beyond the link, no gateway";
  SegmentList list;
  list.Add(to_b_, 0, 100);
  list.Add(to_b_, 0, a_->capabilities().max_packet_bytes + 1);
  list.Add(0, 0, 100);
  list.Add(to_b_, 0, 200);
  EXPECT_EQ(a_->Send(list.all()), 4u);
  EXPECT_EQ(a_->counters().tx_drops, 2u);
  EXPECT_EQ(b_->Receive(out_, MonotonicNow()), 2u);
}

TEST_F(DpdkPairTest, AnAddressThatTwoHaveIsSaidOnce) {
  const RingPair ports = RingPair::Make();
  a_ = MakeLane(ports.a + ",address=192.0.2.1/24");
  ASSERT_TRUE(a_ != nullptr);
  BarePort other(ports.b);
  Neighbours::Options options;
  options.mac = {{0x02, 0, 0, 0, 0, 0x66}};
  options.address = {192, 0, 2, 1};
  ::testing::internal::CaptureStderr();
  Time now = MonotonicNow();
  for (int i = 0; i < 3; ++i, now = now + Duration::Millis(10)) {
    Neighbours thief(options);
    thief.Open({192, 0, 2, 9});
    while (const auto frame = thief.PollTransmit(now)) other.SendBytes(frame->view());
    a_->Receive(out_, now);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("192.0.2.1:49152: 02:00:00:00:00:66 sends under the same address"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST_F(DpdkPairTest, APeerHasOneNumberWhateverTheScopeOfItsAddress) {
  const RingPair ports = RingPair::Make();
  a_ = MakeLane(ports.a + ",address=fe80::1/64");
  ASSERT_TRUE(a_ != nullptr);
  const auto plain = ParseLaneAddress("[fe80::2]:777"), scoped = ParseLaneAddress("[fe80::2%3]:777");
  ASSERT_TRUE(plain.ok() && scoped.ok());
  ASSERT_FALSE(*plain == *scoped);
  const uint32_t number = a_->OpenPeer(*scoped);
  EXPECT_NE(number, 0u);
  EXPECT_EQ(a_->OpenPeer(*plain), number);
  a_->ClosePeer(number);
  EXPECT_EQ(a_->OpenPeer(*scoped), number);
}

TEST_F(DpdkTest, ErrorsNameThePortAndWhatItMayBe) {
  const auto error = [](const std::string& device, uint32_t mtu = 0) {
    DpdkLaneOptions options;
    options.devices = {device};
    options.mtu = mtu;
    return std::string(OpenDpdkLanes(options).status().message());
  };
  EXPECT_THAT(error("net_carrier_pigeon0,address=192.0.2.1"), HasSubstr("net_carrier_pigeon0"));
  EXPECT_THAT(error("0000:ff:1f.7,address=192.0.2.1"), HasSubstr("0000:ff:1f.7"));
  EXPECT_THAT(error("net_null0"), HasSubstr("address="));
  EXPECT_THAT(error("net_null0,address=192.0.2.1", 100), HasSubstr("576 to 9216"));
  EXPECT_THAT(error("net_null0,address=192.0.2.1", 20000), HasSubstr("576 to 9216"));
}

// net_null sends into nothing and receives frames of zeros: nobody's, at the rate of the processor.
TEST_F(DpdkTest, FramesOfNobodyComeToNothing) {
  const auto lane = MakeLane("net_null7,address=192.0.2.1");
  ASSERT_TRUE(lane != nullptr);
  std::array<RxSegment, 64> out;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(lane->Receive(out, MonotonicNow()), 0u);
  EXPECT_EQ(lane->counters().rx_packets, 0u);
}

TEST_F(DpdkTest, APortIsFreeAgainWhenItsLaneIsGone) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(MakeLane("net_null8,address=192.0.2.1") != nullptr);
}

}  // namespace
}  // namespace paceline
