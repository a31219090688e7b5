# One guest with two RDMA devices, each of which talks to itself: what `paceline info` says, every lane held to its
# contract, `paceline perf` between processes, the NCCL plugin under its driver, and what writes cost.
#   one_guest.sh FOLDER_OF_THE_BUILD
set -uo pipefail
. "$(dirname "$0")/devices.sh"
paceline=$1/bin/paceline
export PACELINE_KEY_FILE=none

ip link add v0 type veth peer name v1
device rxe0 v0 192.0.2.1
device rxe1 v1 198.51.100.1
ready rxe0
ready rxe1
echo "kernel $(uname -r), devices: $(cd /sys/class/infiniband && echo *)"

sees_both() { "$paceline" info >/run/info && grep -q 'yes  verbs' /run/info && (($(grep -c 'yes  rxe[01]:1' /run/info) == 2)); }
check "paceline info sees both devices" sees_both
check "the lane keeps its contract" timeout 100 "$1/tests/lane_conformance_test" --gtest_filter='*verbs'
check "queue pairs that fail" timeout 100 "$1/tests/verbs_qp_errors_test"
churns() {
  timeout 150 "$1/tests/api_churn_test" --gtest_filter='*verbs*' >/run/log 2>&1 && grep ' rounds, ' /run/log && return
  cat /run/log
  return 1
}
check "connections that come and go while data moves" churns "$1"
for op in send write write_imm read atomic; do
  check "$op over one device" timeout 60 "$paceline" perf local --lane verbs --device rxe0 --op $op --size 5000 \
    --iterations 30
done
check "write of 1 MiB over both devices" timeout 60 "$paceline" perf local --lane verbs --op write --size 1M \
  --iterations 10
check "send with a progress thread" timeout 60 "$paceline" perf local --lane verbs --device rxe1 --op send --size 50K \
  --iterations 20 --progress thread
check "alltoall of 4 processes" timeout 60 "$paceline" perf alltoall --ranks 4 --lane verbs --device rxe0 --size 32K \
  --iterations 3

# nccl NAME ARGUMENT ...: the NCCL plugin over the verbs lane, driven as NCCL does.
nccl() {
  local name=$1
  shift
  check "NCCL plugin, $name" env PACELINE_LANE=verbs PACELINE_HCA=rxe timeout 120 "$1/tests/nccl_net_driver" \
    --plugin "$1/lib/libnccl-net-paceline.so" "${@:2}"
}
for version in 6 9; do nccl "version $version" "$1" --version $version --checks sizes,groups,ring,tree; done
nccl "version 12, all checks" "$1" --version 12
nccl "both devices as one" "$1" --merge 2 --checks sizes,in_flight,ring
PACELINE_GPU_STAGING=1 LD_LIBRARY_PATH=$1/tests/fake_cuda nccl "memory of a GPU, by staging" "$1" --checks gpu
# Without staging the GPU is not offered, as RDMA in software takes no dma-buf; nothing but the log says why.
says_why() {
  env LD_LIBRARY_PATH="$1/tests/fake_cuda" PACELINE_LANE=verbs PACELINE_HCA=rxe timeout 120 "$1/tests/nccl_net_driver" \
    --plugin "$1/lib/libnccl-net-paceline.so" --checks sizes --verbose >/run/log 2>&1 &&
    grep -q 'memory of GPU 0: not taken (the card takes no dma-buf (ibv_reg_dmabuf_mr' /run/log
}
check "NCCL plugin, why memory of a GPU is not taken" says_why "$1"

# What writes of 64 KiB take in instructions, the device's user-space provider included: at most three times a bare loop.
cost() {
  local rounds=200 bare lane
  valgrind --tool=callgrind --callgrind-out-file=/run/cost --toggle-collect='*Counted*' --dump-before='*IsDone*' \
    "$1/tests/verbs_write_cost" rxe0 $rounds >/run/out 2>&1 || { cat /run/out; return 1; }
  bare=$(sed -n 's/^summary: //p' /run/cost.1)
  lane=$(sed -n 's/^summary: //p' /run/cost.2)
  echo "  64 KiB in 16 writes: $((lane / rounds)) instructions by the lane, $((bare / rounds)) by a bare loop," \
    "$((100 * lane / bare)) %"
  ((lane <= 3 * bare))
}
if [[ -x $1/tests/verbs_write_cost ]] && command -v valgrind >/dev/null; then
  cost "$1"
  report "what writes cost" $?
else
  echo "what writes cost: skipped, valgrind or the headers of libibverbs are not there"
fi
finish
