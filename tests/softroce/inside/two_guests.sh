# Two guests with two RDMA devices each, joined by two links: Paceline between them over one device and over both, with
# loss on the links, and with a link down and up again; perftest beside it.
#   two_guests.sh FOLDER_OF_THE_BUILD
set -uo pipefail
. "$(dirname "$0")/devices.sh"
paceline=$1/bin/paceline
export PACELINE_KEY_FILE=none
other=$((1 - GUEST)) port=18600

for link in 0 1; do
  for interface in /sys/class/net/*; do
    [[ $(<"$interface/address") == 52:54:00:00:0$link:0$GUEST ]] || continue
    names[link]=${interface##*/}
    device rxe$link "${interface##*/}" 10.77.$link.$((GUEST + 1))
    ready rxe$link
  done
done

# pair NAME ARGUMENT ...: `paceline perf` between the guests; guest 1 measures and says what it saw.
pair() {
  local name=$1 status
  shift
  port=$((port + 1))
  if ((GUEST == 0)); then
    timeout 100 "$paceline" perf server --port $port --lane verbs --device "$devices" >/run/out 2>&1
    status=$?
    [[ $status == 0 ]] || cat /run/out
  else
    timeout 100 "$paceline" perf client 10.77.0.1 --port $port --lane verbs --device "$devices" "$@" \
      --json /run/json >/run/out 2>&1
    status=$?
    if [[ $status == 0 ]]; then
      tail -n 1 /run/out
      grep -E '"(lost_path_gap|tail_probes|timeouts|port[01]_tx_drops|retransmits)"' /run/json | tr -d '\n ,'
      echo
    else
      cat /run/out
    fi
  fi
  report "$name" $status
}

# The measuring guest has to find perftest's server as well.
perftest() {
  local name=$1
  shift
  port=$((port + 1))
  if ((GUEST == 0)); then
    timeout 60 "$@" -p $port >/run/out 2>&1
  else
    local try
    for ((try = 0; try < 20; ++try)); do
      timeout 60 "$@" -p $port 10.77.0.1 >/run/out 2>&1 && break
      sleep 0.5
    done
    tail -n 3 /run/out | head -n 1
    ((try < 20))
  fi
  report "$name" $?
}

perftest "perftest: ib_write_bw over UC" ib_write_bw -d rxe0 -c UC -s 4096 -n 200 -F
devices=rxe0
for op in send write read; do pair "$op over one device" --op $op --size 20000 --iterations 50; done
devices=rxe0,rxe1
pair "send of 1 MiB over two devices" --op send --size 1M --iterations 10
pair "write of 1 MiB over two devices" --op write --size 1M --iterations 10

for name in "${names[@]}"; do tc qdisc add dev "$name" root netem loss 1%; done
pair "write of 1 MiB over two devices, 1 % loss both ways" --op write --size 1M --iterations 10
pair "send of 1 MiB over two devices, 1 % loss both ways" --op send --size 1M --iterations 10
for name in "${names[@]}"; do tc qdisc del dev "$name" root; done

# Guest 1's second link is down for two seconds while it writes; the transport goes on over the first.
if ((GUEST == 1)); then
  (sleep 3; ip link set "${names[1]}" down; sleep 2; ip link set "${names[1]}" up) &
fi
pair "write over two devices, one link down for 2 s" --op write --size 1M --seconds 10
wait
finish
