#include "cc/algorithms/dcqcn.h"

#include <algorithm>
#include <utility>

#include "cc/algorithms/bdp.h"
#include "cc/algorithms/parameters.h"
#include "cc/algorithms/sender_only.h"

namespace paceline {
namespace {

struct DcqcnParameters {
  Duration alpha_timer, decrease_interval, increase_timer, cnp_interval;
  int fast_recovery_stages;
  uint64_t byte_counter;          // 0: none
  double g, rai, rhai, min_rate;  // the rates as fractions of the link rate
  bool keep_target;               // a cut that follows another without a step between them leaves the target
  bool alpha_by_timer;            // alpha moves with its timer only, up if there was a notification since
};

class DcqcnSender : public SenderController {
 public:
  DcqcnSender(const DcqcnParameters& parameters, const FlowInfo&, const PortInfo& port)
      : parameters_(parameters),
        link_rate_(LinkRate(port)),
        min_rate_(link_rate_ * parameters.min_rate),
        rate_(link_rate_),
        target_(link_rate_) {}

  void OnSent(Time now, uint64_t tx_total, uint64_t) override {
    const uint64_t sent = tx_total > tx_total_ ? tx_total - tx_total_ : 0;
    tx_total_ = std::max(tx_total_, tx_total);
    if (parameters_.byte_counter == 0 || AtLineRate()) return;
    bytes_since_stage_ += std::min(sent, kMaxBytes);
    if (bytes_since_stage_ >= parameters_.byte_counter) {
      bytes_since_stage_ = 0;
      byte_stage_ = std::min(byte_stage_ + 1, kMaxStage);
      Increase(now);
    }
  }

  void OnAck(const AckSample& sample) override {
    if (sample.marked_packets == 0 && sample.marked_bytes == 0) return;
    if (sample.now < next_cnp_) return;
    next_cnp_ = sample.now + parameters_.cnp_interval;
    HandleNotification(sample.now);
  }

  void OnLoss(const LossSample& sample) override {
    if (sample.cause != LossCause::kTimeout || sample.lost_packets == 0) return;
    rate_ = min_rate_;
    StartStages(sample.now);
  }

  Allowance allowance() const override {
    Allowance allowance;
    allowance.pacing_rate = rate_;
    return allowance;
  }

  Time PollTimeout() const override { return std::min(next_alpha_, next_increase_); }

  void HandleTimeout(Time now) override {
    // A caller that comes late gets the steps that it missed, up to a bound beyond which they make no difference.
    for (int step = 0; step < kMaxStepsPerCall && next_alpha_ <= now; ++step) {
      alpha_ = (1 - parameters_.g) * alpha_ + (std::exchange(notified_, false) ? parameters_.g : 0);
      next_alpha_ = next_alpha_ + parameters_.alpha_timer;
      if (alpha_ < kLeastAlpha) next_alpha_ = Time::Never();
    }
    for (int step = 0; step < kMaxStepsPerCall && next_increase_ <= now; ++step) {
      next_increase_ = next_increase_ + parameters_.increase_timer;
      time_stage_ = std::min(time_stage_ + 1, kMaxStage);
      Increase(now);
    }
    if (next_alpha_ <= now) next_alpha_ = now + parameters_.alpha_timer;
    if (next_increase_ <= now) next_increase_ = now + parameters_.increase_timer;
  }

 private:
  static constexpr int kMaxStage = 1000;
  static constexpr int kMaxStepsPerCall = 1000;
  static constexpr double kLeastAlpha = 1e-6;

  bool AtLineRate() const { return rate_ >= link_rate_; }

  void HandleNotification(Time now) {
    if (parameters_.alpha_by_timer) {
      notified_ = true;
      if (next_alpha_.is_never()) next_alpha_ = now + parameters_.alpha_timer;
    }
    if (decreased_ && now - last_decrease_ < parameters_.decrease_interval) return;
    decreased_ = true;
    last_decrease_ = now;
    if (!parameters_.keep_target || time_stage_ > 0) target_ = rate_;
    rate_ = std::max(rate_ * (1 - alpha_ / 2), min_rate_);
    if (!parameters_.alpha_by_timer) {
      alpha_ = (1 - parameters_.g) * alpha_ + parameters_.g;
      next_alpha_ = now + parameters_.alpha_timer;
    }
    StartStages(now);
  }

  void StartStages(Time now) {
    time_stage_ = byte_stage_ = 0;
    bytes_since_stage_ = 0;
    next_increase_ = now + parameters_.increase_timer;
  }

  void Increase(Time) {
    const int most = std::max(time_stage_, byte_stage_);
    // Without a byte counter the timer alone decides between additive and hyper increase.
    const int least = parameters_.byte_counter == 0 ? time_stage_ : std::min(time_stage_, byte_stage_);
    if (least > parameters_.fast_recovery_stages) {
      target_ = target_ + link_rate_ * parameters_.rhai;
    } else if (most >= parameters_.fast_recovery_stages) {
      target_ = target_ + link_rate_ * parameters_.rai;
    }
    target_ = std::min(target_, link_rate_);
    rate_ = (target_ + rate_) / 2;
    // Halving the distance never arrives: within a ten-thousandth it has.
    if (target_ >= link_rate_ && rate_ >= link_rate_ * 0.9999) {
      rate_ = link_rate_;
      next_increase_ = Time::Never();
    }
  }

  const DcqcnParameters parameters_;
  const Rate link_rate_, min_rate_;
  Rate rate_, target_;
  double alpha_ = 1;
  int time_stage_ = 0, byte_stage_ = 0;
  uint64_t tx_total_ = 0, bytes_since_stage_ = 0;
  bool decreased_ = false;
  bool notified_ = false;  // since the last step of alpha
  Time last_decrease_, next_cnp_;
  Time next_alpha_ = Time::Never(), next_increase_ = Time::Never();
};

using Dcqcn = SenderOnly<DcqcnSender, DcqcnParameters>;

std::unique_ptr<CongestionControl> CreateDcqcn(const ParameterMap& map, uint64_t) {
  DcqcnParameters p;
  const bool paper = ChoiceOf(map, "variant") == "paper";
  p.alpha_timer = Duration::Micros(paper ? 55 : 1);
  p.decrease_interval = Duration::Micros(paper ? 50 : 4);
  p.increase_timer = Duration::Micros(paper ? 55 : 300);
  p.cnp_interval = Duration::Micros(paper ? 50 : 4);
  p.fast_recovery_stages = paper ? 5 : 2;  // 1 in `run.py`, whose code counts a step once it is taken
  p.byte_counter = paper ? 10'000'000 : 0;
  p.keep_target = p.alpha_by_timer = !paper;
  p.g = NumberOf(map, "g");
  const auto or_own = [](double given, double own) { return given > 0 ? given : own; };
  p.rai = or_own(NumberOf(map, "rai"), paper ? 0.001 : 0.0002);
  p.rhai = or_own(NumberOf(map, "rhai"), paper ? 0.005 : 0.002);
  p.min_rate = NumberOf(map, "min_rate");
  return std::make_unique<Dcqcn>(p);
}

}  // namespace

AlgorithmInfo DcqcnAlgorithm() {
  return {"dcqcn",
          "Rate by ECN marks and timers (SIGCOMM 2015)",
          {ChoiceSpec("variant", "paper", {"paper", "vendor"},
                      "Timers 55/50/55 us, F 5, byte counter 10 MB; or 1/4/300 us, F 1, none (HPCC authors' code)"),
           NumberSpec("g", 1.0 / 256, 0.0001, 1, "", "Gain of the mark average (paper, section 5)"),
           NumberSpec("rai", 0, 0, 0.1, "link rate", "Additive increase; 0: the variant's own, 0.001 or 0.0002"),
           NumberSpec("rhai", 0, 0, 1, "link rate", "Hyper increase; 0: the variant's own, 0.005 or 0.002"),
           NumberSpec("min_rate", 0.01, 1e-5, 1, "link rate", "Least rate: 1 Gb/s at 100 Gb/s (run.py)")},
          CreateDcqcn};
}

}  // namespace paceline
