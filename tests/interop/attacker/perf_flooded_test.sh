#!/bin/bash
# A measurement between two namespaces with a cluster key, and a million requests to connect in strangers' names beside
# it: none of them is taken, and the server's memory stays what it was.
# Status 77: not possible here (needs the right to make network namespaces).
set -u
attacker=$2
. "$(dirname "$0")/../command/common.sh"
. "$(dirname "$0")/../command/namespaces.sh"

cluster_key "$work/key"
export PACELINE_KEY_FILE=$work/key
requests=1000000

memory() { awk '/^VmRSS:/ { print $2 }' /proc/$server/status; }

nsenter --net=/run/netns/$a "$paceline" perf server --device v0 >"$work/server" 2>&1 &
server=$!
sleep 0.5
inside $b "$paceline" perf client 198.51.100.1 --device v0 --size 200000 --seconds 30 --json "$work/r.json" \
  >"$work/client" 2>&1 &
client=$!
sleep 2
before=$(memory)
inside $b "$attacker" flood v0 198.51.100.1 --seconds 27 --packets $requests --rate 100000 >"$work/attack.json" ||
  fail "the attacker"
after=$(memory)
wait $client || { fail "the client"; cat "$work/client" >&2; kill $server; }
wait $server || { fail "the server"; cat "$work/server" >&2; }

cat "$work/attack.json"
echo "memory of the server: $before kB before, $after kB after"
field "$work/attack.json" "d['sent'] >= $requests"
[[ -n $before && -n $after ]] && ((after - before <= 1024)) || fail "the server's memory grew"
field "$work/r.json" "d['verified'] and sum(c.get('connections_opened', 0) for c in d['counters']) <= 2"
finish
