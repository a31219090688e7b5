#!/bin/bash
# A measurement between two namespaces with a cluster key, while somebody on the wire replays, changes, cuts and invents
# packets to the server and floods it with requests. Nothing may be taken from him, and nothing may fail.
# Status 77: not possible here (needs the right to make network namespaces).
set -u
attacker=$2
. "$(dirname "$0")/../command/common.sh"
. "$(dirname "$0")/../command/namespaces.sh"

cluster_key "$work/key"
export PACELINE_KEY_FILE=$work/key

# The sum over both ranks of the counters that say: this was not taken.
refused="sum(c.get('rx_' + n, 0) for c in d['counters'] for n in ('forged', 'replayed', 'malformed', 'bad_checksum', 'unknown_connection'))"

# The counters are those of the measurement: he waits until it is under way, however slowly it began.
for attack in replay modify truncate inject flood; do
  inside $a "$paceline" perf server --device v0 >"$work/server" 2>&1 &
  server=$!
  inside $b "$paceline" perf client 198.51.100.1 --device 198.51.100.2 --size 200000 --seconds 3 --json "$work/r.json" \
    >"$work/client" 2>&1 &
  client=$!
  inside $b "$attacker" $attack v0 198.51.100.1 --after 200 --seconds 1.5 --rate 5000 >"$work/attack.json" ||
    fail "the attacker: $attack"
  wait $client || { fail "the client under $attack"; cat "$work/client" >&2; kill $server; }
  wait $server || { fail "the server under $attack"; cat "$work/server" >&2; }
  field "$work/r.json" "d['verified']"
  sent=$(python3 -c "import json; print(json.load(open('$work/attack.json'))['sent'])")
  [[ $sent -ge 1000 ]] || fail "only $sent packets of $attack"
  if [[ $attack == flood ]]; then
    field "$work/r.json" "sum(c.get('connections_opened', 0) for c in d['counters']) <= 2"
  else
    field "$work/r.json" "$refused >= $sent / 2"
  fi
done
finish
