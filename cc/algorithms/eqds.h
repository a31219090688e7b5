// `eqds`: Olteanu et al., "An edge-queued datagram service for all datacenter traffic", NSDI 2022, with the constants
// of the authors' public simulator. Rules and differences: docs/cc/eqds.md. The machinery is in pull_receiver.h and
// pull_sender.h.
//
//   parameter      default  from
//   rate           0.99     of the line, the simulator's pull pacer
//   first_window   1        BDP, paper
//   window         1        BDP, paper
//   pull_segments  1        one MTU per pull, paper
//   idle_credit    1        BDP, paper
//   probe          16       base RTTs; ours
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo EqdsAlgorithm();

}  // namespace paceline
