#!/bin/bash
# Two network namespaces of MTU 9000 with a router between them whose other link takes less: what passes is found out,
# nobody says it, and ICMP messages are not needed. Status 77: not possible here.
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/namespaces.sh"
r=pcr$$
trap 'ip netns del $a; ip netns del $b; ip netns del $r; rm -rf "$work"' EXIT
ip netns add $r
inside $a ip link del v0  # both ends of the cable that is there
ip link add v0 netns $a type veth peer name ra netns $r || { echo "skipped: no veth"; exit 77; }
ip link add v0 netns $b type veth peer name rb netns $r
attach() {  # SPACE NETWORK ROUTER-SIDE
  inside $1 ip addr add 198.51.$2.1/24 dev v0
  inside $1 ip -6 addr add fd00:$2::1/64 dev v0 nodad
  inside $r ip addr add 198.51.$2.254/24 dev $3
  inside $r ip -6 addr add fd00:$2::254/64 dev $3 nodad
  inside $1 ip link set v0 mtu 9000 up
  inside $r ip link set $3 mtu 9000 up
  inside $1 ip route add default via 198.51.$2.254
  inside $1 ip -6 route add default via fd00:$2::254
}
inside $r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 || { echo "skipped: no routing"; exit 77; }
attach $a 100 ra
attach $b 101 rb
sleep 0.2

# across ADDRESS-OF-A ADDRESS-OF-B ARGUMENTS...
across() {
  local to=$1 from=$2 status=0
  shift 2
  inside $a "$paceline" perf server --listen "$to" --device "$to" >"$work/server" 2>&1 &
  local server=$!
  inside $b "$paceline" perf client "$to" --device "$from" --json "$work/r.json" "$@" >"$work/client" 2>&1 ||
    { status=$?; kill $server; }
  wait $server || status=$?
  [ $status -eq 0 ] || { fail "over a hop, $*"; cat "$work/server" "$work/client" >&2; }
  field "$work/r.json" "d['verified']"
  # Payload of a packet, over all of them: nearly the MTU less 96 bytes of ours and the headers of IP and UDP.
  field "$work/r.json" "0.8 * $mtu < max(c['tx_data_bytes'] / c['tx_data_packets'] for c in d['counters']) < $mtu - 48"
}
for mtu in 9000 1500 1400 8942; do
  inside $r ip link set rb mtu $mtu
  across 198.51.100.1 198.51.101.1 --size 300000 --iterations 30
  across fd00:100::1 fd00:101::1 --op write --size 300000 --iterations 30
done
mtu=1500
inside $r ip link set rb mtu $mtu
across 198.51.100.1 198.51.101.1 --op read --size 300000 --iterations 30
finish
