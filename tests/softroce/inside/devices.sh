# What every script in a guest begins with: the modules, functions that make RDMA devices, and a count of what failed.
# Sourced.
load() { modprobe -d "$MODULES" -S "$(uname -r)" "$@"; }
load -a crc32_generic udp_tunnel ip6_udp_tunnel veth virtio_net sch_netem ib_uverbs rdma_ucm rdma_rxe

ip link set lo up

# device NAME INTERFACE ADDRESS: an RDMA device on an interface, whose MTU has room for RDMA packets of 4096 bytes.
device() {
  ip link set "$2" mtu 4200 up
  ip address add "$3/24" dev "$2"
  rdma link add "$1" type rxe netdev "$2" || { echo "failed: no RDMA device on $2"; exit 1; }
}

# ready NAME: waits until the port is active.
ready() {
  local try
  for ((try = 0; try < 100; ++try)); do
    ibv_devinfo -d "$1" 2>/dev/null | grep -q PORT_ACTIVE && return
    sleep 0.1
  done
  echo "failed: the port of $1 does not become active"
  exit 1
}

# check NAME COMMAND ...: says whether it worked; if not, what it printed.
failures=0
check() {
  local name=$1 status
  shift
  "$@" >/run/check 2>&1
  status=$?
  ((status == 0)) || cat /run/check
  report "$name" $status
}

# report NAME STATUS: with the seconds since the last report.
reported=0
report() {
  local took=$((SECONDS - reported))
  reported=$SECONDS
  if (($2 == 0)); then
    echo "$1: passed ($took s)"
  else
    echo "$1: FAILED (status $2, $took s)"
    failures=$((failures + 1))
  fi
}

# Where something failed, the kernel may know why.
finish() {
  ((failures > 0)) || exit 0
  echo "the kernel's last words:"
  dmesg | tail -n 15
  exit 1
}
