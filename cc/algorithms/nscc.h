// `nscc`: network-signal congestion control, the sender's window of Ultra Ethernet (UEC specification 1.0, congestion
// management sublayer; constants as the public uet-htsim simulator sets them). Two signals, four answers: d is the
// delay that queues added to the newest round trip, tau the target.
//
//                 no ECN mark                                     ECN mark
//   d <  tau      grow in proportion to tau - d                   nothing (another path is the answer)
//   d >= tau      grow a little, the same for all flows           at most once per round trip, by the averaged delay:
//                                                                 cwnd *= max(1 - gamma * (d - tau) / d, 1 - max_md)
//   packet trimmed or found lost      cwnd -= its bytes
//   quick adapt                       in a period of base RTT + tau less than max_cwnd * qa_gate arrived, and there was
//                                     a loss or d > qa_delay * tau: cwnd = what arrived; what was in flight then is
//                                     heard no more
//
// Growth is collected and added every 8 segments or network round trip; parameters, scaling and differences from the
// source are on the page docs/cc/nscc.md.
//
// Thread rule and ownership: as in cc/congestion_control.h. Windows and counts are payload bytes, delays nanoseconds.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo NsccAlgorithm();

}  // namespace paceline
