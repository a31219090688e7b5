# What the scripts here begin with: the modules, and functions that make RDMA devices. Sourced.
. "$(dirname "${BASH_SOURCE[0]}")/../guest/checks.sh"
load -a crc32_generic udp_tunnel ip6_udp_tunnel veth virtio_net sch_netem ib_uverbs rdma_ucm rdma_rxe

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
