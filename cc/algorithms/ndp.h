// `ndp`: Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM
// 2017: a first window unsolicited, then a pull for each packet or header that arrives, paced at line rate. Rules and
// differences: docs/cc/ndp.md. The machinery is in pull_receiver.h and pull_sender.h.
//
//   parameter      default  from
//   rate           1        of the line, paper
//   first_window   1        BDP, paper
//   probe          16       base RTTs; ours
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo NdpAlgorithm();

}  // namespace paceline
