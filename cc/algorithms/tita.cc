#include "cc/algorithms/tita.h"

#include <map>

#include "cc/algorithms/bdp.h"
#include "cc/algorithms/tita_parameters.h"
#include "cc/algorithms/tita_receiver.h"
#include "cc/algorithms/tita_sender.h"

namespace paceline {
namespace {

class Tita : public CongestionControl {
 public:
  explicit Tita(const TitaParameters& parameters) : parameters_(parameters) {}

  std::unique_ptr<SenderController> NewSender(const FlowInfo& flow, const PortInfo& port, Time) override {
    return std::make_unique<TitaSender>(parameters_, flow, port, Shared(port));
  }
  std::unique_ptr<ReceiverController> NewReceiver(const PortInfo& port) override {
    return std::make_unique<TitaReceiver>(parameters_, port, Shared(port));
  }

 private:
  TitaPort& Shared(const PortInfo& port) {
    std::unique_ptr<TitaPort>& shared = ports_[port.port_index];
    if (!shared) shared = std::make_unique<TitaPort>(LinkRate(port).bytes_per_second());
    return *shared;
  }

  const TitaParameters parameters_;
  std::map<uint32_t, std::unique_ptr<TitaPort>> ports_;
};

}  // namespace

AlgorithmInfo TitaAlgorithm() {
  return {"tita", "Receiver-paced credit at explicit max-min rates, ahead of congestion", TitaParameterSpecs(),
          [](const ParameterMap& map, uint64_t) -> std::unique_ptr<CongestionControl> {
            return std::make_unique<Tita>(TitaParametersFrom(map));
          }};
}

}  // namespace paceline
