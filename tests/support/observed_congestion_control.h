// Wraps any congestion control and watches how the core uses it: that the interface is called as
// cc/congestion_control.h says, and that the core keeps within the allowance that it was given. What it finds is noted
// in a ControlObservation, which outlives the endpoint.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cc/congestion_control.h"

namespace paceline::support {

struct ControlObservation {
  std::vector<std::string> violations;
  std::vector<const ReceiverController*> receivers;  // alive as long as the endpoint
  Duration longest_rtt;
  std::vector<Duration> sender_base_rtts, receiver_base_rtts;  // as told, in order
  uint64_t sent_bytes = 0;
  uint64_t acked_bytes = 0;
  uint64_t lost_bytes = 0;
  size_t senders = 0;          // alive now
  int backlogged_senders = 0;  // of those alive, who last heard of a backlog
  size_t receiver_flows = 0;   // alive now
  uint64_t demand_end = 0;     // as last told, over all flows of receivers alive now

  void Note(std::string what) {
    if (violations.size() < 20) violations.push_back(std::move(what));
  }
  // Over all ports. Only while the endpoint lives.
  uint64_t outstanding_credit_bytes() const;
};

std::unique_ptr<CongestionControl> Observe(std::unique_ptr<CongestionControl> inner,
                                           std::shared_ptr<ControlObservation> observation);

}  // namespace paceline::support
