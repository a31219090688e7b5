#!/bin/bash
# Two network namespaces joined by a virtual cable, with packets dropped in the kernel by nftables where it is there.
# Status 77: not possible here (needs the right to make network namespaces).
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/namespaces.sh"

between() {
  inside $a "$paceline" perf server --device v0 >"$work/server" 2>&1 &
  local server=$! status=0
  inside $b "$paceline" perf client 198.51.100.1 --device 198.51.100.2 --json "$work/r.json" "$@" \
    >"$work/client" 2>&1 || { status=$?; kill $server; }
  wait $server || status=$?
  [ $status -eq 0 ] || { fail "between namespaces, $*"; cat "$work/server" "$work/client" >&2; }
  field "$work/r.json" "d['verified']"
}
between --size 200000 --iterations 50
between --op write --size 200000 --iterations 50
between --op read --size 64 --iterations 200

# Who names no device is told why the other machine is not reached.
inside $a ip link set lo up
inside $b ip link set lo up
inside $a "$paceline" perf server --listen 198.51.100.1 >"$work/server" 2>&1 &
server=$!
inside $b "$paceline" perf client 198.51.100.1 >"$work/client" 2>&1 && fail "reached without --device"
grep -q "without --device or PACELINE_BIND" "$work/client" || fail "no advice: $(cat "$work/client")"
kill $server 2>/dev/null
wait $server 2>/dev/null

if inside $a nft -f - 2>"$work/nft" <<RULES
table inet paceline {
  chain drops {
    type filter hook input priority 0
    meta l4proto udp numgen random mod 100 < 3 drop
  }
}
RULES
then
  between --size 200000 --iterations 50
  field "$work/r.json" "d['retransmits'] > 0"
else
  echo "without drops: nftables is not usable here: $(head -1 "$work/nft")"
fi
finish
