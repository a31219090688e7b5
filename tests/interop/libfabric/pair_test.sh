#!/bin/bash
# Two processes of our own program for each check, the client knowing host and port alone:
# pair_test.sh PROVIDER_FOLDER PROGRAM CHECK
set -euo pipefail
provider=$1 program=$2 check=$3
[[ -n $provider ]] || { echo "skipped: libfabric-dev not installed"; exit 77; }
export FI_PROVIDER_PATH=$provider FI_PROVIDER=paceline PACELINE_KEY_FILE=none
export PACELINE_PEER_TIMEOUT_MS=2000 PACELINE_CONNECT_TIMEOUT_MS=2000
unset PACELINE_BIND PACELINE_LANE
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT

# A port that nobody has now.
port=$((30000 + $$ % 20000))
while [[ $(ss -Hlun "sport = :$port") ]]; do port=$((port + 1)); done
timeout 100 "$program" server 127.0.0.1 $port "$check" >"$folder/server" 2>&1 &
server=$!
for ((try = 0; try < 200; ++try)); do
  [[ $(ss -Hlun "sport = :$port") ]] && break
  sleep 0.05
done
timeout 100 "$program" client 127.0.0.1 $port "$check" >"$folder/client" 2>&1 ||
  { echo "failed: the client: $(cat "$folder/client" "$folder/server")"; exit 1; }
status=0
wait $server || status=$?
if [[ $check == *killed ]]; then
  ((status != 0)) || { echo "failed: the server was not killed"; exit 1; }
else
  ((status == 0)) || { echo "failed: the server: $(cat "$folder/server")"; exit 1; }
fi
grep -q "$check: passed" "$folder/client" || { echo "failed: $(cat "$folder/client")"; exit 1; }
