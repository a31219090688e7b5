#!/bin/bash
# Two network namespaces joined by two virtual cables, of which one is pulled under load and put back: no operation
# fails, the other cable carries all of them meanwhile, and both carry again.
# Status 77: not possible here (needs the right to make network namespaces).
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/namespaces.sh"

ip link add v1 netns $a type veth peer name v1 netns $b || { echo "skipped: no veth"; exit 77; }
inside $a ip addr add 203.0.113.1/24 dev v1
inside $b ip addr add 203.0.113.2/24 dev v1
for space in $a $b; do inside $space ip link set v1 up; done
sleep 0.2

# packets SPACE: that have left through v1.
packets() {
  inside $1 awk '/v1:/ { print $11 }' /proc/net/dev
}

for op in send write; do
  inside $a "$paceline" perf server --device v0,v1 >"$work/server" 2>&1 &
  server=$!
  inside $b "$paceline" perf client 198.51.100.1 --device v0,v1 --op $op --size 200000 --seconds 5 --json "$work/r.json" \
    >"$work/client" 2>&1 &
  client=$!
  sleep 1.5
  inside $a ip link set v1 down
  sleep 1
  pulled=$(packets $b)
  inside $a ip link set v1 up
  sleep 1.5
  back=$(packets $b)
  wait $client || { fail "the client of $op"; cat "$work/client" >&2; kill $server; }
  wait $server || { fail "the server of $op"; cat "$work/server" >&2; }
  field "$work/r.json" "d['verified']"
  [[ $pulled -gt 1000 ]] || fail "$op: v1 had carried only $pulled packets when it was pulled"
  [[ $((back - pulled)) -gt 200 ]] || fail "$op: v1 carried only $((back - pulled)) packets when it was back"
  echo "$op: v1 carried $pulled packets before and $((back - pulled)) within 1.5 s after it was back"
done
finish
