// Runs in the kernel for each frame that the interface receives: UDP for the lane's address and port goes to the
// lane's socket of that receive queue, everything else, and what no lane could read (VLAN tags, IP options, fragments,
// IPv6 extension headers), to the kernel as ever. A queue without a socket goes to the kernel too. A VLAN tag that the
// card has taken out of the frame (rx-vlan-offload) is not seen here: such a frame is taken for one without.

// The headers of libbpf want those of the kernel before them.
// clang-format off
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
// clang-format on

#include "transport/lane/xdp/xdp_target.h"

#define IPV4_LENGTH_5 5       // words: no options
#define FRAGMENT_MASK 0x3fff  // "more fragments" and the offset

// Set before the program is loaded, constant from then on.
const volatile struct XdpTarget target = {0};

struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, XDP_MAX_QUEUES);
  __type(key, __u32);
  __type(value, __u32);
} sockets SEC(".maps");

static __always_inline int is_for_lane(const void *data, const void *end) {
  const struct ethhdr *ethernet = data;
  const struct udphdr *udp;
  if ((const void *)(ethernet + 1) > end) return 0;
  if (target.ip_version == 4) {
    const struct iphdr *ip = (const void *)(ethernet + 1);
    if (ethernet->h_proto != bpf_htons(ETH_P_IP) || (const void *)(ip + 1) > end) return 0;
    if (ip->version != 4 || ip->ihl != IPV4_LENGTH_5 || ip->protocol != IPPROTO_UDP) return 0;
    if (ip->frag_off & bpf_htons(FRAGMENT_MASK)) return 0;
    if (ip->daddr != target.address[0]) return 0;
    udp = (const void *)(ip + 1);
  } else {
    const struct ipv6hdr *ip = (const void *)(ethernet + 1);
    if (ethernet->h_proto != bpf_htons(ETH_P_IPV6) || (const void *)(ip + 1) > end) return 0;
    if (ip->version != 6 || ip->nexthdr != IPPROTO_UDP) return 0;
    for (int i = 0; i < 4; ++i) {
      if (ip->daddr.in6_u.u6_addr32[i] != target.address[i]) return 0;
    }
    udp = (const void *)(ip + 1);
  }
  if ((const void *)(udp + 1) > end) return 0;
  return udp->dest == target.port;
}

// cppcheck-suppress unknownMacro
SEC("xdp")
int paceline_xdp(struct xdp_md *context) {
  const void *data = (const void *)(long)context->data;
  const void *end = (const void *)(long)context->data_end;
  if (!is_for_lane(data, end)) return XDP_PASS;
  return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
}

char program_license[] SEC("license") = "Apache-2.0";
