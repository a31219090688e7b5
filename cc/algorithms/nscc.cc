#include "cc/algorithms/nscc.h"

#include <algorithm>

#include "cc/algorithms/bdp.h"
#include "cc/algorithms/parameters.h"
#include "cc/algorithms/sender_only.h"

namespace paceline {
namespace {

struct NsccParameters {
  double target, alpha, fi, eta, gamma, max_md, fast_gain, fast_delay, delay_gain, quiet_delay, qa_gate, qa_delay,
      max_cwnd, initial_cwnd, adjust, reference_rtt, reference_rate;
};

// More equal steps of an average than this change nothing any more.
constexpr uint32_t kMaxDelaySteps = 1000;
constexpr Duration kLongestRtt = Duration::Seconds(10);

class NsccSender : public SenderController {
 public:
  NsccSender(const NsccParameters& parameters, const FlowInfo& flow, const PortInfo& port)
      : parameters_(parameters), port_(port), segment_(SegmentBytes(port)) {
    SetNetworkRtt(BaseRtt(port));
    SetBaseRtt(BaseRtt(port, flow));
    cwnd_ = max_cwnd_ * parameters.initial_cwnd;
    Bound();
  }

  // The pair is the network that it knows of. The rate stays, the window follows.
  void OnBaseRtt(Duration rtt, Time) override {
    const double before = BaseNanos();
    const Duration base = BaseRtt(port_, {.base_rtt = rtt});
    SetNetworkRtt(base);
    SetBaseRtt(base);
    measured_ = true;
    cwnd_ *= BaseNanos() / before;
    Bound();
  }

  void OnAck(const AckSample& sample) override {
    const double acked = Bytes(sample.acked_bytes);
    const bool marked = sample.marked_packets > 0 || sample.marked_bytes > 0;
    achieved_ += acked;
    since_adjust_ += acked;
    heard_ += acked;
    double delay = average_delay_;  // what stands for a sample where there is none
    if (sample.rtt > Duration()) {
      const Duration rtt = std::min(sample.rtt, kLongestRtt);
      if (!measured_ && rtt < base_rtt_) SetBaseRtt(rtt);
      delay = static_cast<double>((rtt - base_rtt_).nanos()) - DelayErrorNanos(port_);
      delay = std::max(delay, 0.0);
      AverageDelay(!marked && delay > target_ ? parameters_.quiet_delay * BaseNanos() : delay);
    }
    if (QuickAdapt(sample.now, sample.in_flight_bytes, false, marked, delay)) return;

    if (!marked && delay >= target_) {
      growth_ += fi_ * acked;
    } else if (!marked) {
      IncreaseInProportion(acked, delay);
    } else if (delay >= target_) {
      Decrease(sample.now);
    }
    Bound();
    Adjust(sample.now);
    Bound();
  }

  void OnLoss(const LossSample& sample) override {
    if (sample.lost_packets == 0 && sample.lost_bytes == 0) return;
    const double lost = Bytes(sample.lost_bytes);
    if (sample.cause != LossCause::kTimeout) {
      heard_ += lost;
      // A full queue is a network round trip long: what the lost packet would have measured.
      const uint32_t steps = std::min(sample.lost_packets, kMaxDelaySteps);
      for (uint32_t i = 0; i < steps; ++i) AverageDelay(network_rtt_);
      lost_in_period_ = true;
      const double in_flight = Bytes(sample.in_flight_bytes) + lost;
      if (QuickAdapt(sample.now, static_cast<uint64_t>(in_flight), true, true, 0)) return;
    }
    cwnd_ -= lost;
    Bound();
  }

  Allowance allowance() const override {
    Allowance allowance;
    allowance.window_bytes = static_cast<uint64_t>(cwnd_);
    return allowance;
  }

 private:
  static double Bytes(uint64_t bytes) { return static_cast<double>(std::min(bytes, kMaxBytes)); }
  double BaseNanos() const { return static_cast<double>(base_rtt_.nanos()); }

  // What the increases and the target follow.
  void SetNetworkRtt(Duration rtt) {
    network_rtt_ = static_cast<double>(rtt.nanos());
    target_ = parameters_.target * network_rtt_;
    const double reference_bytes = parameters_.reference_rate * parameters_.reference_rtt / 8;  // Gb/s * ns / 8
    const double size = LinkRate(port_).bytes_per_second() * network_rtt_ / 1e9 / reference_bytes;
    const double reach = target_ / parameters_.reference_rtt;
    alpha_ = parameters_.alpha * segment_ * size * reach;
    fi_ = parameters_.fi * segment_ * size;
    eta_ = parameters_.eta * segment_ * size;
    fast_gain_ = parameters_.fast_gain * size;
  }

  void SetBaseRtt(Duration rtt) {
    base_rtt_ = std::max(rtt, Duration::Micros(1));
    max_cwnd_ = std::max(parameters_.max_cwnd * static_cast<double>(BdpBytes(port_, base_rtt_)), segment_);
  }

  void AverageDelay(double delay) { average_delay_ += parameters_.delay_gain * (delay - average_delay_); }

  // True when this report changes nothing else: the window was just set, or the report is about packets sent before.
  bool QuickAdapt(Time now, uint64_t in_flight, bool loss, bool bad_news, double delay) {
    bool done = false;
    if (bad_news && heard_ < to_hear_) {
      done = true;
    } else if (now > period_end_) {
      const bool due = loss || lost_in_period_ || delay > parameters_.qa_delay * target_;
      if (in_period_ && due && achieved_ < max_cwnd_ * parameters_.qa_gate) {
        cwnd_ = achieved_;
        to_hear_ = Bytes(in_flight);
        heard_ = 0;
        lost_in_period_ = false;
        done = true;
      }
      achieved_ = 0;
      in_period_ = true;
      period_end_ = now + base_rtt_ + Duration::Nanos(static_cast<int64_t>(target_));
    }
    if (done) {
      growth_ = since_adjust_ = 0;
      Bound();
    }
    return done;
  }

  void IncreaseInProportion(double acked, double delay) {
    if (delay < parameters_.fast_delay) {
      idle_path_bytes_ += acked;
      if (idle_path_bytes_ > cwnd_ || fast_) {
        cwnd_ += acked * fast_gain_;
        fast_ = true;
        return;
      }
    } else {
      idle_path_bytes_ = 0;
    }
    fast_ = false;
    growth_ += alpha_ * acked * (target_ - delay) / target_;
  }

  void Decrease(Time now) {
    fast_ = false;
    idle_path_bytes_ = 0;
    if (average_delay_ <= target_ || (decreased_ && now - last_decrease_ <= base_rtt_)) return;
    decreased_ = true;
    last_decrease_ = now;
    const double excess = (average_delay_ - target_) / average_delay_;
    cwnd_ *= std::max(1 - parameters_.gamma * excess, 1 - parameters_.max_md);
  }

  void Adjust(Time now) {
    const Duration since = now - last_round_;
    const bool round = !counted_ || static_cast<double>(since.nanos()) >= network_rtt_;
    if (!round && since_adjust_ <= parameters_.adjust * segment_) return;
    cwnd_ += growth_ / cwnd_;
    growth_ = since_adjust_ = 0;
    if (!round) return;
    cwnd_ += eta_;
    counted_ = true;
    last_round_ = now;
  }

  void Bound() { cwnd_ = std::clamp(cwnd_, segment_, max_cwnd_); }

  const NsccParameters parameters_;
  const PortInfo port_;
  const double segment_;
  double network_rtt_ = 0, target_ = 0;  // ns
  double alpha_ = 0, fi_ = 0, eta_ = 0;  // bytes per window acknowledged, bytes per window, bytes per round trip
  double fast_gain_ = 0;
  Duration base_rtt_;      // as told, else the least seen
  bool measured_ = false;  // told
  double max_cwnd_ = 0, cwnd_ = 0;
  double average_delay_ = 0;  // ns
  double growth_ = 0;         // bytes squared: divided by the window when it is added
  double since_adjust_ = 0, idle_path_bytes_ = 0;
  bool fast_ = false;  // the path was idle for a window and more
  double achieved_ = 0, heard_ = 0, to_hear_ = 0;
  bool in_period_ = false, lost_in_period_ = false;
  bool decreased_ = false, counted_ = false;
  Time period_end_, last_decrease_, last_round_;
};

using Nscc = SenderOnly<NsccSender, NsccParameters>;

std::unique_ptr<CongestionControl> CreateNscc(const ParameterMap& map, uint64_t) {
  NsccParameters p;
  p.target = NumberOf(map, "target");
  p.alpha = NumberOf(map, "alpha");
  p.fi = NumberOf(map, "fi");
  p.eta = NumberOf(map, "eta");
  p.gamma = NumberOf(map, "gamma");
  p.max_md = NumberOf(map, "max_md");
  p.fast_gain = NumberOf(map, "fast_gain");
  p.fast_delay = NumberOf(map, "fast_delay_us") * 1e3;
  p.delay_gain = NumberOf(map, "delay_gain");
  p.quiet_delay = NumberOf(map, "quiet_delay");
  p.qa_gate = NumberOf(map, "qa_gate");
  p.qa_delay = NumberOf(map, "qa_delay");
  p.max_cwnd = NumberOf(map, "max_cwnd");
  p.initial_cwnd = NumberOf(map, "initial_cwnd");
  p.adjust = NumberOf(map, "adjust");
  p.reference_rtt = NumberOf(map, "reference_rtt_us") * 1e3;
  p.reference_rate = NumberOf(map, "reference_gbps");
  return std::make_unique<Nscc>(p);
}

}  // namespace

AlgorithmInfo NsccAlgorithm() {
  return {
      "nscc",
      "Window by delay and ECN marks together (Ultra Ethernet 1.0, network signal)",
      {NumberSpec("target", 0.75, 0.05, 10, "base RTT", "Target of the queueing delay; 1.0 where nothing trims"),
       NumberSpec("alpha", 4, 0, 100, "segments", "Proportional increase per round trip at no delay, before scaling"),
       NumberSpec("fi", 5, 0, 100, "segments", "Fair increase per round trip, before scaling"),
       NumberSpec("eta", 0.15, 0, 10, "segments", "Added every round trip whatever happens, before scaling"),
       NumberSpec("gamma", 0.8, 0.01, 1, "", "Strength of the multiplicative decrease"),
       NumberSpec("max_md", 0.5, 0.01, 0.99, "", "Largest decrease per round trip"),
       NumberSpec("fast_gain", 0.25, 0, 4, "", "Growth per acknowledged byte on an idle path, before scaling"),
       NumberSpec("fast_delay_us", 1, 0, 1000, "us", "Delay below which a path counts as idle"),
       NumberSpec("delay_gain", 0.0125, 0.0001, 1, "", "Gain of the delay average"),
       NumberSpec("quiet_delay", 0.25, 0, 10, "base RTT", "What an unmarked delay above the target counts as"),
       NumberSpec("qa_gate", 0.125, 0, 1, "largest window", "Quick adapt when less than this arrived in its period"),
       NumberSpec("qa_delay", 4, 1, 1000, "targets", "Delay from which quick adapt needs no loss"),
       NumberSpec("max_cwnd", 1.5, 0.1, 100, "BDP", "Largest window"),
       NumberSpec("initial_cwnd", 1, 0.001, 1, "largest window", "Window of a new flow"),
       NumberSpec("adjust", 8, 1, 1000, "segments", "Acknowledged bytes after which growth is added at the latest"),
       NumberSpec("reference_rtt_us", 12, 0.1, 1000, "us", "Round trip that the increases are stated for"),
       NumberSpec("reference_gbps", 100, 0.1, 10000, "Gb/s", "Line rate that the increases are stated for")},
      CreateNscc};
}

}  // namespace paceline
