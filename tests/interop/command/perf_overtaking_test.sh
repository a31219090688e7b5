#!/bin/bash
# A router that lets packets of at most 300 bytes overtake longer ones, as routers that prefer acknowledgements do, in
# front of a link with a deep queue. Nothing is lost: at most 1 % of the packets are retransmitted.
# Status 77: not possible here (needs root, and a kernel with htb and nftables).
set -u
here=$(dirname "$0")
cc=$2  # the congestion control
. "$here/common.sh"
. "$here/namespaces.sh"
. "$here/routed_namespaces.sh"
. "$here/measure.sh"
add_routers 1 1500

# link MBPS: the rate of the link from $r to $q. Short packets have a queue of their own, which is served first. Both
# queues are longer than the 16,384 packets that a connection has in flight at most.
link() {
  inside $r tc qdisc del dev p0 root 2>/dev/null
  inside $r tc qdisc add dev p0 root handle 1: htb default 20 &&
    inside $r tc class add dev p0 parent 1: classid 1:1 htb rate ${1}mbit burst 16k quantum 9000 &&
    inside $r tc class add dev p0 parent 1:1 classid 1:10 htb rate $(($1 / 4))mbit ceil ${1}mbit prio 0 quantum 9000 &&
    inside $r tc class add dev p0 parent 1:1 classid 1:20 htb rate $(($1 - $1 / 4))mbit ceil ${1}mbit prio 7 burst 16k \
      quantum 9000 &&
    inside $r tc qdisc add dev p0 parent 1:10 pfifo limit 100000 &&
    inside $r tc qdisc add dev p0 parent 1:20 pfifo limit 100000
}
link 20 2>"$work/tc" || { echo "skipped: no queues of tc here: $(head -1 "$work/tc")"; exit 77; }

# send MBPS NAME
send() {
  link $1
  measure "$cc, $1 Mb/s, $2" 198.51.101.1 v0 v0 --cc $cc --size 64K --window 16 --warmup 2 --seconds 0.4 &&
    few_retransmits 0.01
}
send 100 "in order"
inside $r nft -f - 2>"$work/nft" <<'RULES' || { echo "skipped: no nftables: $(cat "$work/nft")"; exit 77; }
table inet paceline {
  chain short {
    type filter hook postrouting priority 0
    meta length 0-300 meta priority set "1:10"
  }
}
RULES
for mbps in 20 100 500; do send $mbps "short packets overtake"; done
finish
