#!/bin/bash
# Every operation between two processes on this machine, with the fields that others' scripts read.
set -u
. "$(dirname "$0")/common.sh"

for lane in udp shm; do
  for op in send write write_imm read atomic; do
    expect 0 "yes" perf local --lane $lane --op $op --size 5000 --iterations 200 --json "$work/$op.json"
    field "$work/$op.json" "d['op'] == '$op' and d['lane'] == '$lane' and d['verified'] and d['messages'] == 200"
    field "$work/$op.json" "d['bytes'] == 200 * d['size'] and d['seconds'] > 0 and d['gbps'] > 0 and d['cpu_seconds'] > 0"
    field "$work/$op.json" "0 < d['latency_us']['p50'] <= d['latency_us']['p90'] <= d['latency_us']['p99']"
    field "$work/$op.json" "d['latency_us']['p99'] <= d['latency_us']['p999'] <= d['latency_us']['max']"
    field "$work/$op.json" "d['retransmits'] >= 0 and d['drops'] >= 0"
  done
  expect 0 "yes" perf local --lane $lane --size 1M --iterations 30
  expect 0 "yes" perf local --lane $lane --size 100K --iterations 50 --progress thread
  expect 0 "yes" perf local --lane $lane --op write --size 100K --iterations 50 --progress thread --engines 2
  expect 0 "yes" perf local --lane $lane --size 64 --iterations 500 --window 1
  expect 0 "yes" perf local --lane $lane --size 64 --iterations 10000 --window 4096
done
expect 2 'must be "thread"' perf local --engines 2
if ! grep -q __asan_init "$paceline"; then  # which wants more addresses than there are
  kilobytes=$(ulimit -Sv)
  ulimit -Sv 120000
  expect 1 "no thread for progress" perf local --size 64K --iterations 10 --progress thread --engines 16
  ulimit -Sv "$kilobytes"
fi
expect 0 "yes" perf local --size 100000 --iterations 50 --bidirectional --json "$work/both.json"
field "$work/both.json" "d['messages'] == 100 and d['bidirectional']"
expect 0 "yes" perf local --op write --size 3000 --iterations 50 --bidirectional
expect 0 "yes" perf local --size 10000 --rate 200M --seconds 0.3 --json "$work/rate.json"
field "$work/rate.json" "0 < d['gbps'] < 0.25 and d['latency_kind'] == 'completion'"
expect 0 "1 KiB" perf local --sizes 256:1K --iterations 50 --histogram --json "$work/sweep.json"
field "$work/sweep.json" "[r['size'] for r in d['runs']] == [256, 512, 1024] and all(r['verified'] for r in d['runs'])"
expect 0 " messages " perf local --size 4K --seconds 0.4 --interval 0.1

# JSON alone on standard output.
"$paceline" perf local --size 64 --seconds 0.3 --interval 0.1 --json - >"$work/alone.json" 2>/dev/null
field "$work/alone.json" "d['verified']"

# Server and client, each as a command of its own.
timeout 60 "$paceline" perf server --port 28515 --listen 127.0.0.1 >"$work/server.out" 2>&1 &
server=$!
expect 0 "yes" perf client 127.0.0.1 --port 28515 --op write --size 64K --iterations 50
wait $server || fail "the server's status"
grep -q yes "$work/server.out" || fail "the server says nothing"
# The server takes the client's algorithm, also at a port that it has open for another one, and leaves parameters that
# were meant for that.
PACELINE_CC_PARAMETERS=grain_segments=2 timeout 60 "$paceline" perf server --port 28515 --listen 127.0.0.1 \
  --device 127.0.0.1:28519 >"$work/server.out" 2>&1 &
server=$!
expect 0 "yes" perf client 127.0.0.1 --port 28515 --cc swift --size 64K --iterations 50
wait $server || fail "the server's status with the client's algorithm: $(cat "$work/server.out")"
# What only the client gets wrong is no wrong use of the server.
timeout 60 "$paceline" perf server --port 28515 --listen 127.0.0.1 >"$work/server.out" 2>&1 &
server=$!
expect 2 "hope" perf client 127.0.0.1 --port 28515 --cc hope
status=0
wait $server || status=$?
[ "$status" -eq 1 ] || fail "the status of a server whose client is wrong: $status, not 1"
grep -q "as the client asks: .*hope" "$work/server.out" || fail "what that server says: $(cat "$work/server.out")"

# Without a device it waits where its data comes from, on the loopback address alone.
is_open() { (exec 3<>"/dev/tcp/$1/28517") 2>/dev/null; }
for device in "" 127.0.0.1; do
  timeout 60 "$paceline" perf server --port 28517 ${device:+--device "$device"} >/dev/null 2>&1 &
  server=$!
  sleep 0.5
  if [[ -z $device ]]; then
    is_open 127.0.0.2 && fail "a server without a device waits for others"
  else
    is_open 127.0.0.2 || fail "a server with a device waits for nobody"
  fi
  kill $server 2>/dev/null
  wait $server 2>/dev/null
done

# A rendezvous port in use.
timeout 60 "$paceline" perf server --port 28516 --listen 127.0.0.1 >/dev/null 2>&1 &
server=$!
sleep 0.5
expect 1 "28516" perf server --port 28516 --listen 127.0.0.1
kill $server 2>/dev/null
wait $server 2>/dev/null
finish
