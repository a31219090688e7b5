# The dpdk lane over network cards that QEMU emulates, each model's two cards joined by a link: handed to user space by
# vfio-pci, named by PCI address, and kept by an IOMMU to memory that is theirs to read and write. Payloads are checked
# on arrival; no packet may be damaged, the cards must have read where it lies what they may and copies of the rest, and
# the IOMMU must have refused nothing.
#   cards.sh FOLDER_OF_THE_BUILD MODEL ...      in the order in which the guest has them
set -uo pipefail
. "$(dirname "$0")/../guest/checks.sh"
paceline=$1/bin/paceline tests=$1/tests
shift
export PACELINE_KEY_FILE=none
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

# pair NAME READ SETTINGS ARGUMENT ...: `paceline perf` between the two cards of the pair. READ: whether the cards are to
# read payloads where they lie, "in_place" or "copies". SETTINGS are both processes' own options.
port=18600
pair() {
  local name=$1 read=$2 settings=$3 server status=1 try in_place
  shift 3
  port=$((port + 1))
  timeout 100 "$paceline" perf server --port $port --lane dpdk --device "$first,address=${addresses[0]}" $settings \
    >/run/server 2>&1 &
  server=$!
  for ((try = 0; try < 300; ++try)); do
    grep -q ":$(printf %04X $port) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 && break
    sleep 0.1
  done
  timeout 60 "$paceline" perf client 127.0.0.1 --port $port --lane dpdk --device "$second,address=${addresses[1]}" \
    $settings --json /run/json "$@" >/run/client 2>&1
  status=$?
  wait $server || status=$?
  if ((status == 0)); then
    tail -n 1 /run/client
    ! grep -E '"port0_[rt]x_drops": [1-9]' /run/json || status=1
    in_place=$(awk -F'[ ,:]+' '/"port0_tx_in_place"/ { sum += $3 } END { print sum + 0 }' /run/json)
    echo "  $in_place packets read by the cards where their payload was"
    if [[ $read == in_place ]]; then ((in_place > 0)) || status=1; else ((in_place == 0)) || status=1; fi
    ! faults || status=1
  else
    cat /run/server /run/client
  fi
  report "$model: $name" $status
}

# frames: the test program over the two cards.
frames() {
  PACELINE_TEST_CARDS="$first $second" timeout 100 "$tests/dpdk_cards_test" && ! faults
}

ipv4=(192.0.2.1/24 192.0.2.2/24)
ipv6=(fd00::1/64 fd00::2/64)
slot=16
for model in "$@"; do
  first=$(printf '0000:00:%x.0' $slot) second=$(printf '0000:00:%x.0' $((slot + 1)))
  slot=$((slot + 2))
  hand_over "$first"
  hand_over "$second"
  check "$model: frame by frame" frames
  addresses=("${ipv4[@]}")
  for op in send write write_imm; do pair $op in_place "" --op $op --size 20000 --iterations 50; done
  for op in read atomic; do pair $op copies "" --op $op --size 20000 --iterations 50; done
  pair "1 MiB in packets of 9,000 bytes" in_place "--mtu 9000" --size 1M --iterations 10
  PACELINE_KEY_FILE=/run/key pair "under a key" copies "" --size 20000 --iterations 50
  PACELINE_KEY_FILE=/run/key PACELINE_ENCRYPT=1 pair "encrypted" copies "" --size 20000 --iterations 50
  addresses=("${ipv6[@]}")
  pair "IPv6" in_place "" --size 20000 --iterations 50
done
finish
