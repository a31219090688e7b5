#!/bin/bash
# The MTU of a path shrinks under load from 1,500 to 1,000 for three seconds. The transfer goes on in fragments: at most
# 200 packets are retransmitted meanwhile, and most messages end that would have ended without.
# Status 77: not possible here (needs root).
set -u
here=$(dirname "$0")
cc=$2  # the congestion control
. "$here/common.sh"
. "$here/namespaces.sh"
. "$here/routed_namespaces.sh"
. "$here/measure.sh"
add_routers 1 1500

# count COUNTER: of the client so far.
count() { python3 "$here/counter_value.py" "$(pgrep -P $client)" "$1"; }
# Packets that $r dropped, as they were too long for the next link. Segments that the kernel carries together count as
# one.
too_long() {
  inside $r awk '/^Ip:/ { if (n) print $n; for (n = NF; n > 0 && $n != "FragFails"; --n); }' /proc/net/snmp
}

start_measuring "$cc, path MTU of 1,000 for 3 s" 198.51.101.1 v0 v0 --cc $cc --size 64K --rate 0.2 --seconds 5
sleep 0.7
before=$(count retransmits)
ended=$(count operations_completed)
inside $r ip link set p0 mtu 1000
sleep 3
after=$(count retransmits)
ended=$(($(count operations_completed) - ended))
lowered=$(count payload_limits_lowered)
inside $r ip link set p0 mtu 1500
if await_measurement; then
  report
  field "$work/r.json" "d.get('messages_not_started', 0) == 0"
  dropped=$(too_long)
  echo "$what: in the 3 s $ended messages ended, $((after - before)) packets were retransmitted, $dropped dropped by" \
    "the router"
  # 0.2 Gb/s are 1,144 of them.
  [ "$ended" -ge 800 ] || fail "$what: too few messages ended in the 3 s"
  [ "$lowered" -ge 1 ] || fail "$what: nothing went in fragments"
  [ "$dropped" -gt 0 ] || fail "$what: no packet was too long for the path"
  [ -n "$before" ] && [ -n "$after" ] || fail "$what: the counters of the client cannot be read"
  [ $((after - before)) -le 200 ] || fail "$what: more than 200 packets were retransmitted in the 3 s"
fi
finish
