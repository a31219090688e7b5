// `tita`: proactive congestion control. The receiving port owns its downlink and paces all credit for it; senders send
// what they have credit for, at explicit max-min rates. Our own algorithm; it combines receiver-driven credit with a
// budget (SIRD, EQDS, UEC RCCC), explicit max-min rates (PERC) and a loop for the core driven by marks and by measured
// delivery. The name follows what is known of Tencent's TiTa 2.0, which also decides rates before queues form; no part
// of it is public and none is used. Derivation, parameters and differences: docs/cc/tita.md.
//
//   tita_receiver.h   credit of one port          tita_budget.h     its sizes and the budget
//   tita_sender.h     one flow that we send       uplink_share.h    the caps that senders announce
//   core_limit.h      loop for the core           water_filling.h   max-min rates
//   tita_forecast.h   credit of silent senders
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include <cstdint>

#include "cc/algorithms/uplink_share.h"
#include "cc/registry.h"

namespace paceline {

// What senders and the receiver of one local port share.
struct TitaPort {
  explicit TitaPort(double line_rate) : uplink(line_rate) {}
  UplinkShare uplink;
  uint64_t control_bytes_in = 0;  // wire bytes of acknowledgements that came in: they share the downlink with data
};

AlgorithmInfo TitaAlgorithm();

}  // namespace paceline
