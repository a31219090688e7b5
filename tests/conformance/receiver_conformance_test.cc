// The receiver side of every algorithm that has one: never more than the port takes, and nobody forgotten.
#include <array>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/algorithms_under_test.h"
#include "transport/base/random.h"

namespace paceline {
namespace {

constexpr uint64_t kSegment = 4096;
constexpr double kLine = 12.5e9;

// Senders that do what they are granted, each after `delay`, a round trip or so.
class ReceiverConformance : public ::testing::TestWithParam<AlgorithmUnderTest> {
 protected:
  struct Sender {
    uint64_t want = 0, granted = 0, arrived = 0;
    std::vector<std::pair<Time, uint64_t>> coming;  // credit that will be used at a time
    double rate = 0;
    bool added = false;
  };

  void SetUp() override {
    control_ = GetParam().Create();
    receiver_ = control_->NewReceiver(ConformancePort());
  }

  void Add(uint32_t flow) {
    receiver_->AddFlow(flow, {}, now_);
    senders_[flow] = Sender();
    senders_[flow].added = true;
  }
  void Want(uint32_t flow, uint64_t bytes) {
    senders_[flow].want += bytes;
    receiver_->OnDemand(flow, senders_[flow].want, Rate::Unlimited(), now_);
  }

  // One microsecond: what is due arrives, grants are collected, of which `grant_loss` get lost.
  void Step(double grant_loss = 0) {
    now_ = now_ + Duration::Micros(1);
    for (auto& [flow, sender] : senders_) {
      while (!sender.coming.empty() && sender.coming.front().first <= now_) {
        const uint64_t target = sender.coming.front().second;
        sender.coming.erase(sender.coming.begin());
        while (sender.arrived < target) {
          const uint64_t bytes = std::min(kSegment, target - sender.arrived);
          sender.arrived += bytes;
          receiver_->OnArrival(flow, {.now = now_, .bytes = bytes, .packets = 1, .tx_total = sender.arrived});
          receiver_->OnDemand(flow, sender.want, Rate::Unlimited(), now_);
        }
      }
    }
    std::array<Grant, 8> out;
    for (size_t count = out.size(); count == out.size();) {
      count = receiver_->PollGrants(now_, out);
      std::map<uint32_t, int> seen;
      for (size_t i = 0; i < count; ++i) {
        Sender& sender = senders_[out[i].flow];
        ASSERT_TRUE(sender.added);
        ASSERT_EQ(++seen[out[i].flow], 1) << "two grants for one flow in one call";
        ASSERT_LE(out[i].credit_end, std::max(sender.want, sender.granted)) << "a grant beyond the demand";
        ASSERT_GE(out[i].credit_end, sender.granted);
        granted_ += out[i].credit_end - sender.granted;
        sender.granted = out[i].credit_end;
        sender.rate = out[i].rate.bytes_per_second();
        if (!random_.Chance(grant_loss)) sender.coming.push_back({now_ + Duration::Micros(14), out[i].credit_end});
      }
    }
    ASSERT_GT(receiver_->PollTimeout(), now_) << "work left after everything was taken";
  }

  std::unique_ptr<CongestionControl> control_;
  std::unique_ptr<ReceiverController> receiver_;
  std::map<uint32_t, Sender> senders_;
  uint64_t granted_ = 0;
  Random random_{42};
  Time now_ = Time::FromNanos(1'000'000);
};

TEST_P(ReceiverConformance, PacesAtThePortAndKeepsItsBudget) {
  for (uint32_t flow = 0; flow < 20; ++flow) {
    Add(flow);
    Want(flow, 1 << 30);
  }
  const uint64_t budget = 1.6 * 14e-6 * kLine;  // 1.5 BDP and some
  for (int i = 1; i <= 2000; ++i) {
    Step();
    ASSERT_LE(receiver_->outstanding_credit_bytes(), budget);
    ASSERT_LE(static_cast<double>(granted_) * 4160 / 4096, kLine * 1e-6 * i + 2 * 4160)
        << "faster than the port at " << i;
  }
  EXPECT_GT(static_cast<double>(granted_) * 4160 / 4096, 0.97 * kLine * 2000e-6) << "the port is not full";
  double rates = 0;
  for (const auto& [flow, sender] : senders_) rates += sender.rate;
  EXPECT_LE(rates, 1.001 * kLine);
  EXPECT_GT(rates, 0.9 * kLine);
  for (const auto& [flow, sender] : senders_) {
    EXPECT_GE(sender.granted, granted_ / 20 / 3) << "no fair share for " << flow;
  }
}

TEST_P(ReceiverConformance, NobodyStarvesWhenGrantsAreLost) {
  for (uint32_t flow = 0; flow < 50; ++flow) {
    Add(flow);
    Want(flow, 100'000);
  }
  for (int i = 0; i < 20'000; ++i) Step(0.3);
  for (const auto& [flow, sender] : senders_) EXPECT_EQ(sender.arrived, sender.want) << flow;
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), 0u);
}

TEST_P(ReceiverConformance, ChurnLeavesNothingBehind) {
  for (int i = 0; i < 20'000; ++i) {
    const auto flow = static_cast<uint32_t>(random_.Below(40));
    if (!senders_.contains(flow)) {
      Add(flow);
      Want(flow, random_.Below(200'000));
    } else if (random_.Chance(0.2)) {
      receiver_->RemoveFlow(flow, now_);
      senders_.erase(flow);
    } else if (random_.Chance(0.2)) {
      Want(flow, random_.Below(50'000));
    }
    Step(0.05);
    if (HasFatalFailure()) return;
  }
  for (const auto& [flow, sender] : senders_) receiver_->RemoveFlow(flow, now_);
  senders_.clear();
  EXPECT_EQ(receiver_->outstanding_credit_bytes(), 0u);
  EXPECT_TRUE(receiver_->PollTimeout().is_never());
}

TEST_P(ReceiverConformance, DemandThatShrinksStopsGrants) {
  Add(0);
  Want(0, 1 << 20);
  for (int i = 0; i < 5; ++i) Step();
  const uint64_t before = senders_[0].granted;
  receiver_->OnDemand(0, before / 2, Rate::Unlimited(), now_);
  senders_[0].want = before;
  for (int i = 0; i < 200; ++i) Step();
  EXPECT_EQ(senders_[0].granted, before);
}

TEST_P(ReceiverConformance, SameCallsSameAnswers) {
  std::vector<uint64_t> first;
  for (int round = 0; round < 2; ++round) {
    SetUp();
    senders_.clear();
    random_ = Random(3);
    granted_ = 0;
    now_ = Time::FromNanos(1'000'000);
    std::vector<uint64_t> answers;
    for (uint32_t flow = 0; flow < 10; ++flow) Add(flow);
    for (int i = 0; i < 2000; ++i) {
      if (random_.Chance(0.1)) Want(static_cast<uint32_t>(random_.Below(10)), random_.Below(100'000));
      Step(0.1);
      for (const auto& [flow, sender] : senders_) answers.push_back(sender.granted);
      answers.push_back(static_cast<uint64_t>(receiver_->PollTimeout().nanos()));
    }
    if (round == 0) {
      first = answers;
    } else {
      EXPECT_EQ(first, answers);
    }
  }
}

std::vector<AlgorithmUnderTest> AlgorithmsWithReceivers() {
  std::vector<AlgorithmUnderTest> list = AlgorithmsUnderTest();
  std::erase_if(list,
                [](const AlgorithmUnderTest& a) { return a.Create()->NewReceiver(ConformancePort()) == nullptr; });
  return list;
}

INSTANTIATE_TEST_SUITE_P(Registry, ReceiverConformance, ::testing::ValuesIn(AlgorithmsWithReceivers()),
                         [](const auto& algorithm) { return algorithm.param.label; });

}  // namespace
}  // namespace paceline
