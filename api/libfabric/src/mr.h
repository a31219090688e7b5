// Registered memory, under a key of the program's choice, or where it leaves that to us a random one; named by offsets
// from its start or by its addresses.
//
// Thread rule: under the domain's guard, which the calls of libfabric's tables take.
#pragma once

#include <rdma/fi_domain.h>

namespace paceline::libfabric {

extern fi_ops_mr memory_calls;

}  // namespace paceline::libfabric
