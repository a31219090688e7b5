#!/bin/bash
# The program under mpirun, with all messages over the provider, and with "one-sided" windows over its one-sided
# operations too: mpi_test.sh MPIRUN PROGRAM PROVIDER_FOLDER LANE RANKS [one-sided | large]
# "large": a message of 2 GiB, which takes 4 GiB of memory.
# Ranks of one host share the memory of windows among themselves, so there each has a host name of its own.
set -euo pipefail
mpirun=$1 program=$2 provider=$3 lane=$4 ranks=$5 way=${6:-messages}
[[ -n $program ]] || { echo "skipped: libfabric-dev or libopenmpi-dev not installed"; exit 77; }
[[ -x $mpirun ]] || { echo "skipped: openmpi-bin not installed"; exit 77; }
export PACELINE_KEY_FILE=none PACELINE_LANE=$lane
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

arguments=() least_bytes=1000000
if [[ $way == large ]]; then
  arguments=(large) least_bytes=$((2 ** 31))
  free=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
  ((free >= 6)) || { echo "skipped: takes 6 GiB of memory, $free are free"; exit 77; }
fi
options=(-np "$ranks" --mca mpi_yield_when_idle 1 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include paceline)
if [[ $way == one-sided ]]; then
  unshare -u true 2>/dev/null || { echo "skipped: may not make host names (needs root)"; exit 77; }
  # In the place of ssh: HOST COMMAND..., after its options.
  cat >"$folder/shell" <<'END'
#!/bin/bash
while [[ $1 == -* ]]; do shift; done
host=$1
shift
exec unshare -u bash -c "hostname $host; $*"
END
  chmod +x "$folder/shell"
  options+=(-H "$(seq -s, -f 'host%g:1' "$ranks")" --mca plm rsh --mca plm_rsh_agent "$folder/shell")
  options+=(--mca oob_tcp_if_include lo --mca osc rdma --mca osc_rdma_btls ofi --mca btl ofi,self)
  options+=(--mca btl_ofi_provider_include paceline)
else
  options+=(--oversubscribe --mca osc pt2pt)
fi
# The provider is for the ranks alone: mpirun would load it too, which a build with sanitizers does not take.
options+=(-x "FI_PROVIDER_PATH=$provider" -x PACELINE_KEY_FILE -x PACELINE_LANE ${ASAN_OPTIONS:+-x ASAN_OPTIONS})
output=$(timeout 170 "$mpirun" "${options[@]}" "$program" "${arguments[@]}" 2>&1) ||
  { echo "failed: $output"; exit 1; }
grep -q "$ranks ranks: all checks passed" <<<"$output" || { echo "failed: $output"; exit 1; }
counts=$(grep '^one-sided: ' <<<"$output") || { echo "failed: no counts: $output"; exit 1; }
if [[ $way == one-sided ]]; then
  [[ ! $counts =~ \ 0\  ]] || { echo "failed: windows went by messages: $counts"; exit 1; }
else
  [[ $counts == 'one-sided: 0 writes, 0 reads, 0 atomics' ]] || { echo "failed: not by messages: $counts"; exit 1; }
fi
bytes=$(sed -n 's/^bytes: //p' <<<"$output")
((bytes >= least_bytes)) || { echo "failed: only $bytes bytes through the provider: $output"; exit 1; }
echo "$counts; $bytes bytes"
