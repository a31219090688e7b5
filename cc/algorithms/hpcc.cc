#include "cc/algorithms/hpcc.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "cc/algorithms/bdp.h"
#include "cc/algorithms/parameters.h"
#include "cc/algorithms/sender_only.h"

namespace paceline {
namespace {

struct HpccParameters {
  double eta, w_ai;
  int max_stage;
};

// Link counts have 32 bits: after so long without a word of a link they may have gone round.
constexpr Duration kForget = Duration::Millis(10);
constexpr size_t kMostLinks = 4096;     // of all paths of a flow
constexpr double kLeastWindow = 0.001;  // BDP, for the pace: the window itself is at least a segment

class HpccSender : public SenderController {
 public:
  HpccSender(const HpccParameters& parameters, const FlowInfo&, const PortInfo& port)
      : parameters_(parameters),
        rtt_nanos_(static_cast<double>(BaseRtt(port).nanos())),
        wire_per_payload_(static_cast<double>(SegmentWireBytes(port)) / SegmentBytes(port)),
        segment_(SegmentBytes(port)),
        link_rate_(LinkRate(port)),
        largest_(static_cast<double>(BdpBytes(port, BaseRtt(port)))),
        window_(largest_),
        reference_(largest_) {}

  bool wants_telemetry() const override { return true; }

  void OnSent(Time, uint64_t tx_total, uint64_t) override {
    tx_total_ = std::max(tx_total_, std::min(tx_total, kMaxBytes));
  }

  void OnAck(const AckSample& sample) override {
    if (!MeasureInflight(sample)) return;
    const uint64_t resolved = tx_total_ - std::min(tx_total_, sample.in_flight_bytes);
    const bool update = resolved > update_after_;
    ComputeWindow(update);
    if (update) update_after_ = tx_total_;
  }

  void OnLoss(const LossSample&) override {}  // the paper's network loses nothing

  Allowance allowance() const override {
    Allowance allowance;
    allowance.window_bytes = static_cast<uint64_t>(std::max(window_, segment_));
    allowance.pacing_rate = std::min(Rate::BytesPerSecond(window_ * wire_per_payload_ * 1e9 / rtt_nanos_), link_rate_);
    return allowance;
  }

 private:
  struct Heard {
    HopTelemetry hop;
    Time at;
  };

  // Takes in what the links say; false: nothing that could be compared with anything before.
  bool MeasureInflight(const AckSample& sample) {
    double u = 0, span = 0;
    if (links_.size() > kMostLinks) links_.clear();
    for (const HopTelemetry& hop : sample.hops) {
      const auto [place, is_new] = links_.try_emplace(hop.link, Heard{hop, sample.now});
      if (is_new) continue;
      const Heard before = place->second;
      const auto nanos = static_cast<int32_t>(hop.time_nanos - before.hop.time_nanos);
      const bool stale = sample.now - before.at > kForget;
      if (nanos <= 0 && !stale) continue;  // overtaken by a later word of this link
      place->second = {hop, sample.now};
      const double bytes_per_nano = hop.rate.bytes_per_second() / 1e9;
      if (stale || !(bytes_per_nano > 0) || hop.rate.is_unlimited()) continue;
      const double queue = std::min(hop.queue_bytes, before.hop.queue_bytes);
      const double sent = hop.sent_bytes - before.hop.sent_bytes;  // modulo 2^32
      const double link_u = queue / (bytes_per_nano * rtt_nanos_) + sent / nanos / bytes_per_nano;
      if (link_u <= u) continue;
      u = link_u;
      span = nanos;
    }
    if (u <= 0) return false;
    const double weight = std::min(span, rtt_nanos_) / rtt_nanos_;
    utilisation_ = (1 - weight) * utilisation_ + weight * std::min(u, 1e6);
    return true;
  }

  void ComputeWindow(bool update) {
    const bool multiplicative = utilisation_ >= parameters_.eta || stage_ >= parameters_.max_stage;
    const double window = multiplicative ? reference_ * parameters_.eta / utilisation_ : reference_;
    window_ = std::clamp(window + parameters_.w_ai, kLeastWindow * largest_, largest_);
    if (!update) return;
    reference_ = window_;
    stage_ = multiplicative ? 0 : stage_ + 1;
  }

  const HpccParameters parameters_;
  const double rtt_nanos_;  // T: of the farthest pair, the same for all flows
  const double wire_per_payload_, segment_;
  const Rate link_rate_;
  const double largest_;       // one BDP
  double window_, reference_;  // W, Wc
  double utilisation_ = 1;     // U
  int stage_ = 0;
  uint64_t tx_total_ = 0, update_after_ = 0;
  absl::flat_hash_map<uint32_t, Heard> links_;
};

using Hpcc = SenderOnly<HpccSender, HpccParameters>;

}  // namespace

AlgorithmInfo HpccAlgorithm() {
  AlgorithmInfo info = {
      "hpcc",
      "Window by in-band telemetry of the busiest link (SIGCOMM 2019)",
      {NumberSpec("eta", 0.95, 0.1, 1, "", "Utilisation that is aimed at (paper, section 5.1)"),
       NumberSpec("max_stage", 5, 0, 1000, "", "Additive steps before the next multiplicative one (paper)"),
       NumberSpec("w_ai", 80, 0, 1'000'000, "bytes", "Additive step of the window (paper, section 5.1)")},
      [](const ParameterMap& map, uint64_t) -> std::unique_ptr<CongestionControl> {
        return std::make_unique<Hpcc>(HpccParameters{.eta = NumberOf(map, "eta"),
                                                     .w_ai = NumberOf(map, "w_ai"),
                                                     .max_stage = static_cast<int>(NumberOf(map, "max_stage"))});
      }};
  info.needs_telemetry = true;
  return info;
}

}  // namespace paceline
