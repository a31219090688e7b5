#!/bin/bash
# Processes that die, are restarted and are stopped for a while, over real sockets, in clear and encrypted, and
# through shared memory, encrypted.
set -u
. "$(dirname "$0")/common.sh"

cluster_key "$work/key"
cluster_key "$work/other"

# start_server PORT [ADDRESS]: without `timeout` in front, as signals are to reach the command itself.
start_server() {
  "$paceline" perf server --port "$1" --listen 127.0.0.1 ${2:+--device "$2"} >"$work/server.out" 2>&1 &
  server=$!
  sleep 0.5
}

for setup in "udp none" "udp $work/key" "shm $work/key"; do
  read -r lane key <<<"$setup"
  export PACELINE_LANE=$lane PACELINE_KEY_FILE=$key PACELINE_ENCRYPT=$([[ $key == none ]] && echo 0 || echo 1)

  # Killed in the middle: the other one says so and ends, and whoever takes the dead one's place is reached at once.
  start_server 28531
  PACELINE_PEER_TIMEOUT_MS=1500 timeout 60 "$paceline" perf client 127.0.0.1 --port 28531 --size 1M --seconds 30 \
    >"$work/client.out" 2>&1 &
  client=$!
  sleep 1.5
  kill -KILL $server
  wait $server 2>/dev/null
  start_server 28531
  expect 0 "yes" perf client 127.0.0.1 --port 28531 --op write --size 64K --iterations 50
  wait $server || fail "the restarted server's status: $(cat "$work/server.out")"
  wait $client
  status=$?
  [[ $status == 1 ]] || fail "the survivor's status is $status, not 1: $(cat "$work/client.out")"
  grep -q "peer lost" "$work/client.out" || fail "the survivor does not say why: $(cat "$work/client.out")"

  # The same, and the new process has the address of the old: it says that it does not have the connection. Shared memory
  # has no address to take.
  if [[ $lane == udp ]]; then
    start_server 28534 127.0.0.1:28535
    timeout 60 "$paceline" perf client 127.0.0.1 --port 28534 --size 1M --seconds 30 >"$work/client.out" 2>&1 &
    client=$!
    sleep 1.5
    kill -KILL $server
    wait $server 2>/dev/null
    start_server 28534 127.0.0.1:28535
    expect 0 "yes" perf client 127.0.0.1 --port 28534 --op write --size 64K --seconds 4
    wait $server || fail "the server at the old address: $(cat "$work/server.out")"
    wait $client
    status=$?
    [[ $status == 1 ]] || fail "the status of who lost its peer is $status, not 1: $(cat "$work/client.out")"
    grep -q "does not have the connection" "$work/client.out" ||
      fail "the restarted process was not told apart: $(cat "$work/client.out")"
  fi

  # Stopped for a while: nothing is lost.
  start_server 28532
  timeout 60 "$paceline" perf client 127.0.0.1 --port 28532 --size 1M --seconds 4 --json "$work/stopped.json" \
    >"$work/client.out" 2>&1 &
  client=$!
  sleep 1
  kill -STOP $server
  sleep 2
  kill -CONT $server
  wait $client || fail "the client of a server that was stopped: $(cat "$work/client.out")"
  wait $server || fail "the server that was stopped: $(cat "$work/server.out")"
  field "$work/stopped.json" "d['verified']"
done

# Without the same key nobody gets in, and is told why.
export PACELINE_LANE=udp PACELINE_CONNECT_TIMEOUT_MS=1000 PACELINE_ENCRYPT=0
PACELINE_KEY_FILE=$work/key start_server 28533
PACELINE_KEY_FILE=$work/other expect 1 "same cluster key" perf client 127.0.0.1 --port 28533 --seconds 1
kill $server 2>/dev/null
wait $server 2>/dev/null
finish
