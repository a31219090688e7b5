#!/bin/bash
# The runs of a study on one core and on two: the same bytes. And what a Paceline without MPI says under a launcher.
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/study_common.sh"

for jobs in 1 2; do
  in_folder $jobs "$paceline" study ../study.toml --out out --jobs $jobs || fail "--jobs $jobs: status $?"
done
same 1 2

# A copy of the command has no modules beside it.
mkdir "$work/bin" && cp "$paceline" "$work/bin/paceline"
as_rank() {
  OMPI_COMM_WORLD_RANK=$1 OMPI_COMM_WORLD_SIZE=2 in_folder "rank$1" "$work/bin/paceline" study ../study.toml --out out
  local status=$?
  [ $status -eq 1 ] || fail "rank $1 without MPI: status $status"
  [ ! -e "$work/rank$1/out" ] || fail "rank $1 without MPI has written something"
  [ ! -s "$work/rank$1/shown" ] || fail "rank $1 without MPI has shown something"
}
as_rank 0
grep -q "mpirun started 2 processes.*built without MPI.*libopenmpi-dev" "$work/rank0/errors" || fail "rank 0's message"
as_rank 1
[ ! -s "$work/rank1/errors" ] || fail "rank 1 speaks too"
finish
