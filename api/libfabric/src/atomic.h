// libfabric's calls for atomics, and what it is told of which there are.
//
// Thread rule: functions without state.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

namespace paceline::libfabric {

// As fi_query_atomic: `flags` 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC. -FI_EOPNOTSUPP: there is no such operation.
int QueryAtomic(fid_domain* domain, fi_datatype type, fi_op operation, fi_atomic_attr* attributes, uint64_t flags);

// The calls for whole messages, which deferred operations make again.
ssize_t AtomicMessage(fid_ep* endpoint, const fi_msg_atomic* message, uint64_t flags);
ssize_t FetchAtomicMessage(fid_ep* endpoint, const fi_msg_atomic* message, fi_ioc* results, void** descriptors,
                           size_t result_count, uint64_t flags);
ssize_t CompareAtomicMessage(fid_ep* endpoint, const fi_msg_atomic* message, const fi_ioc* compares, void** descriptors,
                             size_t compare_count, fi_ioc* results, void** result_descriptors, size_t result_count,
                             uint64_t flags);

extern fi_ops_atomic atomic_calls;

}  // namespace paceline::libfabric
