# What the scripts here begin with: cards that are handed to user space, and measurements between two of them. Sourced,
# with the folder of the build as the first argument.
. "$(dirname "${BASH_SOURCE[0]}")/../guest/checks.sh"
paceline=$1/bin/paceline tests=$1/tests
export PACELINE_KEY_FILE=none
: >/run/json && chmod 666 /run/json
(umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >/run/key)
load vfio-pci
echo 256 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages

# hand_over ADDRESS: the card is vfio-pci's, whoever had it before.
hand_over() {
  local device=/sys/bus/pci/devices/$1
  [[ ! -e $device/driver ]] || echo "$1" >"$device/driver/unbind"
  echo vfio-pci >"$device/driver_override"
  echo "$1" >/sys/bus/pci/drivers_probe
  [[ $(readlink "$device/driver") == */vfio-pci ]] || { echo "failed: $1 is not handed to user space"; exit 1; }
}

# faults: what the IOMMU refused to the cards.
faults() { dmesg | grep 'DMAR: \[DMA'; }

# pair NAME READ SETTINGS ARGUMENT ...: `paceline perf` between the cards $first and $second, whose addresses (and what
# else they are told) are ${addresses[@]}, run by ${as[@]}. READ: whether the cards are to read payloads where they lie,
# "in_place" or "copies". SETTINGS are both processes' own options.
port=18600 as=()
pair() {
  local name=$1 read=$2 settings=$3 server status=1 try in_place
  shift 3
  port=$((port + 1))
  : >/run/json
  timeout 150 "${as[@]}" "$paceline" perf server --port $port --lane dpdk --device "$first,address=${addresses[0]}" \
    $settings >/run/server 2>&1 &
  server=$!
  for ((try = 0; try < 300; ++try)); do
    grep -q ":$(printf %04X $port) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 && break
    sleep 0.1
  done
  timeout 120 "${as[@]}" "$paceline" perf client 127.0.0.1 --port $port --lane dpdk \
    --device "$second,address=${addresses[1]}" $settings --json /run/json "$@" >/run/client 2>&1
  status=$?
  wait $server || status=$?
  if ((status == 0)); then
    tail -n 1 /run/client
    [[ -s /run/json ]] || status=1
    ! grep -E '"(port0_[rt]x_drops|rx_bad_checksum|rx_malformed)": [1-9]' /run/json || status=1
    in_place=$(awk -F'[ ,:]+' '/"port0_tx_in_place"/ { sum += $3 } END { print sum + 0 }' /run/json)
    echo "  $in_place packets read by the cards where their payload was"
    if [[ $read == in_place ]]; then ((in_place > 0)) || status=1; else ((in_place == 0)) || status=1; fi
    ! faults || status=1
  else
    cat /run/server /run/client
  fi
  report "$model: $name" $status
}

# frames [QUEUES]: the test program over the two cards, each with so many queues (1).
frames() {
  PACELINE_TEST_CARDS="$first $second" PACELINE_TEST_QUEUES=${1:-1} timeout 100 "$tests/dpdk_cards_test" && ! faults
}
