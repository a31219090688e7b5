// The fabric: libfabric's root object. It holds nothing of its own.
//
// Thread rule: any thread.
#pragma once

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

namespace paceline::libfabric {

int OpenFabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

const fi_provider* Provider();  // for messages

}  // namespace paceline::libfabric
