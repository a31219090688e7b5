// Numbers by hand for 100 Gb/s = 12.5 bytes per ns and T = 14,000 ns: B T = 175,000 wire bytes, 172,307 of payload.
#include "cc/algorithms/hpcc.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

constexpr double kBdp = 172'307;
constexpr uint64_t kSegment = 4096;

std::unique_ptr<SenderController> NewSender(const ParameterMap& given = {}) {
  const AlgorithmInfo algorithm = HpccAlgorithm();
  return algorithm.create(*ResolveParameters(algorithm, given), 1)->NewSender({}, TestPort(), Time());
}

class HpccTest : public ::testing::Test {
 protected:
  // An acknowledgement that brings these words of links, so long after the last.
  void Ack(const std::vector<HopTelemetry>& hops, int64_t after_nanos = 1400) {
    now_ = now_ + Duration::Nanos(after_nanos);
    sender_->OnAck(
        {.now = now_, .acked_bytes = kSegment, .acked_packets = 1, .in_flight_bytes = 40 * kSegment, .hops = hops});
  }
  void Send(uint64_t segments) {
    tx_total_ += segments * kSegment;
    sender_->OnSent(now_, tx_total_, 40 * kSegment);
  }
  // A link of 100 Gb/s.
  static HopTelemetry Link(uint32_t link, uint32_t nanos, uint32_t queue, uint32_t sent) {
    return {.link = link, .queue_bytes = queue, .sent_bytes = sent, .time_nanos = nanos, .rate = Rate::Gbps(100)};
  }
  double window() const { return static_cast<double>(sender_->allowance().window_bytes); }

  std::unique_ptr<SenderController> sender_ = NewSender();
  Time now_ = Time::FromNanos(1'000'000);
  uint64_t tx_total_ = 0;
};

TEST_F(HpccTest, StartsWithABdpAtLineRateAndAsksForTelemetry) {
  EXPECT_EQ(window(), kBdp);
  EXPECT_NEAR(sender_->allowance().pacing_rate.gbps(), 100, 1e-3);
  EXPECT_TRUE(sender_->wants_telemetry());
  EXPECT_TRUE(HpccAlgorithm().needs_telemetry);
}

TEST_F(HpccTest, TheFirstWordOfALinkAndAcknowledgementsWithoutAnyChangeNothing) {
  Send(41);
  Ack({});
  Ack({Link(1, 1000, 50'000, 0)});
  EXPECT_EQ(window(), kBdp);
}

TEST_F(HpccTest, QueueAndRateOfALinkAddUp) {
  Send(41);
  Ack({Link(1, 0, 35'000, 0)});
  Ack({Link(1, 1400, 70'000, 17'500)});
  // The lesser queue over B T is 0.2, the rate 12.5 of 12.5; a tenth of T has passed: U = 0.9 * 1 + 0.1 * 1.2.
  EXPECT_NEAR(window(), kBdp * 0.95 / 1.02 + 80, 1);
  EXPECT_NEAR(sender_->allowance().pacing_rate.gbps(), (kBdp * 0.95 / 1.02 + 80) * 4160 / 4096 * 8 / 14'000, 1e-2);
}

TEST_F(HpccTest, CountsGoRoundAtTheirLastBit) {
  Send(41);
  Ack({Link(1, 0xffffffff - 399, 0, 0xffffffff - 7499)});
  Ack({Link(1, 1000, 0, 10'000)});
  EXPECT_NEAR(window(), kBdp * 0.95 / (0.9 + 0.1 * 1) + 80, 1);  // 17,500 bytes in 1400 ns
}

TEST_F(HpccTest, TheBusiestLinkCountsAndBringsItsOwnTime) {
  Send(41);
  Ack({Link(1, 0, 0, 0), Link(2, 500'000, 0, 0), Link(3, 90, 0, 0)});
  Ack({Link(1, 1400, 0, 8750), Link(2, 502'800, 52'500, 35'000), Link(3, 1490, 0, 17'500)});
  // Link 2 had no queue before: 1.0 over a fifth of T; link 3 the same over a tenth. The first of equals counts.
  EXPECT_NEAR(window(), kBdp * 0.95 / 1.0 + 80, 1);
  Ack({Link(1, 2800, 0, 17'500), Link(2, 505'600, 52'500, 70'000), Link(3, 2890, 0, 35'000)});
  // Now 0.3 + 1 at link 2, of the reference that was set just now.
  EXPECT_NEAR(window(), (kBdp * 0.95 + 80) * 0.95 / (0.8 + 0.2 * 1.3) + 80, 1);
}

TEST_F(HpccTest, AnOvertakenWordIsLetGo) {
  Send(41);
  Ack({Link(1, 5000, 0, 50'000)});
  Ack({Link(1, 4000, 170'000, 40'000)});
  Ack({Link(1, 5000, 170'000, 50'000)});
  EXPECT_EQ(window(), kBdp);
}

TEST_F(HpccTest, AWordFromLongAgoIsNotComparedWith) {
  Send(41);
  Ack({Link(1, 5000, 170'000, 50'000)});
  Ack({Link(1, 20'005'000, 170'000, 50'000)}, 20'000'000);
  EXPECT_EQ(window(), kBdp);
}

TEST_F(HpccTest, BetweenTwoUpdatesTheWindowIsOfTheSameReference) {
  Send(41);
  Ack({Link(1, 0, 175'000, 0)});
  uint32_t time = 0, sent = 0;
  const auto congested = [&] {
    time += 14'000;
    sent += 175'000;
    Ack({Link(1, time, 175'000, sent)}, 14'000);
  };
  congested();  // U = 2
  const double first = kBdp * 0.95 / 2 + 80;
  EXPECT_NEAR(window(), first, 1);
  congested();  // all that was sent was sent before: the reference is what it was when the first came
  const double second = first * 0.95 / 2 + 80;
  EXPECT_NEAR(window(), second, 1);
  congested();
  congested();
  EXPECT_NEAR(window(), second, 1);
  Send(41);
  congested();  // still of the second reference, and now the third
  EXPECT_NEAR(window(), second, 1);
  congested();
  EXPECT_NEAR(window(), second * 0.95 / 2 + 80, 1);
}

TEST_F(HpccTest, BelowEtaFiveAdditiveStepsThenAMultiplicativeOne) {
  uint32_t time = 0, sent = 0;
  const auto word = [&](double utilisation) {
    Send(41);  // what was sent after the last update is acknowledged
    time += 14'000;
    sent += static_cast<uint32_t>(utilisation * 175'000);
    Ack({Link(1, time, 0, sent)}, 14'000);
  };
  Send(41);
  Ack({Link(1, 0, 0, 0)});
  word(1.9);  // halves it
  double expected = kBdp * 0.5 + 80;
  EXPECT_NEAR(window(), expected, 1);
  for (int step = 0; step < 5; ++step) {
    word(0.76);
    expected += 80;
    EXPECT_NEAR(window(), expected, 1) << step;
  }
  word(0.76);
  expected = expected / 0.8 + 80;
  EXPECT_NEAR(window(), expected, 1);
  word(0.76);
  EXPECT_NEAR(window(), expected + 80, 1);
}

TEST_F(HpccTest, TheWindowIsASegmentAtLeastAndTheRateGoesBelow) {
  uint32_t time = 0;
  for (int i = 0; i < 100; ++i) {
    Send(1);
    time += 14'000;
    Ack({Link(1, time, 100'000'000, 0)}, 14'000);
  }
  EXPECT_EQ(window(), kSegment);
  EXPECT_NEAR(sender_->allowance().pacing_rate.gbps(), 0.1, 0.06);
  EXPECT_GT(sender_->allowance().pacing_rate.gbps(), 0);
}

TEST_F(HpccTest, AbsurdRatesAreIgnored) {
  Send(41);
  for (const Rate rate : {Rate(), Rate::Unlimited(), Rate::BytesPerSecond(-1)}) {
    HopTelemetry hop = Link(1, static_cast<uint32_t>(now_.nanos()), 170'000, 0);
    hop.rate = rate;
    Ack({hop});
    hop.time_nanos += 1400;
    Ack({hop});
  }
  EXPECT_EQ(window(), kBdp);
}

// Eight senders on one queue, each packet acknowledged a base round trip after it left: the queue that the first round
// trip makes drains, and stays short while the link stays busy.
TEST(HpccLoop, KeepsTheQueueShortAndTheLinkBusy) {
  constexpr double kPacketNanos = 332.8;
  struct Flow {
    std::unique_ptr<SenderController> sender = NewSender();
    uint64_t sent = 0, in_flight = 0;
    double next = 0;
  };
  struct Ack {
    double at;
    size_t flow;
    HopTelemetry hop;
  };
  std::vector<Flow> flows(8);
  std::deque<size_t> queue;
  std::deque<Ack> acks;
  uint32_t link_bytes = 0;
  int idle = 0, slots = 0;
  size_t longest = 0;
  for (double now = 0; now < 300 * 14'000; now += kPacketNanos) {
    const Time time = Time::FromNanos(static_cast<int64_t>(now));
    for (; !acks.empty() && acks.front().at <= now; acks.pop_front()) {
      Flow& flow = flows[acks.front().flow];
      flow.in_flight -= kSegment;
      const HopTelemetry hops[] = {acks.front().hop};
      flow.sender->OnAck(
          {.now = time, .acked_bytes = kSegment, .acked_packets = 1, .in_flight_bytes = flow.in_flight, .hops = hops});
    }
    for (size_t i = 0; i < flows.size(); ++i) {
      Flow& flow = flows[i];
      const Allowance allowance = flow.sender->allowance();
      if (flow.next > now || (flow.in_flight > 0 && flow.in_flight + kSegment > allowance.window_bytes)) continue;
      flow.sent += kSegment;
      flow.in_flight += kSegment;
      flow.next = now + allowance.pacing_rate.NanosFor(4160);
      flow.sender->OnSent(time, flow.sent, flow.in_flight);
      queue.push_back(i);
    }
    const bool settled = now > 100 * 14'000;
    slots += settled;
    if (queue.empty()) {
      idle += settled;
      continue;
    }
    const size_t flow = queue.front();
    queue.pop_front();
    link_bytes += 4160;
    acks.push_back({now + 14'000,
                    flow,
                    {.link = 9,
                     .queue_bytes = static_cast<uint32_t>(queue.size()) * 4160,
                     .sent_bytes = link_bytes,
                     .time_nanos = static_cast<uint32_t>(now),
                     .rate = Rate::Gbps(100)}});
    if (settled) longest = std::max(longest, queue.size());
  }
  EXPECT_LT(longest, 12u);
  EXPECT_LT(idle, slots / 8);
}

}  // namespace
}  // namespace paceline
