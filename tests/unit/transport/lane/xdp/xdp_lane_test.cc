// Packets between xdp lanes, and between an xdp and a UDP lane; the interface in common with everything else.
#include "transport/lane/xdp/xdp_lane.h"

#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/transport/lane/xdp/xdp_fixture.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/udp/udp_address.h"
#include "transport/lane/xdp/xdp_card.h"

namespace paceline {
namespace {

using XdpLaneTest = XdpFixture;

// Sends frames of one flow from side 0 to 198.51.100.2:5000, as they are, of which some are not UDP of the length that
// they say.
class FrameSender {
 public:
  explicit FrameSender(CabledNamespaces& cable) {
    cable.Enter(0);
    socket_ = FileDescriptor(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    to_.sll_family = AF_PACKET;
    to_.sll_ifindex = static_cast<int>(if_nametoindex(CabledNamespaces::kDevice));
    cable.Leave();
    FrameFlow flow;
    flow.source_mac = {{2, 0, 0, 0, 0, 1}};
    flow.destination_mac = {{2, 0, 0, 0, 0, 2}};
    flow.source = {198, 51, 100, 1};
    flow.destination = {198, 51, 100, 2};
    flow.source_port = 7777;
    flow.destination_port = 5000;
    const std::array<std::span<const uint8_t>, 1> payload = {std::span<const uint8_t>(payload_)};
    WriteFrameHeaders(flow, payload, UdpChecksumMode::kWhereRequired, frame_.data());
  }
  bool Send(size_t count, bool well_formed) {
    frame_[kUdpLengthAt] = well_formed ? kUdpHeaderBytes + kPayloadBytes : kUdpHeaderBytes + 1;
    for (size_t i = 0; i < count; ++i) {
      if (sendto(socket_.get(), frame_.data(), frame_.size(), 0, reinterpret_cast<const sockaddr*>(&to_), sizeof(to_)) <
          0) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kPayloadBytes = 8, kUdpHeaderBytes = 8;
  static constexpr size_t kUdpLengthAt = kFrameHeaderBytesV4 - 3;  // the lower of its two bytes

  FileDescriptor socket_;
  sockaddr_ll to_{};
  std::array<uint8_t, kPayloadBytes> payload_{};
  std::array<uint8_t, kFrameHeaderBytesV4 + kPayloadBytes> frame_{};
};

class XdpLaneVersions : public XdpFixture, public ::testing::WithParamInterface<bool> {
 protected:
  std::string Address(size_t side) const {
    return GetParam() ? std::string(CabledNamespaces::kAddressV4[side]) + ":0"
                      : "[" + std::string(CabledNamespaces::kAddressV6[side]) + "]:0";
  }
};

TEST_P(XdpLaneVersions, AllSizesArriveInOrderAndIntact) {
  ASSERT_TRUE(cable_->Introduce());
  const auto a = Xdp(0, Address(0)), b = Xdp(1, Address(1));
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const uint32_t most = a->capabilities().max_packet_bytes;
  EXPECT_EQ(most, GetParam() ? 1472u : 1452u);
  const uint32_t peer = a->OpenPeer(b->address());
  SegmentList list;
  for (uint32_t bytes = 0; bytes <= most; bytes += 1 + bytes / 5) list.Add(peer, 0, bytes);
  for (uint16_t i = 0; i < 400; ++i) list.Add(peer, static_cast<uint16_t>(i % 8), 1 + i * 7919u % most, i % 3 == 0);
  for (int i = 0; i < 3000; ++i) list.Add(peer, 0, most);  // each chunk of memory several times
  SendAndCheck(*a, *b, list);
  SendAndCheck(*b, *a);
  EXPECT_EQ(a->counters().tx_packets, list.size());
  EXPECT_EQ(b->counters().rx_packets, list.size());
  EXPECT_EQ(a->counters().tx_bytes, b->counters().rx_bytes);
  EXPECT_EQ(a->counters().tx_drops + b->counters().rx_drops, 0u);
  EXPECT_LT(a->counters().tx_calls, list.size() / 2) << "what is sent together leaves together";
}

TEST_P(XdpLaneVersions, AUdpLaneIsAPeerAsAnyOther) {
  const auto xdp = Xdp(0, Address(0)), udp = Udp(1, Address(1));
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  for (const uint32_t bytes : {1u, 500u, 1452u}) {
    SendAndCheck(*xdp, *udp, 50, bytes);
    SendAndCheck(*udp, *xdp, 50, bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Ip, XdpLaneVersions, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "V4" : "V6"; });

TEST_F(XdpLaneTest, TheDescriptorTellsOfArrivals) {
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  SendAndCheck(*a, *b);  // neighbours are known
  pollfd waiting{b->wait_descriptor(), POLLIN, 0};
  EXPECT_TRUE(WaitForSilence(*b));
  SegmentList list;
  list.Add(a->OpenPeer(b->address()), 0, 100);
  ASSERT_EQ(a->Send(list.all()), 1u);
  EXPECT_EQ(poll(&waiting, 1, 2000), 1);
  EXPECT_EQ(ReceiveSome(*b, 1).size(), 1u);
  EXPECT_TRUE(b->PrepareToWait());
}

TEST_F(XdpLaneTest, ALaneThatRefusedAllThatCameHearsWhatComesNext) {
  constexpr int kManyQueues = 8;           // of as few chunks each as may be
  constexpr size_t kMoreThanAQueue = 300;  // chunks
  cable_ = std::make_unique<CabledNamespaces>(kManyQueues);
  ASSERT_EQ(cable_->why_not(), "");
  ASSERT_TRUE(cable_->Introduce());
  const auto lane = Xdp(1, "198.51.100.2:5000");
  ASSERT_NE(lane, nullptr);
  FrameSender sender(*cable_);
  ASSERT_TRUE(WaitForSilence(*lane));
  ASSERT_TRUE(sender.Send(kMoreThanAQueue, false));
  std::array<RxSegment, 256> out;
  pollfd waiting{lane->wait_descriptor(), POLLIN, 0};
  while (poll(&waiting, 1, 50) == 1) ASSERT_EQ(lane->Receive(out, MonotonicNow()), 0u);
  EXPECT_TRUE(lane->PrepareToWait());
  ASSERT_TRUE(sender.Send(1, true));
  EXPECT_EQ(poll(&waiting, 1, 2000), 1);
  EXPECT_EQ(ReceiveSome(*lane, 1, 64, 200).size(), 1u);
}

TEST_F(XdpLaneTest, WhatIsRefusedCountsAmongWhatOneCallTakes) {
  ASSERT_TRUE(cable_->Introduce());
  const auto lane = Xdp(1, "198.51.100.2:5000");
  ASSERT_NE(lane, nullptr);
  FrameSender sender(*cable_);
  ASSERT_TRUE(sender.Send(20, false) && sender.Send(3, true));
  std::array<RxSegment, 8> out;
  std::vector<size_t> got;
  for (int i = 0; i < 3; ++i) got.push_back(lane->Receive(out, MonotonicNow()));
  EXPECT_EQ(got, (std::vector<size_t>{0, 0, 3}));
  EXPECT_EQ(lane->counters().rx_drops, 20u);
}

TEST_F(XdpLaneTest, WhoHasFramesThatTheKernelDoesNotTakeDoesNotSleepAtOnce) {
  ASSERT_TRUE(cable_->Introduce());
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const uint32_t peer = a->OpenPeer(b->address());
  SegmentList list;
  list.AddRun(20, peer, 0, 100);
  SendAndCheck(*a, *b, list);
  EXPECT_TRUE(a->PrepareToWait());
  ASSERT_TRUE(cable_->Run(0, "ip link set v0 down"));  // of which the lane has not heard yet
  ASSERT_EQ(a->Send(list.all()), list.size());
  EXPECT_FALSE(a->PrepareToWait());
  bool may_sleep = false;
  for (int i = 0; i < 2000 && !may_sleep; ++i) may_sleep = a->PrepareToWait();
  EXPECT_TRUE(may_sleep) << "in the end";
}

TEST_F(XdpLaneTest, WhatIsTooLargeIsDroppedAndCounted) {
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const uint32_t peer = a->OpenPeer(b->address());
  SegmentList list;
  list.Add(peer, 0, 10);
  list.Add(peer, 0, a->capabilities().max_packet_bytes + 1);
  list.Add(peer, 0, 20);
  EXPECT_EQ(a->Send(list.all()), 3u);
  EXPECT_EQ(a->counters().tx_drops, 1u);
  EXPECT_EQ(ReceiveSome(*b, 2).size(), 2u);
}

TEST_F(XdpLaneTest, NoMoreIsTakenThanThereIsRoomFor) {
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  SendAndCheck(*a, *b);
  const uint32_t peer = a->OpenPeer(b->address());
  SegmentList list;
  list.AddRun(5000, peer, 0, 1000);
  size_t sent = 0;
  for (int i = 0; i < 10000 && sent < list.size(); ++i) {
    const size_t room = a->room();
    const size_t taken = a->Send(list.all().subspan(sent));
    EXPECT_GE(taken, std::min(room, list.size() - sent));
    sent += taken;
    std::array<RxSegment, 64> out;
    a->Receive(out, MonotonicNow());
    while (b->Receive(out, MonotonicNow()) > 0) {
    }
  }
  EXPECT_EQ(sent, list.size());
}

TEST_F(XdpLaneTest, MarksAreSeen) {
  const auto xdp = Xdp(0), udp = Udp(1);
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  SendAndCheck(*udp, *xdp);
  if (!cable_->Run(1,
                   "printf 'table ip congested {\\n chain out {\\n type filter hook postrouting priority 0;\\n"
                   "meta l4proto udp ip ecn set ce\\n }\\n }\\n' | nft -f - 2>/dev/null")) {
    GTEST_SKIP() << "nftables is not usable here";
  }
  SegmentList list;
  list.AddRun(3, udp->OpenPeer(xdp->address()), 0, 100);
  udp->Send(list.all());
  const auto seen = ReceiveSome(*xdp, 3);
  ASSERT_EQ(seen.size(), 3u);
  for (const ReceivedSegment& segment : seen) EXPECT_TRUE(segment.congestion_experienced);
}

TEST_F(XdpLaneTest, MarksAreAskedForWhereTheSegmentMayBeMarked) {
  const auto xdp = Xdp(0);
  ASSERT_NE(xdp, nullptr);
  cable_->Enter(1);
  const FileDescriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  cable_->Leave();
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(7007);
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
  ASSERT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)), 0);
  const auto to = ParseLaneAddress("198.51.100.2:7007");
  ASSERT_TRUE(to.ok());
  const uint32_t peer = xdp->OpenPeer(*to);
  for (const bool capable : {true, false}) {
    SegmentList one;
    one.Add(peer, 0, 64, capable);
    ASSERT_EQ(xdp->Send(one.all()), 1u);
    uint8_t data[128], control[64];
    iovec vector{data, sizeof(data)};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    pollfd waiting{fd.get(), POLLIN, 0};
    ASSERT_EQ(poll(&waiting, 1, 2000), 1);
    ASSERT_EQ(recvmsg(fd.get(), &message, 0), 64);
    const cmsghdr* entry = CMSG_FIRSTHDR(&message);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(*CMSG_DATA(entry) & 3, capable ? 2 : 0);
  }
}

TEST_F(XdpLaneTest, OtherTrafficOfTheInterfaceGoesOn) {
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  // A connection, as of ssh, and a datagram to another port.
  for (const int family : {AF_INET, AF_INET6}) {
    SocketAddress server;
    const bool v4 = family == AF_INET;
    const auto text = v4 ? absl::StrCat(CabledNamespaces::kAddressV4[1], ":2222")
                         : absl::StrCat("[", CabledNamespaces::kAddressV6[1], "]:2222");
    ASSERT_TRUE(ToSocketAddress(*ParseLaneAddress(text), server));
    cable_->Enter(1);
    const FileDescriptor listener(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const FileDescriptor receiver(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    cable_->Enter(0);
    const FileDescriptor client(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const FileDescriptor sender(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    cable_->Leave();
    ASSERT_EQ(bind(listener.get(), &server.generic, server.size), 0);
    ASSERT_EQ(bind(receiver.get(), &server.generic, server.size), 0);
    ASSERT_EQ(listen(listener.get(), 1), 0);
    const timeval patience{5, 0};
    setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(client.get(), &server.generic, server.size), 0) << text;
    EXPECT_EQ(sendto(sender.get(), "x", 1, 0, &server.generic, server.size), 1);
    pollfd waiting{receiver.get(), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 5000), 1) << text;
  }
  SendAndCheck(*a, *b);
}

TEST_F(XdpLaneTest, ThePortIsHeld) {
  const auto a = Xdp(0, "v0:7123");
  ASSERT_NE(a, nullptr);
  cable_->Enter(0);
  UdpLaneOptions same;
  same.bind_address = "198.51.100.1:7123";
  EXPECT_EQ(CreateUdpLane(same).status().code(), absl::StatusCode::kAlreadyExists);
  cable_->Leave();
}

TEST_F(XdpLaneTest, OneLaneForEachInterfaceAndNothingIsLeftBehind) {
  auto a = Xdp(0);
  ASSERT_NE(a, nullptr);
  EXPECT_TRUE(cable_->Run(0, "ip link show v0 2>/dev/null | grep -q xdp"));
  const auto second = TryXdp(0, {.bind_address = "v0"});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(std::string(second.status().message()).find("interface v0 has an XDP program already"), std::string::npos)
      << second.status();
  a.reset();
  EXPECT_FALSE(cable_->Run(0, "ip link show v0 2>/dev/null | grep -q xdp"));
  // The kernel may still be clearing up what the last lane had.
  for (int i = 0; i < 10; ++i) {
    a = Xdp(0);
    ASSERT_NE(a, nullptr);
    // What the driver cannot do, rather than that the last socket was still there: of zero copy neither loses any.
    EXPECT_NE(a->name().find("copying (zero copy: Operation not supported)"), std::string_view::npos) << a->name();
    a.reset();
  }
}

TEST_F(XdpLaneTest, ErrorsNameWhatIsWrong) {
  ASSERT_TRUE(cable_->Run(0, "ip link set lo up"));
  const auto refused = [&](const XdpLaneOptions& options, absl::StatusCode code, const std::string& text) {
    const auto lane = TryXdp(0, options);
    EXPECT_EQ(lane.status().code(), code) << lane.status();
    EXPECT_NE(std::string(lane.status().message()).find(text), std::string::npos) << lane.status();
  };
  refused({.bind_address = "lo"}, absl::StatusCode::kInvalidArgument, "interface lo is no Ethernet interface");
  refused({.bind_address = "v7"}, absl::StatusCode::kInvalidArgument, "v0 (198.51.100.1");
  refused({.bind_address = "v0", .entropies = 0}, absl::StatusCode::kInvalidArgument, "may be 1 to 1024");
  refused({.bind_address = "v0", .mtu = 1501}, absl::StatusCode::kInvalidArgument, "may be 576 to 1500");
  refused({.bind_address = "[fd00::1]:0", .mtu = 1279}, absl::StatusCode::kInvalidArgument, "may be 1280 to 1500");
  EXPECT_FALSE(cable_->Run(0, "ip link show v0 2>/dev/null | grep -q xdp"));
}

TEST_F(XdpLaneTest, EachQueueHasASocketAndEachPathItsQueue) {
  cable_ = std::make_unique<CabledNamespaces>(4);
  ASSERT_EQ(cable_->why_not(), "");
  ASSERT_TRUE(cable_->Introduce());
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const uint32_t peer = a->OpenPeer(b->address());
  SegmentList list;
  for (uint16_t entropy = 0; entropy < 8; ++entropy) list.AddRun(1600, peer, entropy, 800);
  SendAndCheck(*a, *b, list);
  EXPECT_EQ(a->counters().tx_drops + b->counters().rx_drops, 0u);
  // Of all of them at once there is no order between paths, but nothing is missing.
  SegmentList mixed;
  for (uint16_t i = 0; i < 256; ++i) mixed.Add(peer, i % 8, 700);
  EXPECT_EQ(a->Send(mixed.all()), 256u);
  EXPECT_EQ(ReceiveSome(*b, 256).size(), 256u);
}

TEST_F(XdpLaneTest, QueuesThatAreAddedAreSaidAndWhatComesByThemIsCounted) {
  cable_ = std::make_unique<CabledNamespaces>(4);
  ASSERT_EQ(cable_->why_not(), "");
  ASSERT_TRUE(cable_->Introduce());
  cable_->Enter(1);
  const FileDescriptor control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  cable_->Leave();
  const auto set_queues = [&control](uint32_t count) {
    ethtool_channels channels{};
    ifreq request{};
    std::strncpy(request.ifr_name, CabledNamespaces::kDevice, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&channels);
    channels.cmd = ETHTOOL_GCHANNELS;
    if (ioctl(control.get(), SIOCETHTOOL, &request) != 0) return false;
    channels.cmd = ETHTOOL_SCHANNELS;
    channels.rx_count = count;
    return ioctl(control.get(), SIOCETHTOOL, &request) == 0;
  };
  if (!set_queues(1)) GTEST_SKIP() << "queues of a veth cannot be set here";
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  SegmentList list;
  for (uint16_t entropy = 0; entropy < 8; ++entropy) list.AddRun(2, a->OpenPeer(b->address()), entropy, 100);
  SendAndCheck(*a, *b, list);
  ::testing::internal::CaptureStderr();
  Idle(*b, 200);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(b->counters().rx_drops, 0u);
  ASSERT_TRUE(set_queues(4));
  ::testing::internal::CaptureStderr();
  size_t arrived = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(a->Send(list.all()), list.size());
    arrived += ReceiveSome(*b, list.size(), 64, 100).size();
    Idle(*b, 400);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::string expected = "interface v0 has 4 receive queues now and the lane a socket on the first 1";
  EXPECT_NE(said.find(expected), std::string::npos) << said;
  EXPECT_EQ(said.find(expected), said.rfind(expected)) << "once: " << said;
  EXPECT_LT(arrived, 3 * list.size());
  EXPECT_EQ(arrived + b->counters().rx_drops, 3 * list.size());
}

TEST_F(XdpLaneTest, NothingIsSentByAQueueThatOnlyReceives) {
  cable_ = std::make_unique<CabledNamespaces>(4, 1);
  ASSERT_EQ(cable_->why_not(), "");
  ASSERT_TRUE(cable_->Introduce());
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const uint32_t peer = a->OpenPeer(b->address());
  SegmentList list;
  for (uint16_t entropy = 0; entropy < 8; ++entropy) list.AddRun(1600, peer, entropy, 800);
  SendAndCheck(*a, *b, list);
  EXPECT_GT(a->room(), 0u);
  EXPECT_EQ(a->counters().tx_drops + b->counters().rx_drops, 0u);
}

// A macvlan does not tell how many queues it has, and hands on by which one a frame came to the interface below.
TEST_F(XdpLaneTest, QueuesThatTheDriverDoesNotCountHaveSocketsToo) {
  cable_ = std::make_unique<CabledNamespaces>(4);
  ASSERT_EQ(cable_->why_not(), "");
  if (!cable_->Run(0,
                   "ip link add m0 link v0 address 02:00:00:00:00:03 numrxqueues 4 numtxqueues 4 type macvlan mode "
                   "bridge 2>/dev/null && ip addr add 198.51.100.3/24 dev m0 && ip link set m0 up")) {
    GTEST_SKIP() << "no macvlan here";
  }
  ASSERT_TRUE(cable_->Run(1, "ip neigh replace 198.51.100.3 lladdr 02:00:00:00:00:03 dev v0 nud permanent"));
  // Seen from this namespace /sys has another m0, or none: nobody can count.
  const auto blind = TryXdp(0, {.bind_address = "m0"});
  EXPECT_EQ(blind.status().code(), absl::StatusCode::kFailedPrecondition) << blind.status();
  EXPECT_NE(std::string(blind.status().message()).find("the queues of interface m0 cannot be counted"),
            std::string::npos)
      << blind.status();
  // In a mount namespace of this process's own, which gtest runs one test in.
  cable_->Enter(0);
  const bool shown = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0;
  cable_->Leave();
  if (!shown) GTEST_SKIP() << "no /sys of a network namespace can be mounted here";
  const auto a = Xdp(0, "m0"), b = Xdp(1);
  umount("/sys");
  ASSERT_TRUE(a != nullptr && b != nullptr);
  SegmentList list;
  for (uint16_t entropy = 0; entropy < 8; ++entropy) list.AddRun(160, b->OpenPeer(a->address()), entropy, 800);
  SendAndCheck(*b, *a, list);
}

TEST(XdpCard, WhatCannotReceiveIsRefusedAndTheErrorSaysWhatToDo) {
  const auto refused = [](const XdpCard& card, absl::StatusCode code, const std::string& text) {
    const absl::Status status = CheckXdpCard("x0", card);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << status;
  };
  XdpCard card;
  card.driver = "mlx5_core";
  card.receive_queues = 64;
  EXPECT_TRUE(CheckXdpCard("x0", card).ok());
  card.receive_queues = 65;
  refused(card, absl::StatusCode::kFailedPrecondition, "ethtool -L x0 combined 64");
  card.receive_queues = 8;
  card.driver = "bonding";
  refused(card, absl::StatusCode::kFailedPrecondition, "interface x0 is a bond");
  card.ethernet = false;
  refused(card, absl::StatusCode::kInvalidArgument, "interface x0 is no Ethernet interface");
}

TEST_F(XdpLaneTest, ABondIsRefused) {
  if (!cable_->Run(0, "ip link add b0 type bond 2>/dev/null && ip addr add 198.51.100.9/24 dev b0")) {
    GTEST_SKIP() << "no bonds here";
  }
  const auto lane = TryXdp(0, {.bind_address = "b0"});
  EXPECT_EQ(lane.status().code(), absl::StatusCode::kFailedPrecondition) << lane.status();
}

TEST_F(XdpLaneTest, TheKernelsGenericCodeServesAsWell) {
  XdpLaneOptions options;
  options.bind_address = CabledNamespaces::kDevice;
  options.driver = false;
  const auto a = TryXdp(0, options), b = TryXdp(1, options);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_NE((*a)->name().find("the kernel's generic code, copying (zero copy: not in generic code)"),
            std::string_view::npos)
      << (*a)->name();
  SendAndCheck(**a, **b, 500, 1400);
  SendAndCheck(**b, **a, 500, 1);
}

class XdpLargeFrames : public XdpFixture {
 protected:
  void SetMtu(size_t side, int mtu) { ASSERT_TRUE(cable_->Run(side, "ip link set v0 mtu " + std::to_string(mtu))); }
  // In one chunk of memory, of which the kernel keeps 256 bytes, are 3,826 of an IP packet.
  static bool OneChunk(const Lane& lane) { return lane.capabilities().max_packet_bytes <= 3826 - 28; }
};

TEST_F(XdpLargeFrames, UpToAChunk) {
  for (const size_t side : {size_t{0}, size_t{1}}) SetMtu(side, 3000);
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  EXPECT_EQ(a->capabilities().max_packet_bytes, 3000u - 28);
  SendAndCheck(*a, *b, 600, a->capabilities().max_packet_bytes);
  SendAndCheck(*b, *a, 10, 1);
}

TEST_F(XdpLargeFrames, OfSeveralChunks) {
  for (const size_t side : {size_t{0}, size_t{1}}) SetMtu(side, 9000);
  for (const bool driver : {true, false}) {
    XdpLaneOptions options;
    options.bind_address = CabledNamespaces::kDevice;
    options.driver = driver;
    const auto a = TryXdp(0, options), b = TryXdp(1, options);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    if (OneChunk(**a)) GTEST_SKIP() << "this kernel takes no frames of several chunks (Linux 6.6 does)";
    const uint32_t most = (*a)->capabilities().max_packet_bytes;
    EXPECT_EQ(most, 9000u - 28) << (*a)->name();
    const uint32_t peer = (*a)->OpenPeer((*b)->address());
    SegmentList list;
    for (uint32_t bytes = 1; bytes < most; bytes += 1 + bytes / 7) list.Add(peer, 0, bytes);
    for (const uint32_t edge : {3840u, 4096u, 7680u, 8192u}) {  // of chunks, as they are filled and as they are built
      for (uint32_t bytes = edge - 45; bytes <= edge + 3; ++bytes) list.Add(peer, 0, bytes);
    }
    for (uint32_t i = 0; i < 2000; ++i) list.Add(peer, static_cast<uint16_t>(i % 8), i % 3 == 0 ? 1 + i : most);
    SendAndCheck(**a, **b, list);
    SendAndCheck(**b, **a, 700, most);
    EXPECT_EQ((*a)->counters().tx_drops + (*b)->counters().rx_drops, 0u);
  }
}

TEST_F(XdpLargeFrames, NoMoreIsTakenThanThereIsRoomFor) {
  for (const size_t side : {size_t{0}, size_t{1}}) SetMtu(side, 9000);
  const auto a = Xdp(0), b = Xdp(1);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  if (OneChunk(*a)) GTEST_SKIP() << "this kernel takes no frames of several chunks (Linux 6.6 does)";
  SendAndCheck(*a, *b);
  const uint32_t peer = a->OpenPeer(b->address());
  SegmentList list;
  for (int i = 0; i < 4000; ++i) list.Add(peer, 0, i % 5 == 0 ? 100 : a->capabilities().max_packet_bytes);
  size_t sent = 0, arrived = 0;
  std::array<RxSegment, 64> out;
  for (int i = 0; i < 10000 && sent < list.size(); ++i) {
    const size_t room = a->room();
    EXPECT_LE(room, 1024u / 3);
    const size_t taken = a->Send(list.all().subspan(sent));
    EXPECT_GE(taken, std::min(room, list.size() - sent));
    sent += taken;
    a->Receive(out, MonotonicNow());
    while (const size_t count = b->Receive(out, MonotonicNow())) arrived += count;
  }
  EXPECT_EQ(sent, list.size());
  EXPECT_GT(arrived, 0u);
  for (int i = 0; i < 1000 && a->room() < 1024 / 3; ++i) Idle(*a, 1);
  EXPECT_EQ(a->room(), 1024u / 3) << "some chunks did not come back";
}

// What is longer than the lane takes, though the interface does, is dropped and counted, and what comes behind is
// whole.
TEST_F(XdpLargeFrames, ThatAreTooLongAreDropped) {
  for (const size_t side : {size_t{0}, size_t{1}}) SetMtu(side, 9000);
  XdpLaneOptions options;
  options.bind_address = CabledNamespaces::kDevice;
  options.mtu = 5000;
  const auto a = Xdp(0);
  const auto b = TryXdp(1, options);
  ASSERT_TRUE(a != nullptr && b.ok()) << b.status();
  if (OneChunk(**b)) GTEST_SKIP() << "this kernel takes no frames of several chunks (Linux 6.6 does)";
  SendAndCheck(*a, **b);
  const uint32_t peer = a->OpenPeer((*b)->address());
  SegmentList list;
  for (const uint32_t bytes : {10u, 8972u, 20u, 5500u, 4972u, 8000u, 30u}) list.Add(peer, 0, bytes);
  ASSERT_EQ(a->Send(list.all()), list.size());
  std::vector<size_t> sizes;
  for (const ReceivedSegment& segment : ReceiveSome(**b, 4)) sizes.push_back(segment.bytes.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{10, 20, 4972, 30}));
  Idle(**b, 200);
  EXPECT_EQ((*b)->counters().rx_drops, 3u);
}

TEST_F(XdpLargeFrames, AUdpLaneIsAPeerAsAnyOther) {
  for (const size_t side : {size_t{0}, size_t{1}}) SetMtu(side, 9000);
  const auto xdp = Xdp(0), udp = Udp(1);
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  for (const uint32_t bytes : {1u, 3900u, 8972u}) {
    if (bytes > xdp->capabilities().max_packet_bytes) continue;
    SendAndCheck(*xdp, *udp, 50, bytes);
    SendAndCheck(*udp, *xdp, 50, bytes);
  }
}

}  // namespace
}  // namespace paceline
