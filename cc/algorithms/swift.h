// `swift`: window control by delay. Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
// Datacenter", SIGCOMM 2020, section 3 (Algorithm 1, target delay scaling in 3.1 and 3.5). See docs/cc/swift.md.
//
//   delay < target           cwnd += ai * acked / cwnd      (cwnd >= 1; below: += ai * acked)
//   delay >= target          cwnd *= max(1 - beta * (delay - target) / delay, 1 - max_mdf)     once per round trip
//   gap, trim                cwnd *= 1 - max_mdf                                               once per round trip
//   timeout                  the same; cwnd = min_cwnd after 5 in a row without an acknowledgement
//   target = base_target * base RTT + clamp(a / sqrt(cwnd) + b, 0, fs_range)
//     a = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)),  b = -a / sqrt(fs_max_cwnd)
//   cwnd < 1                 one segment in flight, paced at cwnd segments per round trip
//
//   parameter    default  from
//   ai           1.0      segments a round trip, section 3.2
//   beta         0.8      the public htsim model of Swift
//   max_mdf      0.5      the public htsim model of Swift
//   base_target  1.25     base RTTs; ours (topology scaling is in it, see below)
//   fs_range     1.0      base RTTs; ours
//   fs_min_cwnd  0.1      segments, section 3.5 / htsim
//   fs_max_cwnd  100      segments, section 3.5 / htsim
//   min_cwnd     0.01     segments; ours
//   max_cwnd     2.0      BDP; ours
//   initial_cwnd 1.0      BDP; ours
//
// Different from the paper: hops are not seen, so that scaling by topology comes from the pair's measured base RTT,
// which grows with its hops; there is no separate endpoint window (the core takes the receiver's delay out of the
// sample); the window grows only while it is what limits the flow.
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo SwiftAlgorithm();

}  // namespace paceline
