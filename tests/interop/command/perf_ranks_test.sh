#!/bin/bash
# Many ranks on this machine: forked, and as a launcher starts them.
set -u
. "$(dirname "$0")/common.sh"

for kind in alltoall incast allreduce permutation; do
  expect 0 "yes" perf $kind --ranks 4 --size 20000 --iterations 10 --json "$work/$kind.json"
  field "$work/$kind.json" "d['op'] == '$kind' and d['ranks'] == 4 and d['verified'] and d['iterations'] == 10"
  field "$work/$kind.json" "d['gbps'] > 0 and d['algbw'] > 0 and 0 < d['busbw'] <= 2 * d['algbw']"
done
field "$work/alltoall.json" "d['bytes'] == 10 * 4 * 3 * 20000 and d['operation_us']['p50'] > 0"
field "$work/incast.json" "d['bytes'] == 10 * 3 * 20000"
expect 0 "yes" perf alltoall --ranks 8 --size 1000 --iterations 20
expect 0 "yes" perf alltoall --lane shm --ranks 8 --size 100000 --iterations 20 --json "$work/shm.json"
field "$work/shm.json" "d['lane'] == 'shm' and d['drops'] == 0"
expect 0 "yes" perf allreduce --ranks 3 --size 7 --iterations 5
expect 0 "yes" perf allreduce --ranks 2 --size 100001 --iterations 5
expect 0 "yes" perf alltoall --ranks 2 --size 64 --seconds 0.3

# As mpirun and torchrun start them: no word between the ranks but the environment.
launch() {
  local pids=() rank status=0
  for rank in 0 1 2; do
    env "$1=$rank" "$2=3" "$3=3" PMIX_NAMESPACE="test-$$-$1" timeout 60 "$paceline" perf alltoall --size 4K --iterations 10 \
      >"$work/launched.$rank" 2>&1 &
    pids+=($!)
  done
  for rank in 0 1 2; do wait "${pids[$rank]}" || status=1; done
  [ $status -eq 0 ] || { fail "ranks started with $1"; cat "$work"/launched.* >&2; }
  grep -q yes "$work/launched.0" || fail "rank 0 started with $1 says nothing"
}
launch OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_SIZE
MASTER_ADDR=127.0.0.1 MASTER_PORT=28600 launch RANK WORLD_SIZE LOCAL_WORLD_SIZE
finish
