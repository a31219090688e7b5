#!/bin/bash
# Two network namespaces joined by two virtual cables, of which one is pulled under load and put back: no operation
# fails, the other cable carries all of them meanwhile, and when it is back it carries data again. How much of them depends
# on which of the two sockets a busy machine lets overflow.
# Prints the shares and how long the pull was felt, in least retransmission time-outs too; PortsTest judges both in virtual
# time.
# Status 77: not possible here (needs the right to make network namespaces).
set -u
here=$(dirname "$0")
. "$here/common.sh"
. "$here/namespaces.sh"

add_cable

for op in send write; do
  inside $a "$paceline" perf server --device v0,v1 >"$work/server" 2>&1 &
  server=$!
  inside $b "$paceline" perf client 198.51.100.1 --device v0,v1 --op $op --size 200000 --rate 8 --seconds 8 \
    --json "$work/r.json" >"$work/client" 2>&1 &
  client=$!
  sleep 1
  inside $b python3 "$here/pull_link.py" $a v1 v0 >"$work/pulled.json" || fail "$op: the cable could not be pulled"
  wait $client || { fail "the client of $op"; cat "$work/client" >&2; kill $server; }
  wait $server || { fail "the server of $op"; cat "$work/server" >&2; }
  # Whoever sends has seen it go and come; it ends with an error when an operation does.
  field "$work/r.json" "d['verified'] and d['counters'][1]['port_changes'] == 2"
  field "$work/pulled.json" "0.3 <= d['share_of_pulled']['before'] <= 0.7"
  field "$work/pulled.json" "d['share_of_pulled']['out'] == 0 and d['bytes']['out'] > 1e6"
  field "$work/pulled.json" "d['share_of_pulled']['back'] >= 0.1"
  echo "$op: $(cat "$work/pulled.json") $(python3 -c "
import json
d = json.load(open('$work/r.json'))
print(d['messages'], 'messages,', d['retransmits'], 'packets sent again,', d['counters'][1].get('timeouts', 0), 'time-outs')")"
done
finish
