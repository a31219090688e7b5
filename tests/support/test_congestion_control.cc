#include "tests/support/test_congestion_control.h"

#include <algorithm>
#include <map>

namespace paceline::support {
namespace {

class WindowSender final : public SenderController {
 public:
  explicit WindowSender(uint64_t bytes) : bytes_(bytes) {}
  void OnAck(const AckSample&) override {}
  void OnLoss(const LossSample&) override {}
  Allowance allowance() const override { return {.window_bytes = bytes_}; }

 private:
  uint64_t bytes_;
};

class CreditSender final : public SenderController {
 public:
  void OnAck(const AckSample&) override {}
  void OnLoss(const LossSample&) override {}
  void OnGrant(const GrantSample& sample) override { credit_end_ = std::max(credit_end_, sample.credit_end); }
  Allowance allowance() const override { return {.credit_end = credit_end_}; }

 private:
  uint64_t credit_end_ = 0;
};

// Grants up to `budget` beyond what has arrived or is known lost, and never beyond the demand.
class CreditReceiver final : public ReceiverController {
 public:
  explicit CreditReceiver(uint64_t budget) : budget_(budget) {}

  void AddFlow(uint32_t flow, const FlowInfo&, Time) override { flows_[flow] = Flow{}; }
  void RemoveFlow(uint32_t flow, Time) override { flows_.erase(flow); }
  void OnDemand(uint32_t flow, uint64_t demand_end, Rate, Time) override { flows_[flow].demand_end = demand_end; }
  void OnArrival(uint32_t flow, const ArrivalSample& sample) override {
    Flow& state = flows_[flow];
    state.arrived += sample.bytes;
    state.lost = std::max(state.lost, sample.lost_total);
  }
  Time PollTimeout() const override {
    for (const auto& [number, flow] : flows_) {
      if (Target(flow) > flow.credit_end) return Time();
    }
    return Time::Never();
  }
  size_t PollGrants(Time, std::span<Grant> out) override {
    size_t count = 0;
    for (auto& [number, flow] : flows_) {
      if (count == out.size()) break;
      if (Target(flow) <= flow.credit_end) continue;
      flow.credit_end = Target(flow);
      out[count++] = Grant{.flow = number, .credit_end = flow.credit_end};
    }
    return count;
  }
  uint64_t outstanding_credit_bytes() const override {
    uint64_t sum = 0;
    for (const auto& [number, flow] : flows_) sum += flow.credit_end - std::min(flow.credit_end, Settled(flow));
    return sum;
  }

 private:
  struct Flow {
    uint64_t demand_end = 0;
    uint64_t credit_end = 0;
    uint64_t arrived = 0;
    uint64_t lost = 0;
  };
  static uint64_t Settled(const Flow& flow) { return flow.arrived + flow.lost; }
  uint64_t Target(const Flow& flow) const { return std::min(flow.demand_end, Settled(flow) + budget_); }

  uint64_t budget_;
  std::map<uint32_t, Flow> flows_;
};

class TestCongestionControl final : public CongestionControl {
 public:
  TestCongestionControl(TestControl kind, uint64_t bytes) : kind_(kind), bytes_(bytes) {}
  std::unique_ptr<SenderController> NewSender(const FlowInfo&, const PortInfo&, Time) override {
    if (kind_ == TestControl::kWindow) return std::make_unique<WindowSender>(bytes_);
    return std::make_unique<CreditSender>();
  }
  std::unique_ptr<ReceiverController> NewReceiver(const PortInfo&) override {
    if (kind_ == TestControl::kWindow) return nullptr;
    return std::make_unique<CreditReceiver>(bytes_);
  }

 private:
  TestControl kind_;
  uint64_t bytes_;
};

}  // namespace

std::unique_ptr<CongestionControl> NewTestCongestionControl(TestControl kind, uint64_t bytes) {
  return std::make_unique<TestCongestionControl>(kind, bytes);
}

}  // namespace paceline::support
