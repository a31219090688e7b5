// Real UDP over the loopback interface: IPv4 and IPv6, with and without UDP_SEGMENT and UDP_GRO.
#include "transport/lane/udp/udp_lane.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/ip.h>
#include <unistd.h>

#include <set>

#include "tests/unit/transport/lane/udp/udp_lane_fixture.h"
#include "transport/lane/udp/udp_interfaces.h"

namespace paceline {
namespace {

bool HasIpv6Loopback() {
  const auto point = ResolveBindAddress("[::1]:0");
  return point.ok();
}

struct Variant {
  const char* host;
  bool gso;
  bool gro;
};

class UdpLanePairTest : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (std::string(GetParam().host).find("::") != std::string::npos && !HasIpv6Loopback()) {
      GTEST_SKIP() << "this machine has no IPv6 loopback address";
    }
    a_ = MustCreate(Options());
    b_ = MustCreate(Options());
    ASSERT_TRUE(a_ != nullptr && b_ != nullptr);
    to_b_ = a_->OpenPeer(b_->address());
    to_a_ = b_->OpenPeer(a_->address());
  }
  static UdpLaneOptions Options() {
    UdpLaneOptions options;
    options.bind_address = std::string(GetParam().host) + ":0";
    options.gso = GetParam().gso;
    options.gro = GetParam().gro;
    options.tx_sockets = 4;
    options.mtu = 1500;
    return options;
  }
  // Sends all from a to b in steps that the receive buffer holds, and checks what arrives in number, order and
  // contents.
  void SendAndCheck(const SegmentList& list, size_t out_size = 64) {
    size_t sent = 0;
    size_t seen = 0;
    while (sent < list.size()) {
      const size_t taken = a_->Send(list.all().subspan(sent, std::min<size_t>(100, list.size() - sent)));
      sent += taken;
      for (const ReceivedSegment& segment : ReceiveSome(*b_, taken, out_size)) {
        ASSERT_EQ(segment.bytes, list.contents(seen)) << "segment " << seen;
        ++seen;
      }
      ASSERT_EQ(seen, sent);
    }
    EXPECT_EQ(a_->counters().tx_packets, list.size());
    EXPECT_EQ(b_->counters().rx_packets, list.size());
    EXPECT_EQ(a_->counters().tx_bytes, b_->counters().rx_bytes);
    EXPECT_EQ(a_->counters().tx_drops, 0u);
    EXPECT_EQ(b_->counters().rx_drops, 0u);
  }

  std::unique_ptr<Lane> a_, b_;
  uint32_t to_b_ = 0, to_a_ = 0;
};

TEST_P(UdpLanePairTest, RunsArriveInOrderAndIntact) {
  SegmentList list;
  list.AddRun(44, to_b_, 0, a_->capabilities().max_packet_bytes);
  list.Add(to_b_, 0, 100);
  list.AddRun(3, to_b_, 0, 700);
  list.Add(to_b_, 0, 1);
  list.AddRun(130, to_b_, 0, 64);
  list.Add(to_b_, 0, 1000);
  SendAndCheck(list);
}

TEST_P(UdpLanePairTest, ASmallOutKeepsTheRestForTheNextCall) {
  SegmentList list;
  list.AddRun(40, to_b_, 0, 1000);
  list.AddRun(40, to_b_, 0, 333);
  SendAndCheck(list, 7);
}

TEST_P(UdpLanePairTest, BurstsCostFewCalls) {
  SegmentList list;
  list.AddRun(40, to_b_, 0, 1000);
  ASSERT_EQ(a_->Send(list.all()), 40u);
  EXPECT_EQ(a_->counters().tx_calls, GetParam().gso ? 1u : 2u);
  ASSERT_EQ(ReceiveSome(*b_, 40).size(), 40u);
  if (GetParam().gso && GetParam().gro) {
    EXPECT_EQ(b_->counters().rx_calls, 1u);
  }
}

TEST_P(UdpLanePairTest, RepliesGoToTheMainAddressWhateverTheEntropy) {
  std::set<std::string> ports;
  for (uint16_t entropy = 0; entropy < a_->capabilities().entropies; ++entropy) {
    SegmentList list;
    list.Add(to_b_, entropy, 50);
    ASSERT_EQ(a_->Send(list.all()), 1u);
    const auto got = ReceiveSome(*b_, 1);
    ASSERT_EQ(got.size(), 1u);
    ports.insert(FormatLaneAddress(got[0].source));
    EXPECT_EQ(got[0].source == a_->address(), entropy == 0) << "entropy 0 is the main address";
  }
  EXPECT_EQ(ports.size(), 4u) << "a source port for each entropy";
  SegmentList reply;
  reply.Add(to_a_, 2, 60);
  ASSERT_EQ(b_->Send(reply.all()), 1u);
  EXPECT_EQ(ReceiveSome(*a_, 1).size(), 1u);
}

TEST_P(UdpLanePairTest, WhatIsSentToASendingSocketIsDropped) {
  SegmentList list;
  list.Add(to_b_, 1, 50);
  a_->Send(list.all());
  const auto got = ReceiveSome(*b_, 1);
  ASSERT_EQ(got.size(), 1u);
  const uint32_t stray = b_->OpenPeer(got[0].source);
  SegmentList back;
  back.AddRun(10, stray, 0, 500);
  EXPECT_EQ(b_->Send(back.all()), 10u);
  EXPECT_EQ(ReceiveSome(*a_, 1, 64, 20).size(), 0u);
  SegmentList reply;
  reply.Add(to_a_, 0, 60);
  b_->Send(reply.all());
  EXPECT_EQ(ReceiveSome(*a_, 1).size(), 1u) << "the lane is unharmed";
}

TEST_P(UdpLanePairTest, MarksAreSentAndSeen) {
  ASSERT_TRUE(a_->capabilities().ecn);
  // A plain socket as the far end, so that the codepoint itself is seen; it then answers with a mark as a switch sets
  // it.
  SocketAddress own;
  ASSERT_TRUE(ToSocketAddress(ParseLaneAddress(std::string(GetParam().host) + ":0").value(), own));
  const bool v4 = own.family() == AF_INET;
  const int fd = socket(own.family(), SOCK_DGRAM, 0);
  ASSERT_EQ(bind(fd, &own.generic, own.size), 0);
  const int on = 1;
  setsockopt(fd, v4 ? int{IPPROTO_IP} : int{IPPROTO_IPV6}, v4 ? IP_RECVTOS : IPV6_RECVTCLASS, &on, sizeof(on));
  ASSERT_EQ(getsockname(fd, &own.generic, &own.size), 0);
  // The whole byte: the class that was asked for, whose two lowest bits are not heeded, and the codepoint.
  UdpLaneOptions classed_options = Options();
  classed_options.traffic_class = 0x6b;
  const auto classed = MustCreate(classed_options);
  ASSERT_NE(classed, nullptr);
  for (const auto& [lane, traffic_class] : {std::pair{a_.get(), 0}, std::pair{classed.get(), 0x68}}) {
    const uint32_t peer = lane->OpenPeer(FromSocketAddress(own, false));
    SegmentList list;
    list.Add(peer, 0, 100, true);
    list.Add(peer, 0, 100, false);
    list.Add(peer, 1, 100, true);
    ASSERT_EQ(lane->Send(list.all()), 3u);
    for (const int codepoint : {2, 0, 2}) {
      char data[2000];
      alignas(cmsghdr) char control[256];
      iovec vector{data, sizeof(data)};
      msghdr header{};
      header.msg_iov = &vector;
      header.msg_iovlen = 1;
      header.msg_control = control;
      header.msg_controllen = sizeof(control);
      ASSERT_EQ(recvmsg(fd, &header, 0), 100);
      const cmsghdr* entry = CMSG_FIRSTHDR(&header);
      ASSERT_NE(entry, nullptr);
      EXPECT_EQ(*CMSG_DATA(entry), traffic_class | codepoint);
    }
  }
  SocketAddress lane_address;
  ASSERT_TRUE(ToSocketAddress(a_->address(), lane_address));
  for (const int codepoint : {3, 2, 1, 0}) {
    setsockopt(fd, v4 ? int{IPPROTO_IP} : int{IPPROTO_IPV6}, v4 ? IP_TOS : IPV6_TCLASS, &codepoint, sizeof(codepoint));
    ASSERT_EQ(sendto(fd, "x", 1, 0, &lane_address.generic, lane_address.size), 1);
    const auto got = ReceiveSome(*a_, 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].congestion_experienced, codepoint == 3) << codepoint;
  }
  close(fd);
}

TEST_P(UdpLanePairTest, OversizeIsDroppedAndCountedAndTheRestGoesOn) {
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

TEST_P(UdpLanePairTest, EmptyPacketsArrive) {
  SegmentList list;
  list.Add(to_b_, 0, 0);
  list.Add(to_b_, 0, 10);
  EXPECT_EQ(a_->Send(list.all()), 2u);
  const auto got = ReceiveSome(*b_, 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].bytes.size(), 0u);
}

TEST_P(UdpLanePairTest, TimeOfArrivalLiesBetweenSendingAndPolling) {
  ASSERT_TRUE(a_->capabilities().rx_timestamps);
  SegmentList list;
  list.Add(to_b_, 0, 100);
  const Time before = MonotonicNow();
  a_->Send(list.all());
  const auto got = ReceiveSome(*b_, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_LE(got[0].received_at, got[0].polled_at);
  // The two clocks are compared in software: allow for being descheduled between the looks at them.
  EXPECT_GT(got[0].received_at, before - Duration::Millis(100));
}

// The lane's time may be any: here it runs ahead of the kernel's, which tells stamps from what is not stamped.
TEST_P(UdpLanePairTest, ArrivalsAreNotStampedWhilePollsAreDense) {
  const Time start = MonotonicNow() + Duration::Millis(200);
  Time now = start;
  std::array<RxSegment, 4> out;
  const auto time_of_arrival = [&] {
    SegmentList list;
    list.Add(to_b_, 0, 100);
    a_->Send(list.all());
    while (b_->Receive(out, now) == 0) {
    }
    return out[0].received_at;
  };
  EXPECT_LT(time_of_arrival(), start);
  for (; now < start + Duration::Millis(25); now = now + Duration::Micros(5)) b_->Receive(out, now);
  EXPECT_EQ(time_of_arrival(), now);
  now = now + Duration::Millis(2);
  b_->Receive(out, now);
  EXPECT_LT(time_of_arrival(), start);
}

TEST_P(UdpLanePairTest, AClosedPeerPortIsIgnored) {
  const uint32_t nobody = a_->OpenPeer(ParseLaneAddress(std::string(GetParam().host) + ":9").value());
  SegmentList list;
  for (int i = 0; i < 5; ++i) list.Add(nobody, 0, 100 + i);
  list.Add(to_b_, 0, 42);
  EXPECT_EQ(a_->Send(list.all()), 6u);
  EXPECT_EQ(ReceiveSome(*b_, 1).size(), 1u);
  SegmentList again;
  again.Add(to_b_, 0, 43);
  EXPECT_EQ(a_->Send(again.all()), 1u);
  EXPECT_EQ(ReceiveSome(*b_, 1).size(), 1u);
  EXPECT_EQ(ReceiveSome(*a_, 1, 64, 10).size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Loopback, UdpLanePairTest,
                         ::testing::Values(Variant{"127.0.0.1", true, true}, Variant{"127.0.0.1", true, false},
                                           Variant{"127.0.0.1", false, true}, Variant{"127.0.0.1", false, false},
                                           Variant{"[::1]", true, true}, Variant{"[::1]", true, false},
                                           Variant{"[::1]", false, true}, Variant{"[::1]", false, false}),
                         [](const auto& test) {
                           return std::string(test.param.host[0] == '[' ? "v6" : "v4") +
                                  (test.param.gso ? "_gso" : "_plain") + (test.param.gro ? "_gro" : "_single");
                         });

TEST(UdpLane, StatesWhatItCanDo) {
  UdpLaneOptions options;
  options.bind_address = "127.0.0.1:0";
  options.mtu = 1500;
  options.link_rate = Rate::Gbps(25);
  const auto lane = MustCreate(options);
  ASSERT_NE(lane, nullptr);
  const LaneCapabilities& can = lane->capabilities();
  EXPECT_EQ(can.max_packet_bytes, 1472u);
  EXPECT_FALSE(can.remote_placement);
  EXPECT_TRUE(can.keeps_path_order);
  EXPECT_EQ(can.entropies, 8u);
  EXPECT_EQ(can.burst_segments, 44u);
  EXPECT_EQ(can.BurstOf(576), 65'507u / 576);
  EXPECT_FALSE(can.path_may_be_narrower) << "of loopback all is known";
  EXPECT_EQ(can.header_bytes, 28u);
  EXPECT_GT(can.receive_buffer_bytes, 0u);
  EXPECT_DOUBLE_EQ(can.link_rate.gbps(), 25);
  EXPECT_TRUE(lane->status().up);
  EXPECT_GT(lane->room(), 0u);
  EXPECT_GE(lane->wait_descriptor(), 0);
  EXPECT_EQ(lane->name(), "udp:lo " + FormatLaneAddress(lane->address()));
}

TEST(UdpLane, SpeedOfAVirtualInterfaceIsNotKnown) {
  UdpLaneOptions options;
  options.bind_address = "lo";
  const auto lane = MustCreate(options);
  ASSERT_NE(lane, nullptr);
  EXPECT_TRUE(lane->capabilities().link_rate.is_zero());
}

TEST(UdpLane, BurstOfAsManyBytesAsTheReceiveBufferSaysIsNotLost) {
  for (const bool gro : {true, false}) {
    UdpLaneOptions options;
    options.bind_address = "127.0.0.1:0";
    options.mtu = 1500;
    options.gro = gro;
    options.receive_buffer = 400'000;
    const auto a = MustCreate(options);
    const auto b = MustCreate(options);
    ASSERT_TRUE(a != nullptr && b != nullptr);
    SegmentList list;
    const size_t count = b->capabilities().receive_buffer_bytes / a->capabilities().max_packet_bytes;
    list.AddRun(count, a->OpenPeer(b->address()), 0, a->capabilities().max_packet_bytes);
    size_t sent = 0;
    while (sent < count) sent += a->Send(list.all().subspan(sent));
    EXPECT_EQ(ReceiveSome(*b, count, 64, 100).size(), count) << (gro ? "with" : "without") << " GRO";
  }
}

// The kernel tells a socket that is connected that nobody listens any more: what is sent to who comes after that
// arrives.
TEST(UdpLane, APeerThatComesBackGetsWhatIsSentToIt) {
  UdpLaneOptions options;
  options.bind_address = "127.0.0.1:0";
  const auto a = MustCreate(options);
  auto b = MustCreate(options);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const LaneAddress address = b->address();
  const uint32_t peer = a->OpenPeer(address);
  SegmentList one;
  one.Add(peer, 1, 100);
  const auto send = [&a, &one](int times) {
    for (int i = 0; i < times; ++i) EXPECT_EQ(a->Send(one.all()), 1u);
  };
  send(200);
  EXPECT_EQ(ReceiveSome(*b, 200).size(), 200u);
  b.reset();
  send(20);
  options.bind_address = FormatLaneAddress(address);
  b = MustCreate(options);
  ASSERT_NE(b, nullptr);
  send(20);
  EXPECT_EQ(ReceiveSome(*b, 20).size(), 20u);
  EXPECT_EQ(a->counters().tx_drops, 0u);
}

TEST(UdpLane, OverflowIsCountedAsDrops) {
  UdpLaneOptions options;
  options.bind_address = "127.0.0.1:0";
  options.mtu = 1500;
  options.receive_buffer = 20'000;
  const auto a = MustCreate(options);
  const auto b = MustCreate(options);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const uint32_t peer = a->OpenPeer(b->address());
  SegmentList list;
  for (int i = 0; i < 500; ++i) list.Add(peer, 0, 1000 + static_cast<uint32_t>(i % 2) * 100);
  size_t sent = 0;
  while (sent < list.size()) sent += a->Send(list.all().subspan(sent));
  const size_t got = ReceiveSome(*b, list.size(), 64, 50).size();
  EXPECT_LT(got, list.size());
  SegmentList last;  // the kernel tells its drops with the next packet
  last.Add(peer, 0, 1);
  a->Send(last.all());
  ASSERT_EQ(ReceiveSome(*b, 1).size(), 1u);
  EXPECT_GT(b->counters().rx_drops, 0u);
}

}  // namespace
}  // namespace paceline
