#!/bin/bash
# Four links between two routers, which choose one by the UDP ports, so that a connection uses several of them. One link
# then drops all UDP packets, both ways, while its interfaces stay up: all messages arrive, over old connections and new
# ones. TCP passes, as the two processes of a measurement need it. Prints the time with and without.
# Status 77: not possible here (needs root, routes over several links, and nftables).
set -u
here=$(dirname "$0")
. "$here/common.sh"
. "$here/namespaces.sh"
. "$here/routed_namespaces.sh"
. "$here/measure.sh"
add_routers 4 1500

kill_link() {
  local router
  for router in $r $q; do
    inside $router nft -f - 2>"$work/nft" <<'RULES' || { echo "skipped: no nftables: $(cat "$work/nft")"; exit 77; }
table inet paceline {
  counter dropped { }
  chain arriving {
    type filter hook prerouting priority -300
    iifname "p3" meta l4proto udp counter name dropped drop
  }
}
RULES
  done
}
revive_link() { for router in $r $q; do inside $router nft delete table inet paceline; done; }
dropped() {
  for router in $r $q; do inside $router nft list counter inet paceline dropped; done |
    awk '$1 == "packets" { sum += $2 } END { print sum + 0 }'
}

arguments=(--size 256K --iterations 600 --warmup 0 --window 8)
for op in send write read; do
  measure "$op, four links" 198.51.101.1 v0 v0 --op $op "${arguments[@]}" && report
done

most_dropped=0
for op in send write read; do
  start_measuring "$op, one of four links dies" 198.51.101.1 v0 v0 --op $op "${arguments[@]}"
  sleep 0.4
  kill_link
  await_measurement && report
  [ "$(dropped)" -le $most_dropped ] || most_dropped=$(dropped)
  revive_link
done
[ $most_dropped -gt 0 ] || fail "no packet was sent through the dead link"

kill_link
for number in 1 2 3 4 5 6; do
  measure "connection $number, one of four links is dead" 198.51.101.1 v0 v0 --size 64K --iterations 20
done
finish
