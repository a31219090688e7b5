#!/bin/bash
# Two cables between two namespaces: first equal ones, then the second one is slow, behind a queue that drops nothing.
# Nothing is lost: at most 0.1 % and 1 % of the packets are retransmitted, and messages do not wait for the slow cable:
# the other one carries at least four times as much.
# Status 77: not possible here (needs root, and a kernel with htb).
set -u
here=$(dirname "$0")
cc=$2  # the congestion control
. "$here/common.sh"
. "$here/namespaces.sh"
. "$here/measure.sh"
add_cable

# slow_cable MBPS: the second one, both ways. Its queue is longer than the 16,384 packets that a connection has in
# flight at most.
slow_cable() {
  local space
  for space in $a $b; do
    inside $space tc qdisc add dev v1 root handle 1: htb default 20 &&
      inside $space tc class add dev v1 parent 1: classid 1:20 htb rate ${1}mbit burst 64k quantum 9000 &&
      inside $space tc qdisc add dev v1 parent 1:20 pfifo limit 100000 || return
  done
}

# send SHARE NAME: at most that share of the packets is retransmitted.
send() {
  measure "$cc, $2" 198.51.100.2 v0,v1 v0,v1 --cc $cc --size 64K --window 8 --seconds 0.5 && few_retransmits $1
}
send 0.001 "equal cables"
slow_cable 200 2>"$work/tc" || { echo "skipped: no queues of tc here: $(head -1 "$work/tc")"; exit 77; }
send 0.01 "one cable of 200 Mb/s"
field "$work/r.json" "all(c['port0_tx_bytes'] > 4 * c['port1_tx_bytes'] for c in d['counters'][-1:])"
finish
