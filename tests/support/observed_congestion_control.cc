#include "tests/support/observed_congestion_control.h"

#include <algorithm>
#include <map>
#include <utility>

namespace paceline::support {
namespace {

using Observation = std::shared_ptr<ControlObservation>;

class ObservedSender final : public SenderController {
 public:
  ObservedSender(std::unique_ptr<SenderController> inner, Observation observation, const PortInfo& port)
      : inner_(std::move(inner)),
        observation_(std::move(observation)),
        segment_bytes_(port.segment_bytes),
        burst_bytes_(uint64_t{port.segment_bytes} * std::max(1u, port.burst_segments)) {
    ++observation_->senders;
  }
  ~ObservedSender() override {
    --observation_->senders;
    if (backlogged_) --observation_->backlogged_senders;
  }

  void OnSent(Time now, uint64_t tx_total, uint64_t in_flight_bytes) override {
    const Allowance allowance = inner_->allowance();
    if (tx_total < tx_total_) observation_->Note("OnSent: tx_total went back");
    const uint64_t bytes = tx_total - tx_total_;
    if (bytes > burst_bytes_) observation_->Note("OnSent: more than a burst at once");
    const uint64_t last = std::min(bytes, segment_bytes_);  // of several, the last that was let go
    if (bytes > 0 && tx_total - last >= std::max(allowance.credit_end, allowance.single_end)) {
      observation_->Note("sent beyond the credit");
    }
    if (in_flight_bytes > tx_total) observation_->Note("OnSent: more in flight than was ever sent");
    if (bytes > 0 && in_flight_bytes >= last && in_flight_bytes - last >= allowance.window_bytes) {
      observation_->Note("sent beyond the window");
    }
    tx_total_ = tx_total;
    observation_->sent_bytes += bytes;
    inner_->OnSent(now, tx_total, in_flight_bytes);
  }
  void OnAck(const AckSample& sample) override {
    acked_ += sample.acked_bytes;
    observation_->acked_bytes += sample.acked_bytes;
    if (acked_ > tx_total_) observation_->Note("OnAck: more acknowledged than sent");
    if (sample.marked_bytes > sample.acked_bytes) observation_->Note("OnAck: more marked than acknowledged bytes");
    if (sample.marked_packets > sample.acked_packets)
      observation_->Note("OnAck: more marked than acknowledged packets");
    if (sample.rtt < Duration()) observation_->Note("OnAck: negative round trip");
    observation_->longest_rtt = std::max(observation_->longest_rtt, sample.rtt);
    inner_->OnAck(sample);
  }
  void OnLoss(const LossSample& sample) override {
    observation_->lost_bytes += sample.lost_bytes;
    inner_->OnLoss(sample);
  }
  void OnGrant(const GrantSample& sample) override { inner_->OnGrant(sample); }
  void OnBacklog(Time now, uint64_t backlog_bytes, uint64_t tx_total) override {
    if (tx_total != tx_total_) observation_->Note("OnBacklog: another tx_total than OnSent said");
    observation_->backlogged_senders += (backlog_bytes > 0 ? 1 : 0) - (backlogged_ ? 1 : 0);
    backlogged_ = backlog_bytes > 0;
    inner_->OnBacklog(now, backlog_bytes, tx_total);
  }
  void OnBaseRtt(Duration rtt, Time now) override {
    observation_->sender_base_rtts.push_back(rtt);
    inner_->OnBaseRtt(rtt, now);
  }
  Allowance allowance() const override { return inner_->allowance(); }
  Rate cap() const override { return inner_->cap(); }
  bool wants_telemetry() const override { return inner_->wants_telemetry(); }
  Time PollTimeout() const override { return inner_->PollTimeout(); }
  void HandleTimeout(Time now) override { inner_->HandleTimeout(now); }

 private:
  std::unique_ptr<SenderController> inner_;
  Observation observation_;
  uint64_t segment_bytes_, burst_bytes_;
  uint64_t tx_total_ = 0;
  bool backlogged_ = false;
  uint64_t acked_ = 0;
};

class ObservedReceiver final : public ReceiverController {
 public:
  ObservedReceiver(std::unique_ptr<ReceiverController> inner, Observation observation)
      : inner_(std::move(inner)), observation_(std::move(observation)) {
    observation_->receivers.push_back(inner_.get());
  }
  ~ObservedReceiver() override {
    observation_->receiver_flows -= flows_.size();
    std::erase(observation_->receivers, inner_.get());
  }

  void AddFlow(uint32_t flow, const FlowInfo& info, Time now) override {
    if (!flows_.emplace(flow, Flow{}).second) observation_->Note("AddFlow: there already");
    ++observation_->receiver_flows;
    inner_->AddFlow(flow, info, now);
  }
  void RemoveFlow(uint32_t flow, Time now) override {
    const auto state = flows_.find(flow);
    if (state == flows_.end()) {
      observation_->Note("RemoveFlow: no such flow");
    } else {
      observation_->demand_end -= state->second.demand_end;
      flows_.erase(state);
    }
    --observation_->receiver_flows;
    inner_->RemoveFlow(flow, now);
  }
  void OnDemand(uint32_t flow, uint64_t demand_end, Rate cap, Time now) override {
    const auto state = flows_.find(flow);
    if (state == flows_.end()) {
      observation_->Note("OnDemand: no such flow");
    } else {
      observation_->demand_end += demand_end - std::exchange(state->second.demand_end, demand_end);
    }
    inner_->OnDemand(flow, demand_end, cap, now);
  }
  void OnArrival(uint32_t flow, const ArrivalSample& sample) override {
    const auto state = flows_.find(flow);
    if (state == flows_.end()) {
      observation_->Note("OnArrival: no such flow");
    } else {
      if (sample.tx_total < state->second.tx_total) observation_->Note("OnArrival: tx_total went back");
      if (sample.lost_total > sample.tx_total) observation_->Note("OnArrival: more lost than sent");
      state->second.tx_total = sample.tx_total;
    }
    inner_->OnArrival(flow, sample);
  }
  void OnBaseRtt(uint32_t flow, Duration rtt, Time now) override {
    observation_->receiver_base_rtts.push_back(rtt);
    inner_->OnBaseRtt(flow, rtt, now);
  }
  Time PollTimeout() const override { return inner_->PollTimeout(); }
  size_t PollGrants(Time now, std::span<Grant> out) override { return inner_->PollGrants(now, out); }
  uint64_t outstanding_credit_bytes() const override { return inner_->outstanding_credit_bytes(); }

 private:
  struct Flow {
    uint64_t tx_total = 0;
    uint64_t demand_end = 0;
  };
  std::unique_ptr<ReceiverController> inner_;
  Observation observation_;
  std::map<uint32_t, Flow> flows_;
};

class ObservedCongestionControl final : public CongestionControl {
 public:
  ObservedCongestionControl(std::unique_ptr<CongestionControl> inner, Observation observation)
      : inner_(std::move(inner)), observation_(std::move(observation)) {}
  std::unique_ptr<SenderController> NewSender(const FlowInfo& flow, const PortInfo& port, Time now) override {
    return std::make_unique<ObservedSender>(inner_->NewSender(flow, port, now), observation_, port);
  }
  std::unique_ptr<ReceiverController> NewReceiver(const PortInfo& port) override {
    auto receiver = inner_->NewReceiver(port);
    if (receiver == nullptr) return nullptr;
    return std::make_unique<ObservedReceiver>(std::move(receiver), observation_);
  }

 private:
  std::unique_ptr<CongestionControl> inner_;
  Observation observation_;
};

}  // namespace

uint64_t ControlObservation::outstanding_credit_bytes() const {
  uint64_t sum = 0;
  for (const ReceiverController* receiver : receivers) sum += receiver->outstanding_credit_bytes();
  return sum;
}

std::unique_ptr<CongestionControl> Observe(std::unique_ptr<CongestionControl> inner,
                                           std::shared_ptr<ControlObservation> observation) {
  return std::make_unique<ObservedCongestionControl>(std::move(inner), std::move(observation));
}

}  // namespace paceline::support
