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
//   alpha timer     55 us     1 us      paper, section 3.1 (K); HPCC authors' run.py, "dcqcn"
//   decrease        50 us     4 us      paper, section 3.1 (a CNP in 50 us); run.py. Least time between two decreases
//   increase timer  55 us     300 us    paper, section 5 (T); run.py
//   F               5         2         paper, section 5; run.py's 1, where a step counts once it is taken
//   byte counter    10 MB     none      paper, section 5 (B); run.py has none
//   g               1/256     1/256     paper, section 5; run.py
//   rai             1/1000    1/5000    of the link rate. Paper: R_AI = 40 Mb/s at 40 Gb/s; run.py: 5 Mb/s for each
//                                       25 Gb/s
//   rhai            1/200     1/500     of the link rate. 200 Mb/s at 40 Gb/s in the simulator that the paper's first
//                                       author published (ns3-rdma, mix/config.txt), as the paper's text has no
//                                       number; run.py: 50 Mb/s for each 25 Gb/s
//   cnp_interval    50 us     4 us      paper, section 3.1; for "vendor" no longer than the decrease interval
//   min_rate        1 % of the link rate      run.py: 1 Gb/s at 100 Gb/s; the paper has none
//
// Marking belongs to it (paper, section 5, at 40 Gb/s): Kmin 5 KB, Kmax 200 KB, Pmax 1 %.
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
