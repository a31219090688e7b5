// Packets for a lane that holds each back until it is due (LaneCapabilities::send_ahead): that they are handed over
// ahead of time, say when they are to leave, and leave as the pacer would have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cc/registry.h"
#include "tests/support/endpoint_pair.h"
#include "tests/support/observed_congestion_control.h"
#include "transport/core/endpoint.h"
#include "transport/wire/packet.h"

namespace paceline {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

constexpr uint32_t kSegment = 4096;
constexpr Duration kAhead = Duration::Micros(10);

// Paced at 10 Gb/s, but for messages of one segment.
class SinglesAtOnce : public CongestionControl {
 public:
  std::unique_ptr<SenderController> NewSender(const FlowInfo&, const PortInfo&, Time) override {
    return std::make_unique<Sender>();
  }

 private:
  class Sender : public SenderController {
   public:
    void OnAck(const AckSample&) override {}
    void OnLoss(const LossSample&) override {}
    Allowance allowance() const override {
      Allowance allowance;
      allowance.pacing_rate = Rate::Gbps(10);
      allowance.single_end = UINT64_MAX;
      return allowance;
    }
  };
};

// The second endpoint sends to the first at 10 Gb/s.
class SendAheadTest : public testing::Test {
 protected:
  using Control = std::function<std::unique_ptr<CongestionControl>(uint64_t seed)>;
  static std::unique_ptr<CongestionControl> None(uint64_t seed) {
    return CreateCongestionControl("none", {}, seed).value();
  }
  void Start(Duration send_ahead, const Control& control = None) {
    LaneCapabilities can = support::PairCapabilities(kSegment + limits::kMaxDataHeaderBytes, 16);
    can.link_rate = Rate::Gbps(10);
    can.send_ahead = send_ahead;
    pair_ = std::make_unique<support::EndpointPair>(control, can, true);
    const auto [a, b] = pair_->Connect();
    connection_ = b;
    for (std::vector<uint8_t>* in : {&large_in_, &small_in_}) {
      ASSERT_EQ(pair_->a().PostReceive(a, {.buffer = {in->data(), in->size()}}, pair_->now()), PostResult::kOk);
    }
    for (int i = 0; i < 10; ++i) pair_->Step();
  }
  void Send(std::vector<uint8_t>& buffer) {
    ASSERT_EQ(pair_->b().PostSend(connection_, {.buffer = {buffer.data(), buffer.size()}}, pair_->now()),
              PostResult::kOk);
  }
  // When the data packets that leave the sender's hands after that time are to leave.
  std::vector<Time> After(Duration time) {
    pair_->Step(time);
    std::vector<Time> times;
    for (const TxSegment& segment : pair_->last_of_b()) {
      if (segment.payload_bytes > 0) times.push_back(segment.leaves_at);
    }
    return times;
  }

  std::vector<uint8_t> large_ = std::vector<uint8_t>(1 << 20), large_in_ = large_;
  std::vector<uint8_t> small_ = std::vector<uint8_t>(64), small_in_ = small_;
  std::unique_ptr<support::EndpointPair> pair_;
  ConnectionId connection_ = kNoConnection;
};

int64_t AtOnce(const std::vector<Time>& times) { return std::count(times.begin(), times.end(), Time()); }

TEST_F(SendAheadTest, PacketsAreHandedOverAheadAndSayWhenTheyLeave) {
  Start(kAhead);
  Send(large_);
  const std::vector<Time> first = After(Duration::Micros(1));
  const Time now = pair_->now();
  ASSERT_GT(AtOnce(first), 0) << "the first is due";
  EXPECT_LE(AtOnce(first), 31) << "two bursts less one, as over every lane";
  const std::vector<Time> ahead(first.begin() + AtOnce(first), first.end());
  ASSERT_GE(ahead.size(), 2u);
  const Duration gap = ahead[1] - ahead[0];
  EXPECT_GE(gap, Rate::Gbps(10).TimeFor(kSegment));
  EXPECT_LT(gap, Rate::Gbps(10).TimeFor(kSegment + 200));
  for (size_t i = 1; i < ahead.size(); ++i) {  // a run begins where the one before ended, to some nanoseconds
    EXPECT_LE(ahead[i] - ahead[i - 1], gap + Duration::Nanos(10));
    EXPECT_GE(ahead[i] - ahead[i - 1], gap - Duration::Nanos(10));
  }
  EXPECT_GT(ahead.front(), now);
  EXPECT_LE(ahead.back(), now + kAhead);
  EXPECT_GT(ahead.back() + gap, now + kAhead) << "as many as are due in that time";

  // More when half of the time ahead is over, and no sooner.
  const Time next = ahead.back() + gap;
  EXPECT_THAT(After(next - kAhead / 2 - Duration::Nanos(100) - now), IsEmpty());
  EXPECT_LE(pair_->b().PollTimeout(), next - kAhead / 2 + Duration::Nanos(10));
  const std::vector<Time> second = After(Duration::Nanos(110));
  ASSERT_FALSE(second.empty());
  EXPECT_LE(second[0], next + Duration::Nanos(10));
  EXPECT_GE(second[0], next - Duration::Nanos(10));
}

TEST_F(SendAheadTest, WhoPollsInTimeSendsAtTheRateInEvenSteps) {
  Start(kAhead);
  Send(large_);
  std::vector<Time> departures;
  for (int pass = 0; pass < 250; ++pass) {
    for (const Time at : After(Duration::Micros(2))) {
      if (at > Time()) departures.push_back(at);  // at once is what the beginning catches up
    }
  }
  ASSERT_GT(departures.size(), 100u);
  const Duration least = Rate::Gbps(10).TimeFor(kSegment), most = Rate::Gbps(10).TimeFor(kSegment + 200);
  for (size_t i = 1; i < departures.size(); ++i) {
    ASSERT_GE(departures[i] - departures[i - 1], least - Duration::Nanos(2)) << i;
    ASSERT_LE(departures[i] - departures[i - 1], most + Duration::Nanos(2)) << i;
  }
}

TEST_F(SendAheadTest, APacketCarriesTheTimeAtWhichItLeaves) {
  Start(kAhead);
  Send(large_);
  After(Duration::Micros(1));
  ASSERT_FALSE(After(kAhead / 4 * 3).empty());
  const TxSegment& first = pair_->last_of_b().front();  // of a run, whose packets all carry its time
  ASSERT_GT(first.leaves_at, pair_->now());
  bool bad_checksum = false;
  const std::span<const uint8_t> packet(first.header, first.header_bytes);
  const auto common = wire::ParseCommon(packet, &bad_checksum);
  ASSERT_TRUE(common.has_value());
  const auto header = wire::ParseData(*common, packet);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->timestamp, static_cast<uint32_t>(first.leaves_at.nanos()));
}

TEST_F(SendAheadTest, WhatIsLateLeavesAtOnce) {
  Start(kAhead);
  Send(large_);
  After(Duration::Micros(1));
  const std::vector<Time> late = After(Duration::Micros(100));
  EXPECT_GT(AtOnce(late), 25) << "what the time since is worth";
  EXPECT_LE(AtOnce(late), 31);
  EXPECT_TRUE(std::is_sorted(late.begin(), late.end()));
}

TEST_F(SendAheadTest, WhatTheControllerLetsGoAtOnceHasNoTime) {
  Start(kAhead, [](uint64_t) { return std::make_unique<SinglesAtOnce>(); });
  Send(large_);
  After(Duration::Micros(1));
  Send(small_);
  pair_->Step(Duration::Nanos(100));
  const auto sent = pair_->last_of_b();
  const auto single =
      std::find_if(sent.begin(), sent.end(), [](const TxSegment& segment) { return segment.payload_bytes == 64; });
  ASSERT_NE(single, sent.end());
  EXPECT_EQ(single->leaves_at, Time());
}

// Only what a controller lets go at once does not wait: that of `none` lets nothing.
TEST_F(SendAheadTest, ASingleThatIsPacedHasItsTime) {
  Start(kAhead);
  Send(large_);
  After(Duration::Micros(1));
  Send(small_);
  for (int pass = 0; pass < 1000; ++pass) {
    pair_->Step(Duration::Nanos(500));
    for (const TxSegment& segment : pair_->last_of_b()) {
      if (segment.payload_bytes != 64) continue;
      EXPECT_GT(segment.leaves_at, pair_->now());
      return;
    }
  }
  FAIL() << "the single never left";
}

// A packet on its way, with what the sender's burst had.
struct InFlight {
  Time arrives;
  std::vector<uint8_t> header;
  const uint8_t* payload = nullptr;
  uint32_t payload_bytes = 0;
};

TEST_F(SendAheadTest, ARoundTripBeginsWhenThePacketLeaves) {
  LaneCapabilities can = support::PairCapabilities(kSegment + limits::kMaxDataHeaderBytes, 16);
  can.link_rate = Rate::Gbps(10);
  can.send_ahead = kAhead;
  const PortDescription port{can, LaneAddress{}};
  support::NoLanes environment;
  const auto observation = std::make_shared<support::ControlObservation>();
  const auto make = [&](uint64_t seed) {
    EndpointOptions options;
    options.seed = seed;
    return std::make_unique<Endpoint>(options, support::Observe(None(seed), observation), &environment,
                                      std::span(&port, 1));
  };
  const std::unique_ptr<Endpoint> sender = make(1), receiver = make(2);
  const LaneAddress address{.size = 1};
  const ConnectionId a = sender->ReserveConnection(), b = receiver->ReserveConnection();
  Time now = Time::FromNanos(1'000'000);
  sender->Establish(a, {.peer_connection = b, .addresses = {address}}, now);
  receiver->Establish(b, {.peer_connection = a, .addresses = {address}}, now);
  ASSERT_EQ(receiver->PostReceive(b, {.buffer = {large_in_.data(), large_in_.size()}}, now), PostResult::kOk);
  ASSERT_EQ(sender->PostSend(a, {.buffer = {large_.data(), large_.size()}}, now), PostResult::kOk);

  TxBurst burst;
  std::vector<InFlight> there, back;
  const auto send = [&](Endpoint& from, std::vector<InFlight>& way) {
    if (from.PollTimeout() <= now) from.HandleTimeout(now);
    const size_t count = from.PollTransmit(0, burst, TxBurst::kSegments, now);
    for (const TxSegment& segment : std::span(burst.segments).first(count)) {
      way.push_back({std::max(now, segment.leaves_at),
                     {segment.header, segment.header + segment.header_bytes},
                     segment.payload,
                     segment.payload_bytes});
    }
  };
  const auto deliver = [&](std::vector<InFlight>& way, Endpoint& to) {
    while (!way.empty() && way.front().arrives <= now) {
      RxSegment got;
      got.data = way.front().header.data();
      got.data_bytes = static_cast<uint32_t>(way.front().header.size());
      got.payload = const_cast<uint8_t*>(way.front().payload);
      got.payload_bytes = way.front().payload_bytes;
      got.source = &address;
      got.received_at = now;
      to.HandleSegments(0, std::span(&got, 1), now);
      way.erase(way.begin());
    }
  };
  for (int pass = 0; pass < 2000; ++pass, now = now + Duration::Nanos(500)) {
    send(*sender, there);
    deliver(there, *receiver);
    send(*receiver, back);
    deliver(back, *sender);
  }
  EXPECT_GT(observation->acked_bytes, large_.size() / 2);
  EXPECT_GT(observation->longest_rtt, Duration());
  EXPECT_LT(observation->longest_rtt, Duration::Micros(4)) << "the time until it left counts";
}

TEST_F(SendAheadTest, OtherLanesSendAtOnce) {
  Start(Duration());
  Send(large_);
  EXPECT_EQ(After(Duration::Micros(1)).size(), 31u) << "two bursts less one";
  EXPECT_LE(After(Duration::Micros(1)).size(), 1u);
  const std::vector<Time> late = After(Duration::Micros(100));
  EXPECT_GT(late.size(), 20u);
  EXPECT_THAT(late, Each(Time()));
}

}  // namespace
}  // namespace paceline
