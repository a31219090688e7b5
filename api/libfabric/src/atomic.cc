#include "api/libfabric/src/atomic.h"

#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {

int QueryAtomic(fid_domain*, fi_datatype, fi_op, fi_atomic_attr*, uint64_t) { return -FI_EOPNOTSUPP; }

fi_ops_atomic atomic_calls = {
    .size = sizeof(fi_ops_atomic),
    .write = NotSupported(),
    .writev = NotSupported(),
    .writemsg = NotSupported(),
    .inject = NotSupported(),
    .readwrite = NotSupported(),
    .readwritev = NotSupported(),
    .readwritemsg = NotSupported(),
    .compwrite = NotSupported(),
    .compwritev = NotSupported(),
    .compwritemsg = NotSupported(),
    .writevalid = [](fid_ep*, fi_datatype, fi_op, size_t*) { return -FI_EOPNOTSUPP; },
    .readwritevalid = [](fid_ep*, fi_datatype, fi_op, size_t*) { return -FI_EOPNOTSUPP; },
    .compwritevalid = [](fid_ep*, fi_datatype, fi_op, size_t*) { return -FI_EOPNOTSUPP; },
};

}  // namespace paceline::libfabric
