// `fixed_window`: a constant window in bandwidth-delay products of the pair, paced at the port's rate. What a plain
// reliable connection of a network card does without congestion control. See docs/cc/fixed_window.md.
//
//   window = max(window_bdp * BDP, 1 segment),  BDP = link rate * base round trip in payload bytes
//
//   parameter   default  from
//   window_bdp  1.0      the least window that fills an empty path
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo FixedWindowAlgorithm();

}  // namespace paceline
