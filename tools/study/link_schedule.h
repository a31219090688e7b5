// The least time in which one link can serve transmissions that each arrive at a time of their own and have a time of
// their own left to go behind the link.
//
// It is the largest of (earliest head + services + shortest tail) over all sets of transmissions. No order in which the
// link sends them can beat it; serving the longest tail among those that have arrived, with preemption, reaches it
// (J. R. Jackson, "Scheduling a Production Line to Minimize Maximum Tardiness", UCLA, 1955; J. Carlier, "The
// one-machine sequencing problem", European Journal of Operational Research 11, 1982).
//
// Thread rule: pure function. Times are picoseconds.
#pragma once

#include <span>

#include "transport/lane/sim/sim_time.h"

namespace paceline::tools {

struct Transmission {
  sim::Picos head = 0;  // when the link can begin with it at the earliest
  double service = 0;   // how long the link needs for it
  sim::Picos tail = 0;  // from its last bit on the link until it counts as done
};

// When the last of them can be done at the earliest; 0 of none. `by_head`: in ascending order of head.
sim::Picos EarliestEnd(std::span<const Transmission> by_head);

}  // namespace paceline::tools
