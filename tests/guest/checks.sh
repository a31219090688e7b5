# What every script in a guest begins with: modules can be loaded, and what failed is counted. Sourced.
load() { modprobe -d "$MODULES" -S "$(uname -r)" "$@"; }

ip link set lo up
export PACELINE_CONNECT_TIMEOUT_MS=30000  # an emulated processor that shares its own may be long with a key exchange

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
