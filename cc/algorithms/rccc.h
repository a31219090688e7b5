// `rccc`: receiver credit congestion control of the Ultra Ethernet transport, as its specification outlines it and the
// public simulator runs it. Rules, constants and differences: docs/cc/rccc.md. The machinery is in pull_receiver.h and
// pull_sender.h.
//
//   parameter      default  from
//   rate           0.99     of the line, the simulator's pull pacer
//   first_window   1.5      BDP, the simulator's setting
//   window         1.5      BDP, the same: most that a sender asks for
//   pull_segments  4        MTU per pull, specification
//   quantum        256      bytes, unit of pull numbers, specification
//   divide_demand  true     the simulator: a sender asks for its window divided by the active flows of its port
//   idle_credit    1.5      BDP, the same
//   core_loop      true     the simulator, where a tier is oversubscribed
//   oversubscription 1      of the core; taken from the port where it states a core rate
//   core_*                  the simulator's constants, see pull_core_loop.h
//   probe          16       base RTTs; ours
//
// Thread rule and ownership: as in cc/congestion_control.h.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo RcccAlgorithm();

}  // namespace paceline
