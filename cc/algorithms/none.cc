#include "cc/algorithms/none.h"

#include "cc/algorithms/bdp.h"

namespace paceline {
namespace {

class NoneSender : public SenderController {
 public:
  explicit NoneSender(const PortInfo& port) { allowance_.pacing_rate = LinkRate(port); }
  void OnAck(const AckSample&) override {}
  void OnLoss(const LossSample&) override {}
  Allowance allowance() const override { return allowance_; }

 private:
  Allowance allowance_;
};

class None : public CongestionControl {
 public:
  std::unique_ptr<SenderController> NewSender(const FlowInfo&, const PortInfo& port, Time) override {
    return std::make_unique<NoneSender>(port);
  }
};

}  // namespace

AlgorithmInfo NoneAlgorithm() {
  return {"none",
          "No control: line rate, bounded only by the protocol core",
          {},
          [](const ParameterMap&, uint64_t) -> std::unique_ptr<CongestionControl> { return std::make_unique<None>(); }};
}

}  // namespace paceline
