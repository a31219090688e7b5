# A measurement between two namespaces: the client runs in $a, the server in $b. Behind namespaces.sh.

limit=30  # seconds; a measurement that takes longer has failed

# measure NAME ADDRESS SERVER_DEVICES CLIENT_DEVICES ARGUMENTS...: the client reaches the server at ADDRESS. Writes the
# result to $work/r.json. NAME is for messages.
measure() {
  start_measuring "$@"
  await_measurement
}

# The same in two steps. In between, $client is the process id of `timeout`, whose child is the client.
start_measuring() {
  what=$1
  local address=$2 at_server=$3 at_client=$4
  shift 4
  rm -f "$work/r.json"
  PACELINE_KEY_FILE=none timeout 60 nsenter --net=/run/netns/$b "$paceline" perf server \
    --listen "$address" --device "$at_server" >"$work/server" 2>&1 &
  server=$!
  PACELINE_KEY_FILE=none timeout $limit nsenter --net=/run/netns/$a "$paceline" perf client "$address" \
    --device "$at_client" --json "$work/r.json" "$@" >"$work/client" 2>&1 &
  client=$!
}

await_measurement() {
  local status=0
  wait $client || { status=$?; kill $server 2>/dev/null; }
  wait $server || true
  [ $status -eq 0 ] && holds "$work/r.json" "d['verified']" && return
  [ $status -ne 124 ] || echo "not done after $limit s" >>"$work/client"
  fail "$what: status $status; $(tail -n 2 "$work/client" | tr '\n' ' ')"
  return 1
}

# Prints the rate, and the verdicts of both sides together.
report() {
  python3 - "$work/r.json" "$what" <<'PROGRAM'
import json, sys
path, what = sys.argv[1:]
d = json.load(open(path))
def total(name): return sum(c.get(name, 0) for c in d["counters"])
verdicts = ("lost_path_gap", "lost_reorder", "lost_timeout", "spurious_retransmits", "rx_duplicates")
print(f"{what}: {1000 * d['gbps']:.1f} Mb/s, {d['seconds']:.3f} s, {d['retransmits']} of {total('tx_data_packets')}",
      f"packets retransmitted, drops {d['drops']},", ", ".join(f"{name} {total(name)}" for name in verdicts))
PROGRAM
}

# few_retransmits SHARE: of the data packets of both sides. Packets that full sockets dropped are allowed for.
few_retransmits() {
  report
  local packets="sum(c.get('tx_data_packets', 0) for c in d['counters'])"
  holds "$work/r.json" "d['retransmits'] <= d['drops'] + $1 * $packets" ||
    fail "$what: more than $1 of the packets were retransmitted"
}
