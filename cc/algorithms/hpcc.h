// `hpcc`: High Precision Congestion Control (Li et al., SIGCOMM 2019, algorithm 1). Every switch port on the way writes
// its queue, its count of bytes sent, its clock and its rate into the packet (transport/base/telemetry.h); the receiver
// returns them, and the sender keeps the inflight bytes of the busiest link at `eta` of a bandwidth-delay product.
//
//   of each link   u' = min(queue, queue before) / (B T) + (bytes sent since before) / (time since before) / B
//   u = max u',  t = min(its time since before, T)        U <- (1 - t/T) U + t/T u
//   U >= eta or stage >= max_stage     W = Wc / (U / eta) + w_ai        multiplicative
//   else                               W = Wc + w_ai                    additive
//   when a packet sent after the last such moment is acknowledged: Wc = W; stage = 0 or stage + 1
//   pacing rate   W / T
//
//   parameter  default  from
//   eta        0.95     paper, section 3.3 and 5.1
//   max_stage  5        the same
//   w_ai       80       bytes: section 5.1 (section 3.3: W_init (1 - eta) / N; 87 for N = 100 on the study's fabric)
//
// Different from the paper: what was heard before is kept per link instead of per hop, so that it also works when
// packets take several paths (then u is of the links of the newest packet, each compared with its own last word); see
// docs/cc/hpcc.md.
//
// Thread rule and ownership: as in cc/congestion_control.h. Windows are payload bytes, link counts wire bytes.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo HpccAlgorithm();

}  // namespace paceline
