#include "cc/algorithms/fixed_window.h"

#include "cc/algorithms/bdp.h"
#include "cc/algorithms/parameters.h"

namespace paceline {
namespace {

class FixedWindowSender : public SenderController {
 public:
  FixedWindowSender(const FlowInfo& flow, const PortInfo& port, double window_bdp)
      : port_(port), window_bdp_(window_bdp) {
    allowance_.window_bytes = BdpScaled(port, BaseRtt(port, flow), window_bdp);
    allowance_.pacing_rate = LinkRate(port);
  }
  void OnBaseRtt(Duration rtt, Time) override {
    allowance_.window_bytes = BdpScaled(port_, BaseRtt(port_, {.base_rtt = rtt}), window_bdp_);
  }
  void OnAck(const AckSample&) override {}
  void OnLoss(const LossSample&) override {}
  Allowance allowance() const override { return allowance_; }

 private:
  const PortInfo port_;
  const double window_bdp_;
  Allowance allowance_;
};

class FixedWindow : public CongestionControl {
 public:
  explicit FixedWindow(double window_bdp) : window_bdp_(window_bdp) {}
  std::unique_ptr<SenderController> NewSender(const FlowInfo& flow, const PortInfo& port, Time) override {
    return std::make_unique<FixedWindowSender>(flow, port, window_bdp_);
  }

 private:
  const double window_bdp_;
};

}  // namespace

AlgorithmInfo FixedWindowAlgorithm() {
  return {"fixed_window",
          "A constant window per flow",
          {NumberSpec("window_bdp", 1.0, 0.01, 1000, "BDP", "Bytes in flight at most; one BDP fills an empty path")},
          [](const ParameterMap& parameters, uint64_t) -> std::unique_ptr<CongestionControl> {
            return std::make_unique<FixedWindow>(NumberOf(parameters, "window_bdp"));
          }};
}

}  // namespace paceline
