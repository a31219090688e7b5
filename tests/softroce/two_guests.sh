# Two guests with two RDMA devices each, joined by two links: Paceline between them over one device and over both, with
# loss on the links, and with a link that goes down and up; perftest beside it. Payloads are checked on arrival, and how
# two devices shared the work is told and held to a bound.
#   two_guests.sh FOLDER_OF_THE_BUILD
set -uo pipefail
. "$(dirname "$0")/devices.sh"
paceline=$1/bin/paceline
export PACELINE_KEY_FILE=none
port=18600
# One message that is measured and one that is checked, none before them and none for the latency (--rate).
big="--size 32M --iterations 1 --warmup 0 --window 1 --rate 100"

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
    timeout 150 "$paceline" perf server --port $port --lane verbs --device "$devices" >/run/out 2>&1
    status=$?
    [[ $status == 0 ]] || cat /run/out
  else
    timeout 150 "$paceline" perf client 10.77.0.1 --port $port --lane verbs --device "$devices" "$@" \
      --json /run/json >/run/out 2>&1
    status=$?
    if [[ $status == 0 ]]; then
      tail -n 1 /run/out
      grep -E '"(lost_[a-z_]*|spurious_retransmits|tail_probes|timeouts|port_changes|port[01]_[rt]x_drops|retransmits)"' /run/json | tr -d '\n ,'
      echo
    else
      cat /run/out
    fi
  fi
  report "$name" $status
}

# links NETEM ...: both links have a rate that two emulated processors can keep up with, so that the links, and not who
# gets a processor, decide how two devices share the work; and what else NETEM says.
links() {
  local name
  for name in "${names[@]}"; do tc qdisc replace dev "$name" root netem rate 16mbit limit 10000 "$@"; done
}

# shares: how the bytes that each rank of the last measurement has sent were shared by its two devices. Fails where one
# had less than 45 %. Ranks that sent next to nothing, as who only reads does, are left out.
shares() {
  awk -F'[ ,:]+' '
    function rank_ends() {
      if (port[0] + port[1] > 4e6) {
        share = 100 * port[0] / (port[0] + port[1])
        printf "  rank %d: %d and %d bytes, %.1f : %.1f\n", rank, port[0], port[1], share, 100 - share
        if (share < 45 || share > 55) uneven = 1
        ++told
      }
      port[0] = port[1] = 0
      ++rank
    }
    /"port[01]_tx_bytes"/ { port[substr($2, 6, 1)] = $3 }
    /^    }/ { rank_ends() }
    END { exit uneven || !told }' /run/json
}

# shared NAME ARGUMENT ...: pair, and the devices of both guests have to share the bytes.
shared() {
  pair "$@"
  ((GUEST == 0)) || { shares; report "$1: shares within 45:55" $?; }
}

# alltoall NAME ARGUMENT ...: two ranks in each guest, one network.
alltoall() {
  local name=$1 rank status=0 ranks=()
  shift
  port=$((port + 1))
  for rank in $((GUEST * 2)) $((GUEST * 2 + 1)); do
    RANK=$rank WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=$port timeout 150 "$paceline" perf \
      alltoall --lane verbs --device "$devices" "$@" --json /run/json >/run/out.$rank 2>&1 &
    ranks+=($!)
  done
  for rank in "${ranks[@]}"; do wait "$rank" || status=$?; done
  ((status == 0)) || cat /run/out.*
  report "$name" $status
  if ((GUEST == 0)); then
    tail -n 1 /run/out.0
    shares
    report "$name: shares within 45:55" $?
  fi
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

# Marks instead of losses, for packets that let themselves be marked: messages that are too small for the card to place.
tc qdisc add dev "${names[0]}" root netem loss 10% ecn
pair "send of 2000 bytes over one device, 10 % marked both ways" --op send --size 2000 --iterations 200
if ((GUEST == 1)); then
  marked=$(awk -F'[ ,:]+' '/"rx_marked"/ { sum += $3 } END { print sum + 0 }' /run/json)
  echo "  $marked packets arrived marked"
  ((marked > 0))
  report "marks are seen" $?
fi
tc qdisc del dev "${names[0]}" root
devices=rxe0,rxe1
links
alltoall "all-to-all of 4 processes over two devices" --size 256K --iterations 6
for op in write read; do shared "$op of 32 MiB over two devices" $big --op $op; done

links loss 2%
shared "write of 32 MiB over two devices, 2 % loss both ways" $big --op write
pair "send of 1 MiB over two devices, 2 % loss both ways" --op send --size 1M --iterations 10
for name in "${names[@]}"; do tc qdisc del dev "$name" root; done

# One link of guest 1 goes down for a second again and again, from the first byte to the last that is checked.
if ((GUEST == 1)); then
  while sleep 3; do ip link set "${names[1]}" down; sleep 1; ip link set "${names[1]}" up; done &
  flapping=$!
fi
pair "write of 32 MiB over two devices, one link down for 1 s of 4" $big --op write
if ((GUEST == 1)); then
  kill $flapping
  wait $flapping
  ip link set "${names[1]}" up
  ready rxe1
  grep -q '"port_changes"' /run/json
  report "the link was down meanwhile" $?
fi

# Reliable connections: the same, and the queue pairs are what was asked for.
export PACELINE_VERBS_RELIABLE=1
while sleep 0.5; do rdma resource show qp; done >/run/qps 2>&1 &
watching=$!
for op in send write; do pair "$op of 1 MiB over two devices, RC" --op $op --size 1M --iterations 3 --warmup 1; done
kill $watching
grep -q 'type RC' /run/qps && ! grep -q 'type UC' /run/qps
report "the queue pairs are RC" $?
for name in "${names[@]}"; do tc qdisc add dev "$name" root netem loss 1%; done
pair "write of 1 MiB over two devices, RC, 1 % loss both ways" --op write --size 1M --iterations 3 --warmup 1
finish
