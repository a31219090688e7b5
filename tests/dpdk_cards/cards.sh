# The dpdk lane over network cards that QEMU emulates, each model's two cards joined by a link: handed to user space by
# vfio-pci, named by PCI address, and kept by an IOMMU to memory that is theirs to read and write. Payloads are checked
# on arrival; no packet may be damaged, the cards must have read where it lies what they may and copies of the rest, and
# the IOMMU must have refused nothing.
#   cards.sh FOLDER_OF_THE_BUILD MODEL ...      in the order in which the guest has them
set -uo pipefail
. "$(dirname "$0")/pairs.sh"
shift

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
  pair send in_place "" --size 20000 --iterations 50
  pair read copies "" --op read --size 20000 --iterations 50
  pair "1 MiB in packets of 9,000 bytes" in_place "--mtu 9000" --size 1M --iterations 10
  addresses=("${ipv6[@]}")
  pair "IPv6" in_place "" --size 20000 --iterations 50
  # What does not depend on the model.
  ((slot == 18)) || continue
  # As of an application that has started DPDK without the cards: each test attaches them, and gives them up again.
  mkdir /run/huge && mount -t hugetlbfs none /run/huge
  PACELINE_DPDK_EAL="-a 0000:00:1f.2 --file-prefix=late --huge-dir=/run/huge" \
    check "$model: cards that come later" frames
  addresses=("${ipv4[@]}")
  for op in write write_imm; do pair $op in_place "" --op $op --size 20000 --iterations 50; done
  pair atomic copies "" --op atomic --iterations 50
  PACELINE_KEY_FILE=/run/key pair "under a key" copies "" --size 20000 --iterations 50
  PACELINE_KEY_FILE=/run/key PACELINE_ENCRYPT=1 pair "encrypted" copies "" --size 20000 --iterations 50
  # Nobody, without capabilities, who may open the cards' groups and pin memory.
  chown nobody /dev/vfio/[0-9]* && chmod 666 /dev/vfio/vfio && ulimit -l unlimited
  as=(setpriv --reuid nobody --regid nogroup --clear-groups)
  pair "without root" in_place "" --size 20000 --iterations 50
  as=()
done
finish
