#!/bin/bash
# The program under mpirun, with all messages over the provider: mpi_test.sh MPIRUN PROGRAM PROVIDER_FOLDER LANE RANKS
set -euo pipefail
mpirun=$1 program=$2 provider=$3 lane=$4 ranks=$5
[[ -n $program ]] || { echo "skipped: libfabric-dev or libopenmpi-dev not installed"; exit 77; }
[[ -x $mpirun ]] || { echo "skipped: openmpi-bin not installed"; exit 77; }
export FI_PROVIDER_PATH=$provider PACELINE_KEY_FILE=none PACELINE_LANE=$lane
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

output=$(timeout 170 "$mpirun" --oversubscribe -np "$ranks" --mca pml cm --mca mtl ofi \
  --mca mtl_ofi_provider_include paceline -x FI_PROVIDER_PATH -x PACELINE_KEY_FILE -x PACELINE_LANE "$program" 2>&1) ||
  { echo "failed: $output"; exit 1; }
grep -q "$ranks ranks: all checks passed" <<<"$output" || { echo "failed: $output"; exit 1; }
