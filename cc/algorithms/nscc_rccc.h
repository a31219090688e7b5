// `nscc_rccc`: both controls of the Ultra Ethernet transport at once (UEC specification 1.0, which lets a connection
// run the sender's window, the receiver's credit, or both). A sender may send what the window of `nscc` and the credit
// of `rccc` both allow; each hears every fact as if it were alone. Nothing of either is repeated here.
//
// Parameters are those of `nscc` and those of `rccc`, under the same names and with the same defaults, but for
// `core_loop`, which is off: the simulator runs it only without a window.
//
// Thread rule and ownership: as in cc/congestion_control.h; the combined sender owns one of each.
#pragma once

#include "cc/registry.h"

namespace paceline {

AlgorithmInfo NsccRcccAlgorithm();

}  // namespace paceline
