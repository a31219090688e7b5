// The fabric: libfabric's root object. It holds the requests for connections that wait for an answer, as that may come
// from any domain.
//
// Thread rule: any thread.
#pragma once

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include "api/libfabric/src/request.h"

namespace paceline::libfabric {

int OpenFabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

Requests& RequestsOf(fid_fabric* fabric);

const fi_provider* Provider();  // for messages

}  // namespace paceline::libfabric
