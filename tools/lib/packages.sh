# Debian packages that Paceline needs, by purpose, and how they get installed. Sourced by tools/quickstart and tools/test.

packages_build=(
  cmake ninja-build g++ pkg-config
  libabsl-dev libcli11-dev libisal-dev libssl-dev libtomlplusplus-dev nlohmann-json3-dev
)
packages_test=(libgtest-dev libgmock-dev libbenchmark-dev python3 python3-numpy liburing-dev)
packages_network_test=(iproute2 nftables)  # namespaces and packet drops; tests skip without them
packages_mpi=(libopenmpi-dev openmpi-bin)  # studies under mpirun; their test skips without them
packages_libfabric=(libfabric-dev libfabric-bin)  # the libfabric provider and its tests
packages_verbs=(libibverbs-dev)  # the verbs lane and its tests
packages_xdp=(libxdp-dev libbpf-dev clang)  # the xdp lane; clang compiles its program for the kernel
packages_dpdk=(libdpdk-dev)  # the dpdk lane and its tests; 140 MB with all drivers, which it depends on
# The virtual machines of tests/guest; what runs in them skips without.
packages_guests=(qemu-system-x86 busybox-static cpio kmod iproute2 ibverbs-providers ibverbs-utils perftest)
packages_thorough=(clang libclang-rt-14-dev clang-format clang-tidy cppcheck valgrind)
packages_comparison=(python3 iproute2 libucx0)  # what tools/compare_mpi sets beside Paceline
# What tools/compare_lanes sets beside Paceline, and what counts instructions.
packages_peers=(iproute2 nftables iperf3 ucx-utils libfabric-bin valgrind)
packages_coverage=(gcovr)

# install_missing PACKAGE ...: installs those that are missing, as root or with sudo where that asks nothing. Ends the
# script with the command to run by hand when it cannot.
install_missing() {
  local missing=() package
  if ! command -v dpkg-query >/dev/null; then
    echo "Not a Debian system: packages are taken as they are. On Debian 12 these would be needed: $*" >&2
    return 0
  fi
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    if ! sudo -n true 2>/dev/null; then
      echo "These packages are missing, and installing them needs root (or sudo without a password). Run as root:" >&2
      echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo -n)
  fi
  echo "Installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get -qq -o Dpkg::Use-Pty=0)
  "${apt[@]}" update && "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null && return 0
  echo "The packages could not be installed; see above." >&2
  exit 1
}
