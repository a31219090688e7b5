#include "cc/algorithms/nscc_rccc.h"

#include <algorithm>
#include <utility>

#include "cc/algorithms/nscc.h"
#include "cc/algorithms/parameters.h"
#include "cc/algorithms/rccc.h"

namespace paceline {
namespace {

class BothSender : public SenderController {
 public:
  BothSender(std::unique_ptr<SenderController> window, std::unique_ptr<SenderController> credit)
      : window_(std::move(window)), credit_(std::move(credit)) {}

  void OnSent(Time now, uint64_t tx_total, uint64_t in_flight_bytes) override {
    window_->OnSent(now, tx_total, in_flight_bytes);
    credit_->OnSent(now, tx_total, in_flight_bytes);
  }
  void OnAck(const AckSample& sample) override {
    window_->OnAck(sample);
    credit_->OnAck(sample);
  }
  void OnLoss(const LossSample& sample) override {
    window_->OnLoss(sample);
    credit_->OnLoss(sample);
  }
  void OnGrant(const GrantSample& sample) override {
    window_->OnGrant(sample);
    credit_->OnGrant(sample);
  }
  void OnBacklog(Time now, uint64_t backlog_bytes, uint64_t tx_total) override {
    window_->OnBacklog(now, backlog_bytes, tx_total);
    credit_->OnBacklog(now, backlog_bytes, tx_total);
  }
  void OnBaseRtt(Duration rtt, Time now) override {
    window_->OnBaseRtt(rtt, now);
    credit_->OnBaseRtt(rtt, now);
  }
  Allowance allowance() const override {
    const Allowance window = window_->allowance(), credit = credit_->allowance();
    return {.window_bytes = std::min(window.window_bytes, credit.window_bytes),
            .credit_end = std::min(window.credit_end, credit.credit_end),
            .pacing_rate = std::min(window.pacing_rate, credit.pacing_rate)};
  }
  bool wants_telemetry() const override { return window_->wants_telemetry() || credit_->wants_telemetry(); }
  Rate cap() const override { return std::min(window_->cap(), credit_->cap()); }
  Time PollTimeout() const override { return std::min(window_->PollTimeout(), credit_->PollTimeout()); }
  void HandleTimeout(Time now) override {
    if (window_->PollTimeout() <= now) window_->HandleTimeout(now);
    if (credit_->PollTimeout() <= now) credit_->HandleTimeout(now);
  }

 private:
  const std::unique_ptr<SenderController> window_, credit_;
};

class Both : public CongestionControl {
 public:
  Both(std::unique_ptr<CongestionControl> window, std::unique_ptr<CongestionControl> credit)
      : window_(std::move(window)), credit_(std::move(credit)) {}

  std::unique_ptr<SenderController> NewSender(const FlowInfo& flow, const PortInfo& port, Time now) override {
    return std::make_unique<BothSender>(window_->NewSender(flow, port, now), credit_->NewSender(flow, port, now));
  }
  std::unique_ptr<ReceiverController> NewReceiver(const PortInfo& port) override { return credit_->NewReceiver(port); }

 private:
  const std::unique_ptr<CongestionControl> window_, credit_;
};

}  // namespace

AlgorithmInfo NsccRcccAlgorithm() {
  AlgorithmInfo info = {"nscc_rccc", "Window and receiver credit of Ultra Ethernet together: what both allow",
                        NsccAlgorithm().parameters,
                        // Each takes its own of the parameters; the names of the two do not overlap.
                        [](const ParameterMap& parameters, uint64_t seed) -> std::unique_ptr<CongestionControl> {
                          return std::make_unique<Both>(NsccAlgorithm().create(parameters, seed),
                                                        RcccAlgorithm().create(parameters, seed));
                        }};
  for (ParameterSpec& spec : RcccAlgorithm().parameters) {
    // The window follows the core already.
    if (spec.name == "core_loop") spec = FlagSpec("core_loop", false, "As of rccc (simulator: not beside a window)");
    info.parameters.push_back(std::move(spec));
  }
  return info;
}

}  // namespace paceline
