// A poll set: which of several completion queues and counters have something.
//
// Thread rule: as its queues.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

namespace paceline::libfabric {

int OpenPoll(fid_domain* domain, fi_poll_attr* attributes, fid_poll** pollset);

}  // namespace paceline::libfabric
