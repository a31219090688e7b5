// A receiver of `tita` alone with a clock of its own: flows ask, what it grants is recorded, and packets arrive.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cc/algorithms/tita_receiver.h"
#include "gtest/gtest.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {

class TitaReceiverTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSegment = 4096;

  void Make(const TitaParameters& parameters = {}, const PortInfo& port = TestPort()) {
    shared_ = std::make_unique<TitaPort>(port.link_rate.bytes_per_second());
    receiver_ = std::make_unique<TitaReceiver>(parameters, port, *shared_);
  }
  void SetUp() override { Make(); }

  void Add(uint32_t flow, uint64_t group = 0) { receiver_->AddFlow(flow, {.remote_group = group}, now_); }
  void Demand(uint32_t flow, uint64_t end, Rate cap = Rate::Unlimited()) { receiver_->OnDemand(flow, end, cap, now_); }

  // Runs the receiver until `end` and records what it grants.
  void Run(Duration span) {
    const Time end = now_ + span;
    while (receiver_->PollTimeout() <= end) {
      now_ = std::max(now_, receiver_->PollTimeout());
      Poll();
      ASSERT_GT(receiver_->PollTimeout(), now_);
    }
    now_ = end;
  }
  void Poll() {
    std::array<Grant, 3> out;
    for (size_t count = out.size(); count == out.size();) {
      count = receiver_->PollGrants(now_, out);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_GE(out[i].credit_end, credit_[out[i].flow]);
        if (out[i].credit_end > credit_[out[i].flow]) order_.push_back(out[i].flow);
        credit_[out[i].flow] = out[i].credit_end;
        rate_[out[i].flow] = out[i].rate.bytes_per_second();
        times_.push_back(now_);
        ++grants_;
      }
    }
  }
  // `bytes` more of the flow arrive; its sender has sent all that arrived so far.
  void Arrive(uint32_t flow, uint64_t bytes, uint64_t lost = 0) {
    tx_[flow] += bytes + lost;
    lost_[flow] += lost;
    receiver_->OnArrival(flow, {.now = now_,
                                .bytes = bytes,
                                .packets = 1,
                                .tx_total = tx_[flow],
                                .lost_total = lost_[flow],
                                .relative_delay_nanos = tx_[flow] <= 8 * kSegment ? 0 : queueing_nanos_});
  }
  // Flow 0 sends at a quarter of the rate and, but for its first packets, through 14 us of queue.
  void ArriveLate() {
    Demand(0, 1 << 30);
    for (int i = 0; i < 300; ++i) {
      Run(Duration::Nanos(1331));
      tx_[0] += kSegment;
      const int64_t queue = i < 10 ? 0 : 14'000;
      receiver_->OnArrival(
          0, {.now = now_,
              .bytes = kSegment,
              .packets = 1,
              .tx_total = tx_[0],
              // The clocks differ so that a 32-bit difference wraps in between.
              .relative_delay_nanos = static_cast<int32_t>(0x7fffffff - 1000 + static_cast<uint32_t>(queue))});
    }
  }
  // The sender of the flow asks for credit, and sends its message of `bytes` as credit comes.
  void SendMessage(uint32_t flow, uint64_t bytes) {
    Arrive(flow, 0);
    for (int round_trips = 0; tx_[flow] < bytes; ++round_trips) {
      ASSERT_LT(round_trips, 50) << flow;
      while (tx_[flow] < credit_[flow]) Arrive(flow, kSegment);
      Run(Duration::Micros(14));
    }
  }
  // All that is granted arrives.
  void ArriveAll() {
    for (const auto& [flow, credit] : credit_) {
      while (tx_[flow] < credit) Arrive(flow, std::min(kSegment, credit - tx_[flow]));
    }
  }

  Time now_ = Time::FromNanos(1'000'000);
  std::unique_ptr<TitaPort> shared_;
  std::unique_ptr<TitaReceiver> receiver_;
  std::map<uint32_t, uint64_t> credit_, tx_, lost_;
  std::map<uint32_t, double> rate_;
  int64_t queueing_nanos_ = 0;  // of what arrives, but for the first packets of a flow
  std::vector<uint32_t> order_;
  std::vector<Time> times_;
  size_t grants_ = 0;
};

}  // namespace paceline
