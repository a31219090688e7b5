// What tells the receiver-driven pull schemes (`rccc`, `eqds`, `ndp`) apart, and what the two sides of one port share.
// The machinery is the same for all: pull_receiver.h and pull_sender.h.
//
// Words: a *pull* is a grant of a fixed number of bytes to one sender. The *first window* is what a sender may send
// before it was granted anything. *Speculative* is what the sender sends out of it.
//
// Thread rule: values; the endpoint's thread.
#pragma once

#include <cstdint>

#include "cc/algorithms/bdp.h"
#include "cc/algorithms/pull_core_loop.h"
#include "cc/congestion_control.h"

namespace paceline {

struct PullRules {
  double rate = 1;           // of the line: all pulls of a port, in wire bytes
  double first_window = 1;   // BDP
  double window = 1;         // BDP: how far one sender may be pulled ahead
  double pull_segments = 1;  // of one pull
  uint64_t quantum = 1;      // bytes; a pull is a multiple of it
  double probe_rtts = 16;    // a sender without credit for so long sends one segment without
  double idle_credit = 0;    // BDP: beyond what a sender asks for, while nobody asks
  // true: a pull for each segment that arrived or was trimmed. false: pulls for what the sender asks for.
  bool per_arrival = false;
  bool drop_first_window = false;  // the first news from the receiver ends the first window
  bool divide_demand = false;      // each sender asks for its part only: divided by the active flows of its port
  bool retransmit_first = false;   // senders with trimmed packets come first
  bool exact_pulls = false;        // a pull is no larger than what was asked for
  bool core_loop = false;          // where the core is oversubscribed
  double oversubscription = 1;     // of the core, as far as the port does not state it
  PullCoreLoopParameters core;
};

// Sizes in payload bytes of one pair.
struct PullSizes {
  PullSizes() = default;
  PullSizes(const PullRules& rules, const PortInfo& port, const FlowInfo& flow)
      : rtt(BaseRtt(port, flow)),
        bdp(BdpBytes(port, rtt)),
        first_window(BdpScaled(port, rtt, rules.first_window)),
        window(BdpScaled(port, rtt, rules.window)) {}

  Duration rtt;
  uint64_t bdp = 0, first_window = 0, window = 0;
};

// What the senders of one port have in common.
struct PullPort {
  uint32_t active_flows = 0;  // have a backlog and credit for some of it
};

}  // namespace paceline
