// `timely`: rate by the gradient of the round-trip time. Mittal et al., "TIMELY: RTT-based Congestion Control for the
// Datacenter", SIGCOMM 2015, section 4 (Algorithm 1), with the published code's scaling by the time between samples;
// and its repair in Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016,
// section 4.3 (Algorithm 2), as a variant. See docs/cc/timely.md for constants and differences.
//
//   s = min(time since the last sample / base RTT, 1);   gradient = average of (RTT - previous RTT) / base RTT
//   RTT < t_low        rate += s * delta
//   RTT > t_high       rate *= 1 - s * beta * (1 - t_high / RTT)
//   between, `paper`   gradient <= 0: rate += n * s * delta, n = hai_steps from the hai_after-th sample in a row on
//                      that did not rise, else 1;   gradient > 0: rate *= 1 - beta * gradient
//   between, `patched` w = clamp(2 * gradient + 1/2, 0, 1);  e = (RTT - t_low) / t_low
//                      rate = s * (1 - w) * delta + rate * (1 - s * beta_patched * w * e)
//   no step takes more than half of the rate; timeout: rate = min_rate
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo TimelyAlgorithm();

}  // namespace paceline
