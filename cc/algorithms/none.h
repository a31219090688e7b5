// `none`: no congestion control. Every flow may send at the port's rate with no window of its own; only the bounds of
// the protocol core hold it. The baseline that shows what the others are for. See docs/cc/none.md.
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo NoneAlgorithm();

}  // namespace paceline
