// Scalable endpoints: one address for several transmit and receive contexts, each an Endpoint of its own role. Receive
// context i listens under the number after that of context i - 1, so that who knows the endpoint's address and i knows
// where. And shared transmit contexts, which are a name only: connections are each endpoint's own.
//
// Thread rule: under the domain's guard, which the calls of libfabric's tables take.
// Ownership: contexts are the program's, who closes them first.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

namespace paceline::libfabric {

int OpenScalable(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);
int OpenSharedTransmit(fid_domain* domain, fi_tx_attr* attributes, fid_stx** shared, void* context);

}  // namespace paceline::libfabric
