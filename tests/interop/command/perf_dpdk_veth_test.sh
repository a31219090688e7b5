#!/bin/bash
# The dpdk lane over net_af_packet, on a virtual cable between two network namespaces: frames that leave the process,
# with ARP and neighbour discovery on the wire.
# Status 77: not possible here (needs DPDK, and the right to make network namespaces and to open packet sockets).
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/namespaces.sh"

"$paceline" info | grep -q 'yes *dpdk' || { echo "skipped: no DPDK: $("$paceline" info | grep ' dpdk ')"; exit 77; }
export PACELINE_KEY_FILE=none
# As in perf_dpdk_test.sh.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

between() {
  local own=$1 peer=$2 server status=0
  shift 2
  inside $a "$paceline" perf server --lane dpdk --device "net_af_packet0,iface=v0,address=$own" >"$work/server" 2>&1 &
  server=$!
  inside $b "$paceline" perf client 198.51.100.1 --lane dpdk --device "net_af_packet0,iface=v0,address=$peer" \
    --json "$work/r.json" "$@" >"$work/client" 2>&1 || { status=$?; kill $server; }
  wait $server || status=$?
  [ $status -eq 0 ] || { fail "between namespaces, $*"; cat "$work/server" "$work/client" >&2; }
  field "$work/r.json" "d['verified']"
}
between 192.0.2.1/24 192.0.2.2/24 --size 200000 --iterations 50
between 192.0.2.1/24 192.0.2.2/24 --op read --size 64 --iterations 200
between fd00::1/64 fd00::2/64 --op write --size 200000 --iterations 50
finish
