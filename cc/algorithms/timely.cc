#include "cc/algorithms/timely.h"

#include <algorithm>

#include "cc/algorithms/bdp.h"
#include "cc/algorithms/parameters.h"
#include "cc/algorithms/sender_only.h"

namespace paceline {
namespace {

struct TimelyParameters {
  bool patched;
  double gain, beta, beta_patched, delta, t_low, t_high, hai_after, hai_steps, min_rate, initial_rate, sample_bytes;
};

constexpr double kLeastFactor = 0.5;  // of one step, as in the published code

class TimelySender : public SenderController {
 public:
  TimelySender(const TimelyParameters& parameters, const FlowInfo& flow, const PortInfo& port)
      : parameters_(parameters),
        link_rate_(LinkRate(port)),
        min_rate_(link_rate_ * parameters.min_rate),
        delta_(link_rate_ * parameters.delta),
        port_(port),
        base_rtt_(static_cast<double>(BaseRtt(port, flow).nanos())),
        rate_(std::max(link_rate_ * parameters.initial_rate, min_rate_)) {}

  void OnAck(const AckSample& sample) override {
    acked_ += static_cast<double>(std::min(sample.acked_bytes, kMaxBytes));
    if (sample.rtt <= Duration() || acked_ < parameters_.sample_bytes) return;
    acked_ = 0;
    const double rtt = static_cast<double>(std::min(sample.rtt, Duration::Seconds(10)).nanos());
    const double rise = sampled_ ? rtt - previous_rtt_ : 0;
    const double since = sampled_ ? static_cast<double>((sample.now - previous_at_).nanos()) : base_rtt_;
    sampled_ = true;
    previous_rtt_ = rtt;
    previous_at_ = sample.now;
    average_rise_ += parameters_.gain * (rise - average_rise_);
    not_rising_ = rise < 0 ? std::min(not_rising_ + 1, kMaxCount) : 0;
    Step(rtt, average_rise_ / base_rtt_, std::clamp(since / base_rtt_, 0.0, 1.0));
  }

  void OnLoss(const LossSample& sample) override {
    if (sample.cause != LossCause::kTimeout || sample.lost_packets == 0) return;
    rate_ = min_rate_;
    not_rising_ = 0;
  }

  void OnBaseRtt(Duration rtt, Time) override {
    base_rtt_ = static_cast<double>(BaseRtt(port_, {.base_rtt = rtt}).nanos());
  }

  Allowance allowance() const override {
    Allowance allowance;
    allowance.pacing_rate = rate_;
    return allowance;
  }

 private:
  static constexpr int kMaxCount = 1'000'000;

  void Step(double rtt, double gradient, double share) {
    const double host = DelayErrorNanos(port_);
    const double low = parameters_.t_low * base_rtt_ + host, high = parameters_.t_high * base_rtt_ + host;
    Rate more;
    double factor = 1;
    if (rtt < low) {
      more = delta_ * share;
    } else if (rtt > high) {
      factor = 1 - share * parameters_.beta * (1 - high / rtt);
    } else if (parameters_.patched) {
      const double weight = std::clamp(2 * gradient + 0.5, 0.0, 1.0);
      more = delta_ * (share * (1 - weight));
      factor = 1 - share * parameters_.beta_patched * weight * (rtt - low) / low;
    } else if (gradient <= 0) {
      more = delta_ * (share * (not_rising_ >= parameters_.hai_after ? parameters_.hai_steps : 1));
    } else {
      factor = 1 - parameters_.beta * gradient;
    }
    rate_ = std::clamp(rate_ * std::max(factor, kLeastFactor) + more, min_rate_, link_rate_);
  }

  const TimelyParameters parameters_;
  const Rate link_rate_, min_rate_, delta_;
  const PortInfo port_;
  double base_rtt_;  // ns
  Rate rate_;
  double acked_ = 0;  // since the last sample that counted
  bool sampled_ = false;
  double previous_rtt_ = 0, average_rise_ = 0;  // ns
  Time previous_at_;
  int not_rising_ = 0;
};

using Timely = SenderOnly<TimelySender, TimelyParameters>;

std::unique_ptr<CongestionControl> CreateTimely(const ParameterMap& map, uint64_t) {
  TimelyParameters p;
  p.patched = ChoiceOf(map, "variant") == "patched";
  p.gain = NumberOf(map, "gain");
  p.beta = NumberOf(map, "beta");
  p.beta_patched = NumberOf(map, "beta_patched");
  p.delta = NumberOf(map, "delta");
  p.t_low = NumberOf(map, "t_low");
  p.t_high = NumberOf(map, "t_high");
  p.hai_after = NumberOf(map, "hai_after");
  p.hai_steps = NumberOf(map, "hai_steps");
  p.min_rate = NumberOf(map, "min_rate");
  p.initial_rate = NumberOf(map, "initial_rate");
  p.sample_bytes = NumberOf(map, "sample_bytes");
  return std::make_unique<Timely>(p);
}

}  // namespace

AlgorithmInfo TimelyAlgorithm() {
  return {
      "timely",
      "Rate by the gradient of the round-trip time (SIGCOMM 2015)",
      {ChoiceSpec("variant", "paper", {"paper", "patched"},
                  "Between the thresholds: by the gradient alone, or by gradient and delay (CoNEXT 2016)"),
       NumberSpec("gain", 0.02, 0.0001, 1, "", "Gain of the average of RTT differences (published code)"),
       NumberSpec("beta", 0.8, 0.01, 1, "", "Strength of the multiplicative decrease (paper)"),
       NumberSpec("beta_patched", 0.008, 0.0001, 1, "", "The same between the thresholds of `patched` (CoNEXT 2016)"),
       NumberSpec("delta", 0.001, 1e-6, 0.1, "link rate", "Additive increase: 10 Mb/s at 10 Gb/s (paper)"),
       NumberSpec("t_low", 1.25, 0.1, 1000, "base RTT", "Below: additive increase only (ours)"),
       NumberSpec("t_high", 1.75, 0.1, 1000, "base RTT", "Above: decrease by the excess (ours)"),
       NumberSpec("hai_after", 5, 1, 1000, "samples", "Falling samples in a row before hyper increase (paper)"),
       NumberSpec("hai_steps", 5, 1, 100, "delta", "Step of the hyper increase (paper)"),
       NumberSpec("min_rate", 0.001, 1e-5, 1, "link rate", "Least rate (ours)"),
       NumberSpec("initial_rate", 1, 1e-5, 1, "link rate", "Rate of a new flow (paper, for the first of a host)"),
       NumberSpec("sample_bytes", 16384, 1, 1e6, "bytes", "Acknowledged between two samples: a segment of the paper")},
      CreateTimely};
}

}  // namespace paceline
