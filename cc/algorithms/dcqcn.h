// `dcqcn`: rate control by ECN marks, with timers. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
// SIGCOMM 2015, section 3 (reaction point and figure 7) and section 5 (constants). See docs/cc/dcqcn.md.
//
//   on a notification (CNP)   target = rate;  rate *= 1 - alpha / 2;  alpha = (1 - g) * alpha + g
//                             stages, byte counter and increase timer start again
//   alpha timer (no CNP)      alpha = (1 - g) * alpha
//   increase timer, or every byte_counter bytes:  its stage += 1, then
//     both stages < F         rate = (target + rate) / 2                                  fast recovery
//     both stages > F         target += rhai;  rate = (target + rate) / 2                 hyper increase
//     otherwise               target += rai;   rate = (target + rate) / 2                 additive increase
//
//   parameter       "paper"   "vendor"  from
//   alpha timer     50 us     1 us      HPCC authors' run.py, "dcqcn_paper" and "dcqcn"
//   decrease        50 us     4 us      the same: least time between two decreases, CNPs within it are merged
//   increase timer  55 us     300 us    the same
//   F               5         2         paper, section 5; run.py's 1, where a step counts once it is taken
//   byte counter    10 MB     none      paper, section 5; the other has none
//   g               1/256     1/256     paper, section 5
//   rai             0.02 % of the link rate   HPCC authors' run.py: 5 Mb/s for each 25 Gb/s
//   rhai            0.2 % of the link rate    HPCC authors' run.py: 50 Mb/s for each 25 Gb/s
//   cnp_interval    50 us     4 us      paper, section 3.1; for "vendor" no longer than the decrease interval
//   min_rate        1 % of the link rate      HPCC authors' run.py: 1 Gb/s at 100 Gb/s
//
// Different from the paper: the receiver sends no CNP packet, an acknowledgement that reports marks stands for one (at
// most one in cnp_interval). Loss is not a signal; the paper runs on a lossless network. A timeout starts the flow
// again at the least rate, so that a blackout does not meet it at full rate. It has no window.
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo DcqcnAlgorithm();

}  // namespace paceline
