// libfabric's calls for atomics: none is offered yet, and every question says so.
//
// Thread rule: functions without state.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

namespace paceline::libfabric {

int QueryAtomic(fid_domain* domain, fi_datatype type, fi_op operation, fi_atomic_attr* attributes, uint64_t flags);

extern fi_ops_atomic atomic_calls;

}  // namespace paceline::libfabric
