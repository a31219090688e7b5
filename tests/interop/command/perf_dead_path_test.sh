#!/bin/bash
# Four links between two routers, which choose one by the UDP ports, so that a connection uses several of them. One link
# then drops all UDP packets, both ways, while its interfaces stay up: all messages arrive, and new connections are made.
# Prints the times with and without.
# Status 77: not possible here (needs root, routes over several links, and nftables).
set -u
here=$(dirname "$0")
. "$here/common.sh"
. "$here/namespaces.sh"
. "$here/routed_namespaces.sh"
. "$here/measure.sh"
. "$here/dead_link.sh"
add_routers 4 1500

# At a rate, so there is no latency part, in which both processes of a plain write look into their memory all the time.
# Messages that are held up too long are not started, which fails the test.
send_messages() {
  start_measuring "$1, $2" 198.51.101.1 v0 v0 --op $1 --size 256K --rate 1 --seconds 1.5 --warmup 0 --window 8
}
await_messages() {
  await_measurement || return
  report
  python3 -c "import json
print('  slowest message:', round(json.load(open('$work/r.json'))['latency_us']['max']), 'us')"
  field "$work/r.json" "d.get('messages_not_started', 0) == 0"
}
under_way() {
  local tries
  for tries in {1..50}; do
    [ "$(python3 "$here/counter_value.py" "$(pgrep -P $client)" connections_opened 2>/dev/null)" = 1 ] && return
    sleep 0.05
  done
  fail "$what: no connection after 50 looks"
}

for op in send write read; do send_messages $op "four links" && await_messages; done

most_dropped=0
for op in send write read; do
  send_messages $op "one of four links dies"
  under_way
  sleep 0.4
  kill_link
  await_messages
  [ "$(dropped)" -le $most_dropped ] || most_dropped=$(dropped)
  revive_link
done
# Each connection has ports of its own, so its first request takes the dead link by chance, there or back.
kill_link
for attempt in {1..8}; do
  measure "connection $attempt beside a dead link" 198.51.101.1 v0 v0 --op send --size 8 --iterations 10 --warmup 0
done
revive_link

[ $most_dropped -gt 0 ] || fail "no packet was sent through the dead link"
finish
