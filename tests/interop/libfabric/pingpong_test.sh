#!/bin/bash
# pingpong_test.sh FOLDER TYPE: fi_pingpong between two processes on the loopback interface, with endpoints of this type
# (rdm, msg, dgram): sizes up to 64 KiB, payload checked, and its own choice of sizes up to 1 MiB; those of them that
# the type takes.
set -euo pipefail
provider=$1 type=$2
[[ -n $provider ]] || { echo "skipped: libfabric-dev not installed"; exit 77; }
command -v fi_pingpong >/dev/null || { echo "skipped: libfabric-bin not installed"; exit 77; }
export FI_PROVIDER_PATH=$provider FI_PROVIDER=paceline PACELINE_BIND=127.0.0.1
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT

# pingpong PORT ARGUMENT ...: prints what the client prints.
pingpong() {
  local port=$1 server
  shift
  timeout 150 fi_pingpong -p paceline -e "$type" -B "$port" "$@" >"$folder/server" 2>&1 &
  server=$!
  for ((try = 0; try < 100; ++try)); do
    [[ $(ss -Hltn "sport = :$port") ]] && break
    sleep 0.1
  done
  timeout 150 fi_pingpong -p paceline -e "$type" -P "$port" "$@" 127.0.0.1 >"$folder/client" 2>&1 ||
    { (echo "failed: the client of $*"; cat "$folder/client" "$folder/server") >&2; exit 1; }
  wait $server || { (echo "failed: the server of $*"; cat "$folder/server") >&2; exit 1; }
  cat "$folder/client"
}

# Below the ports that the kernel gives to connections: one of those might have it already.
port=$((20000 + $$ % 9000))
next_port() {
  port=$((port + 1))
  while [[ $(ss -Htan "sport = :$port") ]]; do port=$((port + 1)); done
}
own_sizes=6 sizes=(0 1 255 256 257 4096 16384 16385 65536)
[[ $type == dgram ]] && own_sizes=4 sizes=(0 1 255 256 257 4096 16384)
next_port
lines=$(pingpong $port -I 20 | grep -c '=20')
((lines == own_sizes)) || { echo "failed: $lines of $own_sizes sizes"; exit 1; }
for bytes in "${sizes[@]}"; do
  next_port
  pingpong $port -I 20 -S $bytes -c | grep -q '=20' || { echo "failed: $bytes bytes"; exit 1; }
done
exit 0
