// The parameters of `tita` as numbers, and their specifications (names, defaults, ranges, sources) for the registry.
//
// Thread rule: values; free to copy and use anywhere.
#pragma once

#include <vector>

#include "cc/registry.h"

namespace paceline {

struct TitaParameters {
  // Receiver: how much credit, how fast.
  double rho = 1;               // of the port's rate
  double budget = 1.5;          // BDP in flight to the port when few senders could use it
  double budget_floor = 1.125;  // BDP in flight to the port when many senders are waiting for it
  double bucket = 1.5;          // BDP in flight per sender
  int grain_segments = 0;       // 0: by line rate
  double park_rtts = 8;         // silence after which credit no longer counts
  double cap_slack = 1.25;      // a sender's announced cap is paced this much faster
  bool srpt = false;            // every other grant to the flow with least left
  // Receiver: core.
  bool core_ecn = true, core_delay = true;  // both: delay counts until a mark has ever been seen
  double core_gain = 0.25;
  double core_drain = 0.3;
  double core_floor = 0.03;  // of the port's rate
  double core_step = 0.01;   // of the port's rate per window
  double core_heavy = 0.5;   // share of marks from which the delivered rate is taken for the limit
  double core_delay_rtts = 0.75;
  // Sender.
  double unscheduled = 0;        // BDP a small backlog may send before credit
  double unscheduled_large = 0;  // segments a larger backlog may send before credit
  double pace_gain = 1.25;       // of the granted rate
  double probe_rtts = 64;        // without credit for so long: send one segment
  bool phase = true;             // posted credit keeps to the phase in which it came
};

TitaParameters TitaParametersFrom(const ParameterMap& map);
std::vector<ParameterSpec> TitaParameterSpecs();

}  // namespace paceline
