#!/bin/bash
# Help, version, information and wrong use: exit status 0 or 2, and messages that name what is wrong.
set -u
. "$(dirname "$0")/common.sh"

expect 0 "perf" --help
expect 0 "paceline 0." --version
expect 0 "alltoall" perf --help
expect 0 "--impair" perf local --help
expect 0 "--device" perf server --help
expect 0 "host" perf client --help
expect 0 "--json" info --help
expect 0 "tita" info
expect 0 "RDMA cards" info
expect 0 '"congestion_control"' info --json
"$paceline" info --json >"$work/info.json"
field "$work/info.json" 'all("reason" in x for x in d["lanes"] if not x["usable"])'
field "$work/info.json" 'any(x["name"] == "udp" and x["usable"] for x in d["lanes"])'
field "$work/info.json" '{"reps", "least_delay", "ecmp"} <= {x["name"] for x in d["path_policies"]}'
field "$work/info.json" 'd["hcas"]["devices"] or d["hcas"]["reason"]'
field "$work/info.json" 'd["gpus"]["devices"] or d["gpus"]["reason"]'

expect 0 "training" study --list
expect 0 "1396 PB" study --traffic llama3-70b
expect 0 '"every_pair_bytes"' study --traffic llama3-70b --json -
expect 2 "neither llama3-70b nor a file" study --traffic llama4

# What was not written was not done.
full() {
  local status=0
  timeout 60 "$paceline" "$@" 2>"$work/out" >/dev/full || status=$?
  [ "$status" -eq 1 ] || fail "paceline $* on a full disk: status $status, not 1"
  grep -q "cannot write standard output" "$work/out" || fail "paceline $* on a full disk: no word"
}
full info
full --help
full perf local --iterations 10
full perf local --iterations 10 --json -
full study --list
# No socket takes the number of a standard stream that is closed, to get what is printed.
status=0
timeout 60 "$paceline" perf local --sizes 64:128 --iterations 10 2>"$work/out" <&- >&- || status=$?
[ "$status" -eq 1 ] || fail "paceline perf local without standard streams: status $status, not 1"
grep -q "cannot write standard output" "$work/out" || fail "paceline perf local without standard streams: $(cat "$work/out")"
timeout 60 "$paceline" perf local --sizes 64:128 --iterations 1000 --interval 0.0001 >"$work/out" <&- 2>&- ||
  fail "paceline perf local without standard error: status $?"

# A folder whose name is not UTF-8.
odd=$work/$'\xff'
mkdir -p "$odd/bin" "$odd/lib"
cp "$paceline" "$odd/bin/paceline"
touch "$odd/lib/libpaceline.so"
"$odd/bin/paceline" info --json >"$work/info.json" || fail "paceline info --json in a folder that is not UTF-8: status $?"
field "$work/info.json" 'any(x["name"] == "c" and x["usable"] for x in d["plugins"])'

expect 2 ""
expect 2 '"dance" is unknown' dance
expect 2 "" perf
expect 2 'paceline perf: "dance" is unknown' perf dance
expect 2 "--no-such" perf local --no-such
expect 2 "teleport" perf local --op teleport
expect 2 "huge" perf local --size huge
expect 2 "--iterations: -1: may be" perf local --iterations -1
expect 2 "--warmup: -1: may be" perf local --warmup -1
expect 2 "--seed: -1: may be" perf permutation --seed -1
expect 2 "--iterations: 18446744073709551617: may be" perf local --iterations 18446744073709551617
expect 2 "may be at most" perf local --iterations 18446744073709551615
expect 2 "--interval inf: may be" perf local --interval inf
expect 2 "due less than once" perf local --rate 1e-12
expect 2 "link_gbps is inf" perf local --link-gbps inf
expect 2 "planned" perf local --memory gpu:0
expect 2 "theft" perf local --impair theft=1%
expect 2 "pigeon" perf local --lane pigeon
expect 2 "hope" perf local --cc hope
expect 2 "no congestion control is called" perf local --cc $'\xff'
expect 2 "in-band telemetry" perf local --cc hpcc
expect 2 "hope" perf local --cc-set hope=1
expect 2 "--ranks" perf alltoall --ranks 1
expect 2 "--ranks 0" perf alltoall --ranks 0
expect 2 "" perf client
PACELINE_MTU=big expect 2 "PACELINE_MTU=big" perf local
PACELINE_PROGRESS=magic expect 2 "PACELINE_PROGRESS=magic" perf local
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 expect 2 "mpirun started 4" perf alltoall --ranks 3

expect 2 "no_such_card0" perf local --device no_such_card0 --iterations 1
expect 2 "no_such_card0" perf server --device no_such_card0  # and not when a client comes
expect 1 "no paceline perf server" perf client 127.0.0.1 --port 1
finish
