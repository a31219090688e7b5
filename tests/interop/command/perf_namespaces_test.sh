#!/bin/bash
# Two network namespaces joined by a virtual cable, with packets dropped in the kernel by nftables where it is there.
# Status 77: not possible here (needs the right to make network namespaces).
set -u
. "$(dirname "$0")/common.sh"

a=pcl$$a b=pcl$$b
if ! ip netns add $a 2>/dev/null; then
  echo "skipped: no right to make network namespaces"
  exit 77
fi
trap 'ip netns del $a; ip netns del $b; rm -rf "$work"' EXIT
ip netns add $b
ip link add v0 netns $a type veth peer name v0 netns $b || { echo "skipped: no veth"; exit 77; }
# As `ip netns exec` and `ip -n`, which fail where / is not a mount of its own (chroot).
inside() {
  local space=$1
  shift
  timeout 60 nsenter --net=/run/netns/$space "$@"
}

inside $a ip addr add 198.51.100.1/24 dev v0
inside $b ip addr add 198.51.100.2/24 dev v0
for space in $a $b; do inside $space ip link set v0 up; done
sleep 0.2

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
