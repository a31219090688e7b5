// A congestion control whose senders share nothing but its parameters, and which has no receiver side: `Sender` is made
// from (parameters, flow, port).
//
// Thread rule and ownership: as in cc/congestion_control.h; each sender holds a copy of the parameters.
#pragma once

#include <memory>

#include "cc/congestion_control.h"

namespace paceline {

template <typename Sender, typename Parameters>
class SenderOnly final : public CongestionControl {
 public:
  explicit SenderOnly(const Parameters& parameters) : parameters_(parameters) {}
  std::unique_ptr<SenderController> NewSender(const FlowInfo& flow, const PortInfo& port, Time) override {
    return std::make_unique<Sender>(parameters_, flow, port);
  }

 private:
  const Parameters parameters_;
};

}  // namespace paceline
