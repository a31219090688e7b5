# Two network namespaces $a and $b, joined by a virtual cable: interface v0, 198.51.100.1 in $a and .2 in $b. Ends the
# script with status 77 where that is not possible. Behind common.sh.

a=pcl$$a b=pcl$$b
if ! ip netns add $a 2>/dev/null; then
  echo "skipped: no right to make network namespaces"
  exit 77
fi
trap 'ip netns del $a; ip netns del $b; rm -rf "$work"' EXIT
ip netns add $b
ip link add v0 netns $a type veth peer name v0 netns $b || { echo "skipped: no veth"; exit 77; }
# As `ip netns exec` and `ip -n`, which fail where / is not a mount of its own (chroot).
inside() {
  local space=$1
  shift
  timeout 60 nsenter --net=/run/netns/$space "$@"
}

inside $a ip addr add 198.51.100.1/24 dev v0
inside $b ip addr add 198.51.100.2/24 dev v0
for space in $a $b; do inside $space ip link set v0 up; done
sleep 0.2

# A second cable: v1, 203.0.113.1 in $a and .2 in $b.
add_cable() {
  local space
  ip link add v1 netns $a type veth peer name v1 netns $b || { echo "skipped: no veth"; exit 77; }
  inside $a ip addr add 203.0.113.1/24 dev v1
  inside $b ip addr add 203.0.113.2/24 dev v1
  for space in $a $b; do inside $space ip link set v1 up; done
  sleep 0.2
}
