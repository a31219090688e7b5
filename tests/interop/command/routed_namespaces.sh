# Two routers $r and $q between the namespaces $a and $b, joined by links p0, p1, ...; the routers choose a link by the
# addresses and ports of a packet. v0 of $a is 198.51.100.1 and fd00:100::1, v0 of $b 198.51.101.1 and fd00:101::1. Ends
# the script with status 77 where that is not possible. Behind namespaces.sh.

r=pcr$$ q=pcq$$

# add_routers LINKS MTU
add_routers() {
  local links=$1 mtu=$2 space router network i to_a=() to_b=() to_a6=() to_b6=()
  trap 'for space in $a $b $r $q; do ip netns del $space; done; rm -rf "$work"' EXIT
  ip netns add $r
  ip netns add $q
  inside $a ip link del v0  # both ends of the cable that is there
  ip link add v0 netns $a type veth peer name v0 netns $r
  ip link add v0 netns $b type veth peer name v0 netns $q
  for ((i = 0; i < links; ++i)); do
    ip link add p$i netns $r type veth peer name p$i netns $q
    inside $r ip addr add 203.0.113.$((4 * i + 1))/30 dev p$i
    inside $q ip addr add 203.0.113.$((4 * i + 2))/30 dev p$i
    inside $r ip -6 addr add fd00:2:$i::1/64 dev p$i nodad
    inside $q ip -6 addr add fd00:2:$i::2/64 dev p$i nodad
    for router in $r $q; do inside $router ip link set p$i mtu $mtu up; done
    to_b+=(nexthop via 203.0.113.$((4 * i + 2)))
    to_a+=(nexthop via 203.0.113.$((4 * i + 1)))
    to_b6+=(nexthop via fd00:2:$i::2)
    to_a6+=(nexthop via fd00:2:$i::1)
  done
  for space in $a:$r:100 $b:$q:101; do
    IFS=: read -r space router network <<<"$space"
    inside $router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
      net.ipv4.fib_multipath_hash_policy=1 || { echo "skipped: no routing"; exit 77; }
    inside $space ip addr add 198.51.$network.1/24 dev v0
    inside $space ip -6 addr add fd00:$network::1/64 dev v0 nodad
    inside $router ip addr add 198.51.$network.254/24 dev v0
    inside $router ip -6 addr add fd00:$network::254/64 dev v0 nodad
    inside $space ip link set v0 mtu $mtu up
    inside $router ip link set v0 mtu $mtu up
    inside $space ip route add default via 198.51.$network.254
    inside $space ip -6 route add default via fd00:$network::254
  done
  inside $r ip route add 198.51.101.0/24 "${to_b[@]}" || { echo "skipped: no routes over several links"; exit 77; }
  inside $q ip route add 198.51.100.0/24 "${to_a[@]}"
  inside $r ip -6 route add fd00:101::/64 "${to_b6[@]}"
  inside $q ip -6 route add fd00:100::/64 "${to_a6[@]}"
  sleep 0.2
}
