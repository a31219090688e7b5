#!/bin/bash
# The program under mpirun on several "hosts" (network namespaces on a switch, a rank each), all packets authenticated:
#   hosts_test.sh MPIRUN PROGRAM PROVIDER_FOLDER RANKS clean|drops|nic_down|unbound
# drops: each host's kernel drops 5 % of what arrives. nic_down: every host has two NICs on two switches, and one NIC of
# one host goes down behind the first round, while others are under way; three whole ones follow. unbound: two ranks a
# host, which has two NICs, and nobody says which interface to use; Open MPI gives the domains of one fabric to the ranks
# of a host in turn.
# Status 77: not possible here (needs root).
set -uo pipefail
mpirun=$1 program=$2 provider=$3 ranks=$4 case=$5
hosts_script=$(cd "$(dirname "$0")/../../../tools/lib" && pwd)/virtual_hosts
[[ -n $program ]] || { echo "skipped: libfabric-dev or libopenmpi-dev not installed"; exit 77; }
[[ -x $mpirun ]] || { echo "skipped: openmpi-bin not installed"; exit 77; }
[[ $case != drops ]] || command -v nft >/dev/null || { echo "skipped: nftables not installed"; exit 77; }

work=$(mktemp -d)
prefix=bench$$h  # of a host's name, so no underscore
job=""
clean_up() {
  [[ -z $job ]] || kill "$job" 2>/dev/null
  "$hosts_script" down "$prefix"
  rm -rf "$work"
}
trap clean_up EXIT
fail() {
  echo "failed: $*"
  cat "$work/output"
  exit 1
}

switches=1 bind=(PACELINE_BIND=eth0) rounds=(1) slots=1
case $case in
  nic_down) switches=2 bind=(PACELINE_BIND=eth0,eth1) rounds=(3 "$work/nic_is_down") ;;
  unbound) switches=2 bind=() slots=2 ;;
esac
hosts=$((ranks / slots))
"$hosts_script" up "$prefix" "$hosts" 1500 $switches || exit
(umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$work/key")

inside() {
  local host=$1
  shift
  nsenter --net="/run/netns/$prefix$host" "$@"
}

if [[ $case == drops ]]; then
  for ((host = 0; host < hosts; ++host)); do
    inside "$host" nft 'table inet drops { chain arriving { type filter hook input priority 0;
      meta l4proto udp numgen random mod 100 < 5 counter drop; }; }' 2>"$work/output" ||
      { echo "skipped: nftables is not usable here: $(head -1 "$work/output")"; exit 77; }
  done
fi

names=""
for ((host = 0; host < hosts; ++host)); do names+=,$prefix$host:$slots; done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PACELINE_KEY_FILE=$work/key
unset PACELINE_BIND
timeout 270 "$hosts_script" "${prefix}0" "$mpirun" -np "$ranks" -host "${names#,}" --mca plm rsh \
  --mca plm_rsh_agent "$hosts_script" --mca oob_tcp_if_include eth0 --bind-to none --mca mpi_yield_when_idle 1 \
  --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include paceline --mca osc pt2pt \
  -x "FI_PROVIDER_PATH=$provider" -x PACELINE_KEY_FILE ${bind:+-x "${bind[0]}"} ${ASAN_OPTIONS:+-x ASAN_OPTIONS} \
  "$program" "${rounds[@]}" >"$work/output" 2>&1 &
job=$!

if [[ $case == nic_down ]]; then
  until grep -q "round 1 passed" "$work/output"; do
    kill -0 $job 2>/dev/null || break
    sleep 0.02
  done
  packets=$(inside 1 awk '/eth1:/ { print $11 }' /proc/net/dev)
  inside 1 ip link set eth1 down
  ((packets > 100)) || fail "only $packets packets had left through the NIC that was taken down"
  touch "$work/nic_is_down"
  echo "the NIC had sent $packets packets when it went down"
fi

wait $job
status=$?
job=""
((status == 0)) || fail "mpirun ended with status $status (124: time-out)"
grep -q "$ranks ranks: all checks passed" "$work/output" || fail "the program did not say that all checks passed"
if [[ $case == drops ]]; then
  dropped=$(inside 0 nft list ruleset | sed -n 's/.*counter packets \([0-9]*\).*/\1/p')
  ((dropped > 0)) || fail "no packet was dropped"
  echo "$dropped packets were dropped on their way to the first host"
fi
exit 0
