#include "cc/algorithms/swift.h"

#include <algorithm>
#include <cmath>

#include "cc/algorithms/bdp.h"
#include "cc/algorithms/parameters.h"
#include "cc/algorithms/sender_only.h"

namespace paceline {
namespace {

struct SwiftParameters {
  double ai, beta, max_mdf, base_target, fs_range, fs_min_cwnd, fs_max_cwnd, min_cwnd, max_cwnd, initial_cwnd;
};

constexpr int kTimeoutsBeforeReset = 5;
constexpr int64_t kLongestRoundTrip = 100;  // base round trips: what seems longer is an end that stood still

class SwiftSender : public SenderController {
 public:
  SwiftSender(const SwiftParameters& parameters, const FlowInfo& flow, const PortInfo& port)
      : parameters_(parameters),
        segment_(SegmentBytes(port)),
        segment_wire_(static_cast<double>(SegmentWireBytes(port))),
        link_rate_(LinkRate(port)),
        port_(port) {
    SetBaseRtt(BaseRtt(port, flow));
    rtt_ = base_rtt_;
    const double bdp = static_cast<double>(BdpBytes(port, base_rtt_)) / segment_;
    cwnd_ = std::min(max_cwnd_, std::max(1.0, parameters.initial_cwnd * bdp));
    Publish();
  }

  // The rate stays, the window follows.
  void OnBaseRtt(Duration rtt, Time) override {
    const Duration before = base_rtt_;
    SetBaseRtt(BaseRtt(port_, {.base_rtt = rtt}));
    cwnd_ *= base_rtt_.seconds() / before.seconds();
    Publish();
  }

  void OnAck(const AckSample& sample) override {
    if (sample.acked_bytes > 0) timeouts_ = 0;
    if (sample.rtt > Duration()) rtt_ = std::min(sample.rtt, base_rtt_ * kLongestRoundTrip);
    const double delay = static_cast<double>(rtt_.nanos());
    const double target = TargetNanos();
    if (delay < target) {
      const double acked = static_cast<double>(std::min(sample.acked_bytes, kMaxBytes)) / segment_;
      const bool limited = sample.backlogged || static_cast<double>(sample.in_flight_bytes) * 2 >= cwnd_ * segment_;
      if (limited) cwnd_ += parameters_.ai * (cwnd_ >= 1 ? acked / cwnd_ : acked);
    } else if (sample.rtt > Duration()) {
      Decrease(sample.now, std::max(1 - parameters_.beta * (delay - target) / delay, 1 - parameters_.max_mdf));
    }
    Publish();
  }

  void OnLoss(const LossSample& sample) override {
    if (sample.lost_packets == 0 && sample.lost_bytes == 0) return;
    if (sample.cause == LossCause::kTimeout && ++timeouts_ >= kTimeoutsBeforeReset) {
      timeouts_ = kTimeoutsBeforeReset;
      cwnd_ = 0;  // Publish raises it to the least window
      decreased_ = true;
      last_decrease_ = sample.now;
    } else {
      Decrease(sample.now, 1 - parameters_.max_mdf);
    }
    Publish();
  }

  Allowance allowance() const override { return allowance_; }

 private:
  double TargetNanos() const {
    const double scaling = std::clamp(fs_alpha_ / std::sqrt(cwnd_) + fs_beta_, 0.0, fs_range_nanos_);
    return parameters_.base_target * static_cast<double>(base_rtt_.nanos()) + scaling + DelayErrorNanos(port_);
  }

  void SetBaseRtt(Duration rtt) {
    base_rtt_ = rtt;
    max_cwnd_ = std::max(1.0, parameters_.max_cwnd * static_cast<double>(BdpBytes(port_, rtt)) / segment_);
    const double fs_max_inverse = 1 / std::sqrt(parameters_.fs_max_cwnd);
    const double spread = 1 / std::sqrt(parameters_.fs_min_cwnd) - fs_max_inverse;
    fs_range_nanos_ = parameters_.fs_range * static_cast<double>(rtt.nanos());
    fs_alpha_ = spread > 0 ? fs_range_nanos_ / spread : 0;
    fs_beta_ = -fs_alpha_ * fs_max_inverse;
  }

  void Decrease(Time now, double factor) {
    if (decreased_ && now - last_decrease_ < rtt_) return;
    decreased_ = true;
    last_decrease_ = now;
    cwnd_ *= factor;
  }

  void Publish() {
    cwnd_ = std::clamp(cwnd_, parameters_.min_cwnd, max_cwnd_);
    allowance_.window_bytes = static_cast<uint64_t>(std::max(1.0, cwnd_) * segment_);
    allowance_.pacing_rate =
        cwnd_ >= 1 ? link_rate_ : std::min(link_rate_, Rate::BytesPerSecond(cwnd_ * segment_wire_ / rtt_.seconds()));
  }

  const SwiftParameters parameters_;
  const double segment_, segment_wire_;
  const Rate link_rate_;
  const PortInfo port_;
  Duration base_rtt_;
  Duration rtt_;            // newest sample
  double cwnd_, max_cwnd_;  // segments
  double fs_alpha_, fs_beta_, fs_range_nanos_;
  int timeouts_ = 0;  // since the last acknowledgement
  bool decreased_ = false;
  Time last_decrease_;
  Allowance allowance_;
};

using Swift = SenderOnly<SwiftSender, SwiftParameters>;

}  // namespace

AlgorithmInfo SwiftAlgorithm() {
  return {"swift",
          "Window by delay against a target that grows with fan-in (SIGCOMM 2020)",
          {NumberSpec("ai", 1.0, 0.01, 16, "segments", "Additive increase per round trip (paper, 3.2)"),
           NumberSpec("beta", 0.8, 0.01, 1, "", "Strength of the multiplicative decrease (htsim's model)"),
           NumberSpec("max_mdf", 0.5, 0.01, 0.99, "", "Largest decrease per round trip (htsim's model)"),
           NumberSpec("base_target", 1.25, 1, 10, "base RTT", "Target delay of a large window (ours)"),
           NumberSpec("fs_range", 1.0, 0, 20, "base RTT", "Range of the flow scaling of the target (ours)"),
           NumberSpec("fs_min_cwnd", 0.1, 0.001, 1, "segments", "Window at which flow scaling is largest (paper, 3.5)"),
           NumberSpec("fs_max_cwnd", 100, 2, 10000, "segments", "Window at which flow scaling ends (paper, 3.5)"),
           NumberSpec("min_cwnd", 0.01, 0.0001, 1, "segments", "Least window; below 1 the flow is paced (ours)"),
           NumberSpec("max_cwnd", 2.0, 0.1, 100, "BDP", "Largest window (ours)"),
           NumberSpec("initial_cwnd", 1.0, 0.01, 100, "BDP", "Window of a new flow (ours)")},
          [](const ParameterMap& p, uint64_t) -> std::unique_ptr<CongestionControl> {
            return std::make_unique<Swift>(SwiftParameters{
                NumberOf(p, "ai"), NumberOf(p, "beta"), NumberOf(p, "max_mdf"), NumberOf(p, "base_target"),
                NumberOf(p, "fs_range"), NumberOf(p, "fs_min_cwnd"), NumberOf(p, "fs_max_cwnd"),
                NumberOf(p, "min_cwnd"), NumberOf(p, "max_cwnd"), NumberOf(p, "initial_cwnd")});
          }};
}

}  // namespace paceline
