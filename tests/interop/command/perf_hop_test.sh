#!/bin/bash
# Two network namespaces of MTU 9000 with two routers between them whose link takes less: what passes is found out,
# nobody says it, and ICMP messages are not needed. Status 77: not possible here.
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/namespaces.sh"
. "$(dirname "$0")/routed_namespaces.sh"
add_routers 1 9000

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
  inside $r ip link set p0 mtu $mtu
  across 198.51.100.1 198.51.101.1 --size 300000 --iterations 30
  across fd00:100::1 fd00:101::1 --op write --size 300000 --iterations 30
done
mtu=1500
inside $r ip link set p0 mtu $mtu
across 198.51.100.1 198.51.101.1 --op read --size 300000 --iterations 30
finish
