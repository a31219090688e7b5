#!/bin/bash
# The dpdk lane between real processes over net_memif: no privilege, no hugepages, no card.
# Status 77: this build or machine has no DPDK.
set -u
. "$(dirname "$0")/common.sh"
export XDG_RUNTIME_DIR=$work
# DPDK's own threads live to the end of the process; the leak checker, which stops them to look, falls over them.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

"$paceline" info --json >"$work/info.json"
reason=$(python3 -c 'import json, sys
lane = next(l for l in json.load(open(sys.argv[1]))["lanes"] if l["name"] == "dpdk")
print("" if lane["usable"] else lane["reason"])' "$work/info.json")
if [[ -n $reason ]]; then
  echo "skipped: $reason"
  exit 77
fi

for op in send write write_imm read atomic; do
  expect 0 "yes" perf local --lane dpdk --op $op --size 5000 --iterations 200 --json "$work/$op.json"
  field "$work/$op.json" "d['op'] == '$op' and d['lane'] == 'dpdk' and d['verified'] and d['messages'] == 200"
done
expect 0 "yes" perf local --lane dpdk --size 1M --iterations 30
expect 0 "yes" perf local --lane dpdk --size 100K --iterations 50 --progress thread
expect 0 "yes" perf local --lane dpdk --size 64 --iterations 10000 --window 4096
expect 0 "yes" perf local --lane dpdk --size 100000 --iterations 50 --bidirectional
expect 0 "yes" perf local --lane dpdk --size 300000 --iterations 60 \
  --impair loss=2%,dup=5%,reorder=5%,corrupt=1%,seed=5 --json "$work/bad.json"
field "$work/bad.json" "d['retransmits'] > 0"

# Ports by name, a setting each; frames of 9000 bytes, and IPv6.
pair() {
  local server_device=$1 client_device=$2 server status=0
  shift 2
  timeout 60 "$paceline" perf server --port 28521 --lane dpdk --device "$server_device" "$@" >"$work/server" 2>&1 &
  server=$!
  expect 0 "yes" perf client 127.0.0.1 --port 28521 --lane dpdk --device "$client_device" "$@" --size 200000 \
    --iterations 50
  wait $server || { fail "the server's status with $server_device"; cat "$work/server" >&2; }
}
memif="socket=$work/m.sock,socket-abstract=no"
pair "net_memif0,role=server,$memif,address=192.0.2.1/24" "net_memif0,role=client,$memif,address=192.0.2.2/24"
pair "net_memif0,role=server,$memif,bsize=9216,address=fd00::1/64" \
  "net_memif0,role=client,$memif,bsize=9216,address=fd00::2/64" --mtu 9000

# A process at the other end that is killed ends the connection, not this process.
PACELINE_PEER_TIMEOUT_MS=1000 timeout 60 "$paceline" perf client 127.0.0.1 --port 28522 --lane dpdk --size 1M \
  --seconds 30 >"$work/client" 2>&1 &
client=$!
"$paceline" perf server --port 28522 --lane dpdk >/dev/null 2>&1 &
server=$!
sleep 3
kill -KILL $server
wait $server 2>/dev/null
status=0
wait $client || status=$?
[ $status -eq 1 ] || { fail "the other end was killed: status $status, not 1"; cat "$work/client" >&2; }

# What is wrong is named.
expect 1 "both ends" perf alltoall --ranks 3 --lane dpdk --size 64 --iterations 10
expect 2 "address=192.0.2.1/24" perf local --lane dpdk --device net_null0
expect 1 "net_carrier_pigeon0" perf local --lane dpdk --device net_carrier_pigeon0,address=192.0.2.1
PACELINE_DPDK_EAL=--no-such-thing expect 2 "PACELINE_DPDK_EAL" perf local --lane dpdk
PACELINE_DPDK_EAL="-m 1" expect 1 "no memory" perf local --lane dpdk
finish
