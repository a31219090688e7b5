# Makes the link p3 between the routers $r and $q drop all UDP packets, both ways, while its interfaces stay up. TCP
# passes, as the two processes of a measurement need it. Behind routed_namespaces.sh.

# Ends the script with status 77 where there is no nftables.
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
