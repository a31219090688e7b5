/* What the program in the kernel takes for a lane; shared by xdp_program.bpf.c, which is C for the kernel, and the code
 * that loads it. */
#ifndef PACELINE_TRANSPORT_LANE_XDP_XDP_TARGET_H_
#define PACELINE_TRANSPORT_LANE_XDP_XDP_TARGET_H_

#include <linux/types.h>

#define XDP_MAX_QUEUES 64 /* receive queues of an interface that a lane uses at most */

struct XdpTarget {
  __u32 address[4]; /* network order; IPv4: the first word */
  __u16 port;       /* network order */
  __u16 ip_version; /* 4 or 6 */
};

#endif  // PACELINE_TRANSPORT_LANE_XDP_XDP_TARGET_H_
