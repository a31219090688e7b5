// Aliases of endpoints: the same queues, peers and operations under another handle, where calls without flags have
// other flags.
//
// Thread rule: any thread; takes the domain's guard.
#pragma once

#include <rdma/fabric.h>

#include "api/libfabric/src/endpoint.h"

namespace paceline::libfabric {

// As fi_control(endpoint, FI_ALIAS): `asked.flags` are FI_TRANSMIT or FI_RECV, and the flags of that side. Until the
// alias is closed, closing the endpoint answers -FI_EBUSY.
int OpenAlias(Endpoint* endpoint, const struct fi_alias& asked);

}  // namespace paceline::libfabric
