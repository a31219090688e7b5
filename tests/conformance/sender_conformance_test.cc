// The sender side of every algorithm: whatever it is told, it must leave a way forward.
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/algorithms_under_test.h"
#include "transport/base/random.h"

namespace paceline {
namespace {

class SenderConformance : public ::testing::TestWithParam<AlgorithmUnderTest> {
 protected:
  SenderConformance() : control_(GetParam().Create()), sender_(control_->NewSender({}, ConformancePort(), Time())) {}

  // A window of a segment, a rate above zero, and either credit or a timer (a grant is asked for by the core) when
  // there is a backlog.
  void ExpectSane(const SenderController& sender, uint64_t tx_total, uint64_t backlog) const {
    const Allowance allowance = sender.allowance();
    EXPECT_GE(allowance.window_bytes, 4096u);
    EXPECT_GT(allowance.pacing_rate.bytes_per_second(), 0);
    EXPECT_FALSE(std::isnan(allowance.pacing_rate.bytes_per_second()));
    if (backlog > 0 && allowance.credit_end <= tx_total) {
      EXPECT_FALSE(sender.PollTimeout().is_never()) << "stuck for ever";
    }
    EXPECT_GT(sender.cap().bytes_per_second(), 0);
  }

  // What limits the flow, as bytes per second at the base round trip: to compare "more" and "less".
  double Speed() const {
    const Allowance allowance = sender_->allowance();
    const double by_window = static_cast<double>(allowance.window_bytes) / 14e-6;
    return std::min({by_window, allowance.pacing_rate.bytes_per_second(), 12.5e9});
  }

  AckSample Ack() const {
    return {.now = now_,
            .acked_bytes = 4096,
            .acked_packets = 1,
            .rtt = Duration::Micros(14),
            .in_flight_bytes = 170'000,
            .backlogged = true};
  }
  void RunTimers(Duration span) {
    const Time end = now_ + span;
    for (int i = 0; i < 1'000'000 && sender_->PollTimeout() <= end; ++i) {
      now_ = std::max(now_, sender_->PollTimeout());
      sender_->HandleTimeout(now_);
      ASSERT_GT(sender_->PollTimeout(), now_) << "a timer that does not advance";
    }
    now_ = end;
  }

  std::unique_ptr<CongestionControl> control_;
  std::unique_ptr<SenderController> sender_;
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_P(SenderConformance, ANewFlowMayMove) {
  ExpectSane(*sender_, 0, 0);
  sender_->OnBacklog(now_, 1 << 20, 0);
  ExpectSane(*sender_, 0, 1 << 20);
}

TEST_P(SenderConformance, RecoversAfterALongBlackout) {
  sender_->OnBacklog(now_, 1 << 30, 0);
  for (int i = 0; i < 500; ++i) {
    now_ = now_ + Duration::Millis(1);
    sender_->OnLoss({.now = now_, .lost_bytes = 4096, .lost_packets = 1, .cause = LossCause::kTimeout});
    ExpectSane(*sender_, 0, 1 << 30);
    RunTimers(Duration());
  }
  // Half a second of good news: back to a tenth of the line at least (given credit).
  for (int i = 0; i < 50'000; ++i) {
    RunTimers(Duration::Micros(10));
    AckSample ack = Ack();
    ack.acked_bytes = 40'960;
    ack.acked_packets = 10;
    sender_->OnGrant({now_, uint64_t{1} << 40, Rate::Gbps(100)});
    sender_->OnAck(ack);
  }
  EXPECT_GT(Speed(), 1.25e9);
}

TEST_P(SenderConformance, NeverFasterAfterBadNews) {
  sender_->OnBacklog(now_, 1 << 30, 0);
  sender_->OnGrant({now_, uint64_t{1} << 40, Rate::Gbps(100)});
  const double before = Speed();
  for (int i = 0; i < 100; ++i) {
    now_ = now_ + Duration::Micros(60);
    AckSample ack = Ack();
    ack.marked_bytes = ack.acked_bytes;
    ack.marked_packets = ack.acked_packets;
    ack.rtt = Duration::Micros(60);
    const HopTelemetry full[] = {{.link = 1,
                                  .queue_bytes = 175'000,
                                  .sent_bytes = static_cast<uint32_t>(i) * 750'000,
                                  .time_nanos = static_cast<uint32_t>(i) * 60'000,
                                  .rate = Rate::Gbps(100)}};
    ack.hops = full;
    sender_->OnSent(now_, static_cast<uint64_t>(i + 50) * 4096, 40 * 4096);
    sender_->OnAck(ack);
    sender_->OnLoss({.now = now_, .lost_bytes = 4096, .lost_packets = 1});
  }
  EXPECT_LE(Speed(), before);
  // What the algorithms claim to react to.
  if (const std::string& name = GetParam().name; name == "swift" || name == "dcqcn" || name == "hpcc" ||
                                                 name == "nscc" || name == "nscc_rccc" || name == "timely") {
    EXPECT_LT(Speed(), before / 4);
  }
}

TEST_P(SenderConformance, SurvivesAbsurdSamples) {
  Random random(11);
  const uint64_t words[] = {0, 1, 4096, 1 << 30, uint64_t{1} << 62, std::numeric_limits<uint64_t>::max()};
  const int64_t spans[] = {0, 1, -1, 14'000, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  const double rates[] = {0, -1, 1, 1e9, 1e300, std::numeric_limits<double>::infinity(), std::nan("")};
  const auto word = [&] { return random.Chance(0.3) ? random.Next() : words[random.Below(std::size(words))]; };
  const auto span = [&] { return Duration::Nanos(spans[random.Below(std::size(spans))]); };
  for (int i = 0; i < 20'000; ++i) {
    now_ = now_ + Duration::Nanos(static_cast<int64_t>(random.Below(10'000)));
    switch (random.Below(7)) {
      case 0: {
        std::vector<HopTelemetry> hops(random.Below(4));
        for (HopTelemetry& hop : hops) {
          hop = {static_cast<uint32_t>(random.Below(4)), static_cast<uint32_t>(word()), static_cast<uint32_t>(word()),
                 static_cast<uint32_t>(word()), Rate::BytesPerSecond(rates[random.Below(std::size(rates))])};
        }
        sender_->OnAck({now_, word(), word(), static_cast<uint32_t>(word()), static_cast<uint32_t>(word()), span(),
                        word(), random.Chance(0.5), hops});
        break;
      }
      case 1:
        sender_->OnLoss({now_, word(), static_cast<uint32_t>(word()), static_cast<LossCause>(random.Below(4)), word()});
        break;
      case 2:
        sender_->OnGrant({now_, word(), Rate::BytesPerSecond(rates[random.Below(std::size(rates))])});
        break;
      case 3:
        sender_->OnBacklog(now_, word(), word());
        break;
      case 4:
        sender_->OnSent(now_, word(), word());
        break;
      case 5:
        sender_->OnBaseRtt(span(), now_);
        break;
      default:
        sender_->HandleTimeout(now_);
    }
    ExpectSane(*sender_, 0, 0);
  }
}

TEST_P(SenderConformance, SiblingsComeAndGo) {
  Random random(5);
  std::vector<std::unique_ptr<SenderController>> senders;
  for (int i = 0; i < 3000; ++i) {
    now_ = now_ + Duration::Nanos(500);
    if (senders.size() < 50 && random.Chance(0.3)) {
      senders.push_back(control_->NewSender({.remote_group = random.Below(4)}, ConformancePort(), now_));
    } else if (!senders.empty()) {
      const size_t k = random.Below(senders.size());
      if (random.Chance(0.2)) {
        senders.erase(senders.begin() + static_cast<std::ptrdiff_t>(k));
      } else {
        senders[k]->OnBacklog(now_, random.Below(2) << 20, 0);
        senders[k]->OnGrant({now_, 4096, Rate::Gbps(1 + random.Unit() * 99)});
      }
    }
    for (const auto& sender : senders) ExpectSane(*sender, 0, 0);
  }
}

TEST_P(SenderConformance, SameCallsSameAnswers) {
  const auto run = [this] {
    const auto control = GetParam().Create();
    const auto sender = control->NewSender({}, ConformancePort(), Time());
    Random random(99);
    std::vector<double> answers;
    Time now = Time::FromNanos(1);
    sender->OnBacklog(now, 1 << 30, 0);
    for (int i = 0; i < 2000; ++i) {
      now = now + Duration::Nanos(static_cast<int64_t>(random.Below(5000)));
      AckSample ack = Ack();
      ack.now = now;
      ack.rtt = Duration::Nanos(static_cast<int64_t>(14'000 + random.Below(20'000)));
      ack.marked_packets = random.Chance(0.1) ? 1 : 0;
      sender->OnAck(ack);
      if (sender->PollTimeout() <= now) sender->HandleTimeout(now);
      answers.push_back(static_cast<double>(sender->allowance().window_bytes));
      answers.push_back(sender->allowance().pacing_rate.bytes_per_second());
      answers.push_back(static_cast<double>(sender->PollTimeout().nanos()));
    }
    return answers;
  };
  EXPECT_EQ(run(), run());
}

INSTANTIATE_TEST_SUITE_P(Registry, SenderConformance, ::testing::ValuesIn(AlgorithmsUnderTest()),
                         [](const auto& algorithm) { return algorithm.param.label; });

}  // namespace
}  // namespace paceline
