// Times of arrival as a port stamps them, and of departure that it keeps. No port made of software does, so a clock is
// laid over ports in memory here: DPDK's questions about the port are answered by this program, which stamps what
// arrives and reads when packets are to leave.
#include <gmock/gmock.h>
#include <rte_mbuf_dyn.h>

#include <cerrno>
#include <cmath>

#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"
#include "tests/unit/transport/lane/dpdk/port_overlay.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {
namespace {

// Of every port while it lives, and beside none.
class TimedPorts final : public PortOverlay {
 public:
  TimedPorts() {
    EXPECT_EQ(rte_mbuf_dyn_rx_timestamp_register(&stamp_at_, &stamped_), 0);
    EXPECT_EQ(rte_mbuf_dyn_tx_timestamp_register(&time_at_, &timed_), 0);
    current_ = this;
  }
  ~TimedPorts() override { current_ = nullptr; }
  static TimedPorts* current() { return current_; }

  int ReadClock(uint64_t* ticks) {
    ++readings;
    if (!readable) return -ENOTSUP;
    *ticks = running ? TicksAt(MonotonicNow()) : TicksAt(Time());
    return 0;
  }
  // 3.2 ns a tick, as cards count them.
  static uint64_t TicksAt(Time host) {
    return 987'654'321'000 + static_cast<uint64_t>(std::llround(static_cast<double>(host.nanos()) / 3.2));
  }
  // Of all packets that are received through the port from now on.
  void StampArrivals(const std::string& name, Time at) {
    uint16_t port = 0;
    ASSERT_EQ(rte_eth_dev_get_port_by_name(name.c_str(), &port), 0);
    came_ = at;
    const auto stamp = [](uint16_t, uint16_t, rte_mbuf** packets, uint16_t count, uint16_t, void* self) {
      for (uint16_t i = 0; i < count; ++i) static_cast<TimedPorts*>(self)->Stamp(packets[i]);
      return count;
    };
    ASSERT_NE(rte_eth_add_rx_callback(port, 0, stamp, this), nullptr);
  }
  void set_came(Time at) { came_ = at; }
  // Of all packets that are sent through the port from now on: when they are to leave, in ticks; 0: at once.
  void ReadDepartures(const std::string& name) {
    uint16_t port = 0;
    ASSERT_EQ(rte_eth_dev_get_port_by_name(name.c_str(), &port), 0);
    const auto read = [](uint16_t, uint16_t, rte_mbuf** packets, uint16_t count, void* self) {
      for (uint16_t i = 0; i < count; ++i) static_cast<TimedPorts*>(self)->Read(packets[i]);
      return count;
    };
    ASSERT_NE(rte_eth_add_tx_callback(port, 0, read, this), nullptr);
  }

  bool stamps = true, sends_on_time = true;
  bool readable = true, running = true;
  int readings = 0;
  uint64_t asked_for = 0, asked_for_sending = 0;  // offloads, by anybody
  std::vector<uint64_t> departures;

 private:
  void Stamp(rte_mbuf* packet) const {
    *RTE_MBUF_DYNFIELD(packet, stamp_at_, rte_mbuf_timestamp_t*) = TicksAt(came_);
    packet->ol_flags |= stamped_;
  }
  void Read(rte_mbuf* packet) {
    const bool timed = (packet->ol_flags & timed_) != 0;
    departures.push_back(timed ? *RTE_MBUF_DYNFIELD(packet, time_at_, rte_mbuf_timestamp_t*) : 0);
  }

  void OnInfo(rte_eth_dev_info& info) const override {
    if (stamps) info.rx_offload_capa |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
    if (sends_on_time) info.tx_offload_capa |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
  }
  void OnConfigure(rte_eth_conf& conf) override {
    asked_for |= conf.rxmode.offloads;
    asked_for_sending |= conf.txmode.offloads;
    conf.rxmode.offloads &= ~uint64_t{RTE_ETH_RX_OFFLOAD_TIMESTAMP};
    conf.txmode.offloads &= ~uint64_t{RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP};
  }

  static inline TimedPorts* current_ = nullptr;
  int stamp_at_ = 0, time_at_ = 0;
  uint64_t stamped_ = 0, timed_ = 0;
  Time came_;
};

}  // namespace
}  // namespace paceline

// The linker takes it for DPDK's.
extern "C" {

int rte_eth_read_clock(uint16_t port, uint64_t* ticks) {
  static auto* const dpdk = paceline::BehindDpdk<decltype(rte_eth_read_clock)>("rte_eth_read_clock");
  auto* timed = paceline::TimedPorts::current();
  return timed != nullptr ? timed->ReadClock(ticks) : dpdk(port, ticks);
}

}  // extern "C"

namespace paceline {
namespace {

using ::testing::HasSubstr;

// Beyond this the clock was misread: at another rate, or from another beginning. Not a bound on the machine.
constexpr Duration kClose = Duration::Millis(200);

class DpdkPacketTimesTest : public DpdkTest {
 protected:
  void Start(const std::string& settings = "") {
    ports_ = RingPair::Make();
    lane_ = MakeLane(ports_.a + ",address=192.0.2.1" + settings);
    ASSERT_TRUE(lane_ != nullptr);
    other_ = std::make_unique<BarePort>(ports_.b);
    // Whoever asks for the address shows his own.
    peer_ = lane_->OpenPeer(ToLaneAddress(IpVersion::kV4, {192, 0, 2, 2}, 777));
    Introduce(*lane_, *other_);
    SegmentList list;
    list.Add(peer_, 0, 100);
    lane_->Send(list.all());
    const auto sent = other_->Receive();
    ASSERT_FALSE(sent.empty());
    const auto parsed = ParseFrame(sent.back(), true);
    ASSERT_TRUE(parsed);
    back_ = parsed->flow;
    std::swap(back_.source_mac, back_.destination_mac);
    std::swap(back_.source, back_.destination);
    std::swap(back_.source_port, back_.destination_port);
  }
  static std::string ErrorOf(const std::string& device) {
    DpdkLaneOptions options;
    options.devices = {device};
    return std::string(OpenDpdkLanes(options).status().message());
  }
  // Of one packet that the other end sends.
  Time Arrival(Time now) {
    other_->Send(back_, 50);
    EXPECT_EQ(lane_->Receive(out_, now), 1u);
    return out_[0].received_at;
  }

  RingPair ports_;
  std::unique_ptr<BarePort> other_;
  std::unique_ptr<Lane> lane_;
  uint32_t peer_ = 0;
  FrameFlow back_;
  std::array<RxSegment, 64> out_;
};

TEST_F(DpdkPacketTimesTest, APacketCameWhenThePortSaysSo) {
  TimedPorts timed;
  Start();
  EXPECT_TRUE(lane_->capabilities().rx_timestamps);
  EXPECT_NE(timed.asked_for & RTE_ETH_RX_OFFLOAD_TIMESTAMP, 0u);
  const Time now = MonotonicNow();
  timed.StampArrivals(ports_.a, now - Duration::Millis(700));
  const Time came = Arrival(now);
  EXPECT_GT(came, now - Duration::Millis(700) - kClose);
  EXPECT_LT(came, now - Duration::Millis(700) + kClose);
}

TEST_F(DpdkPacketTimesTest, NothingCameAfterItWasTaken) {
  TimedPorts timed;
  Start();
  const Time now = MonotonicNow();
  timed.StampArrivals(ports_.a, now + Duration::Seconds(5));
  EXPECT_EQ(Arrival(now), now);
}

TEST_F(DpdkPacketTimesTest, APacketWithoutAStampCameWhenItWasTaken) {
  TimedPorts timed;
  Start();
  const Time now = MonotonicNow() + Duration::Seconds(3);
  EXPECT_EQ(Arrival(now), now);
}

TEST_F(DpdkPacketTimesTest, TheClockIsReadAsTimePasses) {
  TimedPorts timed;
  Start();
  Time now = MonotonicNow() + Duration::Seconds(1);
  lane_->Receive(out_, now);
  for (int i = 0; i < 10; ++i) {
    // Once, and again where the host was busy while it was read (ReadCardClock).
    const int before = timed.readings;
    lane_->Receive(out_, now = now + Duration::Millis(10));
    EXPECT_GT(timed.readings, before);
  }
  const int before = timed.readings;
  lane_->Receive(out_, now);
  EXPECT_EQ(timed.readings, before) << "no time has passed";
  // One that can no longer be read is followed as far as it is known.
  timed.readable = false;
  lane_->Receive(out_, now + Duration::Millis(10));
  const Time taken = MonotonicNow();
  timed.StampArrivals(ports_.a, taken - Duration::Millis(700));
  EXPECT_LT(Arrival(taken), taken - Duration::Millis(700) + kClose);
}

TEST_F(DpdkPacketTimesTest, APortWhoseClockIsOfNoUseIsAsOneThatDoesNotStamp) {
  TimedPorts timed;
  timed.readable = false;
  Start();
  EXPECT_FALSE(lane_->capabilities().rx_timestamps);
  const Time now = MonotonicNow();
  timed.StampArrivals(ports_.a, now - Duration::Millis(700));
  EXPECT_EQ(Arrival(now), now);

  timed.readable = true;
  timed.running = false;
  const auto standing = MakeLane(RingPair::Make().a + ",address=192.0.2.3");
  ASSERT_TRUE(standing != nullptr);
  EXPECT_FALSE(standing->capabilities().rx_timestamps);
}

TEST_F(DpdkPacketTimesTest, APacketLeavesWhenItIsDue) {
  TimedPorts timed;
  timed.stamps = false;
  Start(",send_on_time=1");
  EXPECT_FALSE(lane_->capabilities().rx_timestamps);
  EXPECT_GT(lane_->capabilities().send_ahead, Duration());
  EXPECT_EQ(timed.asked_for & RTE_ETH_RX_OFFLOAD_TIMESTAMP, 0u);
  EXPECT_NE(timed.asked_for_sending & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP, 0u);
  timed.ReadDepartures(ports_.a);
  SegmentList list;
  list.Add(peer_, 0, 100);
  list.Add(peer_, 0, 100);
  std::vector<TxSegment> segments(list.all().begin(), list.all().end());
  const Time due = MonotonicNow() + Duration::Millis(500);
  segments[1].leaves_at = due;
  EXPECT_EQ(lane_->Send(segments), 2u);
  ASSERT_EQ(timed.departures.size(), 2u);
  EXPECT_EQ(timed.departures[0], 0u) << "this one at once";
  EXPECT_GT(timed.departures[1], TimedPorts::TicksAt(due - kClose));
  EXPECT_LT(timed.departures[1], TimedPorts::TicksAt(due + kClose));
  segments[1].leaves_at = due + Duration::Seconds(5);
  EXPECT_EQ(lane_->Send(segments), 2u);
  ASSERT_EQ(timed.departures.size(), 4u);
  EXPECT_EQ(timed.departures[3], 0u) << "what the clock will show then is not known";
}

TEST_F(DpdkPacketTimesTest, APortThatIsToSendOnTimeAndCannotIsRefused) {
  EXPECT_THAT(ErrorOf(RingPair::Make().a + ",address=192.0.2.1,send_on_time=1"), HasSubstr("does not offer that"));
  TimedPorts timed;
  timed.readable = false;
  EXPECT_THAT(ErrorOf(RingPair::Make().a + ",address=192.0.2.1,send_on_time=1"), HasSubstr("its clock cannot be read"));
}

TEST_F(DpdkPacketTimesTest, APortSendsOnTimeOnlyWhenToldTo) {
  TimedPorts timed;
  Start();
  EXPECT_TRUE(lane_->capabilities().rx_timestamps);
  EXPECT_EQ(lane_->capabilities().send_ahead, Duration());
  EXPECT_EQ(timed.asked_for_sending & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP, 0u);
}

TEST_F(DpdkPacketTimesTest, APortThatDoesNotStampIsNotAsked) {
  Start();
  EXPECT_FALSE(lane_->capabilities().rx_timestamps);
  const Time now = MonotonicNow();
  EXPECT_EQ(Arrival(now), now);
}

}  // namespace
}  // namespace paceline
