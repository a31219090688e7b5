// Links that go down and interfaces that vanish, in a network namespace of this program's own. Where the machine does
// not allow one, the tests are skipped with the reason.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/unit/transport/lane/udp/udp_lane_fixture.h"
#include "transport/lane/udp/udp_interfaces.h"
#include "transport/lane/udp/udp_lane.h"

namespace paceline {
namespace {

// Enters a namespace before any thread exists; keeps the reason when that is refused.
class OwnNamespace : public ::testing::Environment {
 public:
  void SetUp() override {
    const uid_t uid = getuid();
    const gid_t gid = getgid();
    if (unshare(CLONE_NEWNET) != 0) {
      if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        why_not = std::string("a network namespace is refused: ") + std::strerror(errno);
        return;
      }
      std::ofstream("/proc/self/setgroups") << "deny";
      std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
      std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
    }
    if (std::system("ip link set lo up") != 0) why_not = "the ip command (package iproute2) does not work here";
  }
  static inline std::string why_not;
};
[[maybe_unused]] const ::testing::Environment* const kNamespace = ::testing::AddGlobalTestEnvironment(new OwnNamespace);

class UdpLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!OwnNamespace::why_not.empty()) GTEST_SKIP() << OwnNamespace::why_not;
  }
  void TearDown() override {
    lane_.reset();
    [[maybe_unused]] const int gone = std::system("ip link del veth0 2>/dev/null; ip link del veth2 2>/dev/null");
  }
  static bool Run(const std::string& command) { return std::system(command.c_str()) == 0; }
  static bool AddVeth() { return Run("ip link add veth0 type veth peer name veth1"); }
  static bool StartVeth(const std::string& address) {
    const std::string flag = address.find(':') == std::string::npos ? "" : " nodad";  // IPv6: usable at once
    return Run("ip addr add " + address + " dev veth0" + flag + " && ip link set veth0 up && ip link set veth1 up");
  }
  void MakeVeth(const std::string& address, bool bind_to_device = false) {
    if (!AddVeth()) GTEST_SKIP() << "this kernel has no veth interfaces";
    ASSERT_TRUE(StartVeth(address));
    UdpLaneOptions options;
    options.bind_address = "veth0";
    options.bind_to_device = bind_to_device;
    lane_ = MustCreate(options);
    ASSERT_NE(lane_, nullptr);
  }
  // Polls as an engine does, asleep on the descriptor in between, until the lane is up (or down) or five seconds
  // passed.
  bool WaitFor(bool up) {
    std::array<RxSegment, 8> out;
    for (const Time end = MonotonicNow() + Duration::Seconds(5); MonotonicNow() < end;) {
      lane_->Receive(out, MonotonicNow());
      if (lane_->status().up == up) return true;
      pollfd waiting{lane_->wait_descriptor(), POLLIN, 0};
      poll(&waiting, 1, 100);
    }
    return false;
  }
  // As often as it takes for a look at the link.
  void LetItLook() {
    std::array<RxSegment, 8> out;
    for (int i = 0; i < 200; ++i) lane_->Receive(out, MonotonicNow());
  }
  std::unique_ptr<Lane> lane_;
};

TEST_F(UdpLinkTest, DownAndUpAgain) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  const uint32_t changes = lane_->status().change_count;
  ASSERT_TRUE(Run("ip link set veth0 down"));
  EXPECT_TRUE(WaitFor(false));
  EXPECT_GT(lane_->status().change_count, changes);
  ASSERT_TRUE(Run("ip link set veth0 up"));
  EXPECT_TRUE(WaitFor(true));
}

TEST_F(UdpLinkTest, CarrierLost) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  ASSERT_TRUE(Run("ip link set veth1 down"));
  EXPECT_TRUE(WaitFor(false));
}

TEST_F(UdpLinkTest, InterfaceGone) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  ASSERT_TRUE(Run("ip link del veth0"));
  EXPECT_TRUE(WaitFor(false));
  // Sending into the void is counted and does no harm.
  SegmentList list;
  list.AddRun(5, lane_->OpenPeer(ParseLaneAddress("198.51.100.2:7").value()), 0, 500);
  EXPECT_EQ(lane_->Send(list.all()), 5u);
  EXPECT_EQ(lane_->counters().tx_drops, 5u);
  // Made anew it has another index; the lane's sockets work again.
  ASSERT_TRUE(AddVeth() && StartVeth("198.51.100.1/24"));
  EXPECT_TRUE(WaitFor(true));
  SegmentList own;
  own.AddRun(1, lane_->OpenPeer(lane_->address()), 0, 500);
  EXPECT_EQ(lane_->Send(own.all()), 1u);
  EXPECT_EQ(ReceiveSome(*lane_, 1).size(), 1u);
  ASSERT_TRUE(Run("ip link set veth1 down"));
  EXPECT_TRUE(WaitFor(false)) << "the new one is watched";
}

// Who renumbers a network adds the address with its new prefix and then takes away the one with the old.
TEST_F(UdpLinkTest, AddressKeptWithAnotherPrefix) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  ASSERT_TRUE(Run("ip addr add 198.51.100.1/16 dev veth0 && ip addr del 198.51.100.1/24 dev veth0"));
  LetItLook();
  EXPECT_TRUE(lane_->status().up);
  EXPECT_GT(lane_->status().change_count, 0u) << "nothing was told of the address that went";
  ASSERT_TRUE(Run("ip addr del 198.51.100.1/16 dev veth0"));
  EXPECT_TRUE(WaitFor(false));
}

TEST_F(UdpLinkTest, AnotherInterfaceHadTheAddressBeforeItsOwnWasGone) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  ASSERT_TRUE(
      Run("ip link add veth2 type veth peer name veth3 && ip addr add 198.51.100.1/24 dev veth2 && "
          "ip link set veth2 up && ip link set veth3 up"));
  LetItLook();
  ASSERT_EQ(lane_->status().change_count, 0u);
  ASSERT_TRUE(Run("ip link del veth0"));
  LetItLook();
  EXPECT_TRUE(WaitFor(true));  // at once, once the kernel has found the new link to be up
  ASSERT_TRUE(Run("ip link del veth2"));
  EXPECT_TRUE(WaitFor(false)) << "the new one is watched";
}

// The kernel binds a socket to an index, not to a name.
TEST_F(UdpLinkTest, SocketsOfAnInterfaceAreGoneWithIt) {
  MakeVeth("198.51.100.1/24", true);
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  ASSERT_TRUE(Run("ip link del veth0"));
  EXPECT_TRUE(WaitFor(false));
  ASSERT_TRUE(AddVeth() && StartVeth("198.51.100.1/24"));
  std::array<RxSegment, 8> out;
  for (int i = 0; i < 2000; ++i) lane_->Receive(out, MonotonicNow());
  EXPECT_FALSE(lane_->status().up);
}

TEST_F(UdpLinkTest, AddressTakenAwayAndGivenBack) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  ASSERT_TRUE(Run("ip addr del 198.51.100.1/24 dev veth0"));
  EXPECT_TRUE(WaitFor(false));
  ASSERT_TRUE(Run("ip addr add 198.51.100.1/24 dev veth0"));
  EXPECT_TRUE(WaitFor(true));
}

// More messages than the kernel keeps for us: what it threw away is asked for.
TEST_F(UdpLinkTest, AddressTakenAwayAndGivenBackAmongMessagesThatWereLost) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  const std::string flood = "seq 1 2000 | sed 's/.*/link set veth0 alias a&/' | ip -batch - && ";
  ASSERT_TRUE(Run(flood + "ip addr del 198.51.100.1/24 dev veth0"));
  EXPECT_TRUE(WaitFor(false));
  ASSERT_TRUE(Run(flood + "ip addr add 198.51.100.1/24 dev veth0"));
  EXPECT_TRUE(WaitFor(true));
}

// The interface has 127.0.0.1; all else of its prefix is ours as well.
TEST_F(UdpLinkTest, AnotherAddressOfTheLoopbackOutlivesMessagesThatWereLost) {
  UdpLaneOptions options;
  options.bind_address = "127.0.0.2:0";
  lane_ = MustCreate(options);
  ASSERT_NE(lane_, nullptr);
  ASSERT_TRUE(WaitFor(true));
  ASSERT_TRUE(Run("seq 1 2000 | sed 's/.*/link set lo alias a&/' | ip -batch -"));
  LetItLook();
  EXPECT_TRUE(lane_->status().up);
  EXPECT_EQ(lane_->status().change_count, 0u);
}

TEST_F(UdpLinkTest, Ipv6AddressLeavesWithTheLink) {
  MakeVeth("fd00:5::1/64");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  ASSERT_TRUE(Run("ip link set veth0 down"));
  EXPECT_TRUE(WaitFor(false));
}

// The kernel then names the far end where it names the address otherwise.
TEST_F(UdpLinkTest, Ipv6AddressOfAPointToPointLink) {
  MakeVeth("fd00:5::1 peer fd00:5::2");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  ASSERT_TRUE(Run("ip addr del fd00:5::1 peer fd00:5::2 dev veth0"));
  EXPECT_TRUE(WaitFor(false));
  ASSERT_TRUE(Run("ip addr add fd00:5::1 peer fd00:5::2 dev veth0 nodad"));
  EXPECT_TRUE(WaitFor(true));
}

TEST_F(UdpLinkTest, OtherInterfacesDoNotMatter) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(WaitFor(true));
  const uint32_t changes = lane_->status().change_count;
  ASSERT_TRUE(Run("ip link add veth2 type veth peer name veth3 && ip link set veth2 up && ip link del veth2"));
  LetItLook();
  EXPECT_TRUE(lane_->status().up);
  EXPECT_EQ(lane_->status().change_count, changes);
}

TEST_F(UdpLinkTest, PacketsLargerThanTheMtuOfTheMomentAreCounted) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(Run("ip link set veth0 mtu 1000"));  // smaller than when the lane was made
  const uint32_t peer = lane_->OpenPeer(ParseLaneAddress("198.51.100.2:7").value());
  SegmentList list;
  list.AddRun(5, peer, 0, 1400);
  list.Add(peer, 1, 1400);
  EXPECT_EQ(lane_->Send(list.all()), 6u);
  EXPECT_EQ(lane_->counters().tx_drops, 6u);
  EXPECT_EQ(lane_->capabilities().burst_segments, 44u) << "that is no reason to give up UDP_SEGMENT";
}

TEST_F(UdpLinkTest, AFullSocketHasNoRoomUntilItDrains) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  ASSERT_TRUE(Run("ip neigh add 198.51.100.2 lladdr 02:00:00:00:00:02 dev veth0"));
  const uint32_t peer = lane_->OpenPeer(ParseLaneAddress("198.51.100.2:7").value());
  for (const uint16_t entropy :
       {uint16_t{1}, uint16_t{0}}) {  // a socket that only sends, and the one that also receives
    if (!Run("tc qdisc add dev veth0 root tbf rate 8kbit burst 16kb limit 100mb")) {
      GTEST_SKIP() << "this kernel has no token bucket queue";
    }
    SegmentList list;
    list.AddRun(40, peer, entropy, 1400);
    EXPECT_GT(lane_->room(), 0u);
    size_t taken = 40;
    for (int i = 0; i < 1000 && taken == 40; ++i) taken = lane_->Send(list.all());
    ASSERT_LT(taken, 40u) << "the socket never filled";
    EXPECT_EQ(lane_->room(), 0u);
    EXPECT_EQ(lane_->counters().tx_drops, 0u);
    std::array<RxSegment, 8> out;
    for (int i = 0; i < 200; ++i) lane_->Receive(out, MonotonicNow());
    pollfd waiting{lane_->wait_descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 0), 0);

    ASSERT_TRUE(Run("tc qdisc del dev veth0 root"));  // throws away what was queued
    EXPECT_EQ(poll(&waiting, 1, 5000), 1) << "the descriptor tells that there is room again";
    EXPECT_GT(lane_->room(), 0u);
    for (int i = 0; i < 200; ++i) lane_->Receive(out, MonotonicNow());
    EXPECT_EQ(poll(&waiting, 1, 0), 0) << "and falls silent when nobody sends";
  }
}

TEST_F(UdpLinkTest, VethIsVirtualAndItsSpeedUnknown) {
  MakeVeth("198.51.100.1/24");
  if (lane_ == nullptr) return;
  EXPECT_TRUE(lane_->capabilities().link_rate.is_zero());
  const auto interfaces = ListUdpInterfaces();
  ASSERT_TRUE(interfaces.ok());
  for (const UdpInterface& interface : *interfaces) EXPECT_TRUE(interface.is_virtual) << interface.name;
}

}  // namespace
}  // namespace paceline
