#!/bin/bash
# The MTU of a path shrinks under load from 1,500 to 1,000 for three seconds. At most 200 packets are retransmitted
# meanwhile, and the transfer goes on afterwards.
# Status 77: not possible here (needs root).
set -u
here=$(dirname "$0")
cc=$2  # the congestion control
. "$here/common.sh"
. "$here/namespaces.sh"
. "$here/routed_namespaces.sh"
. "$here/measure.sh"
add_routers 1 1500

# Of the client so far.
retransmits() { python3 "$here/counter_value.py" "$(pgrep -P $client)" retransmits; }
# Packets that $r dropped, as they were too long for the next link. Segments that the kernel carries together count as
# one.
too_long() {
  inside $r awk '/^Ip:/ { if (n) print $n; for (n = NF; n > 0 && $n != "FragFails"; --n); }' /proc/net/snmp
}

start_measuring "$cc, path MTU of 1,000 for 3 s" 198.51.101.1 v0 v0 --cc $cc --size 64K --rate 0.2 --seconds 4.2
sleep 0.7
before=$(retransmits)
inside $r ip link set p0 mtu 1000
sleep 3
after=$(retransmits)
inside $r ip link set p0 mtu 1500
if await_measurement; then
  report
  field "$work/r.json" "d.get('messages_not_started', 0) == 0"
  dropped=$(too_long)
  echo "$what: $((after - before)) packets retransmitted in the 3 s, $dropped dropped by the router"
  [ "$dropped" -gt 0 ] || fail "$what: no packet was too long for the path"
  [ -n "$before" ] && [ -n "$after" ] || fail "$what: the counters of the client cannot be read"
  [ $((after - before)) -le 200 ] || fail "$what: more than 200 packets were retransmitted in the 3 s"
fi
finish
