// What ConnectX cards can beyond libibverbs, through libmlx5, which is loaded at run time as libibverbs is.
//
// Thread rule: SetMlx5UdpPort may be called from any thread; control path only (the first call loads the library).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace paceline {

// Sets the UDP source port of a connected queue pair that is ready to send, as mlx5dv_modify_qp_udp_sport does. 0, or
// why not: EOPNOTSUPP also for cards of others, without the library or where it is too old, and in builds without its
// header.
int SetMlx5UdpPort(ibv_qp* qp, uint16_t port);

}  // namespace paceline
