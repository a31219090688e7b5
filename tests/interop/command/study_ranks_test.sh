#!/bin/bash
# The runs of a study spread over processes by mpirun: the same bytes as from one process, and one message when something
# fails. Arguments: the command, mpirun (empty: not there), the command's MPI module (empty: built without), sanitizers.
# Status 77: not possible here.
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/study_common.sh"
mpirun=$2 module=$3 sanitizers=$4

skip() {
  echo "skipped: $*"
  exit 77
}
[ -n "$mpirun" ] || skip "no mpirun (openmpi-bin)"
[ -n "$module" ] || skip "built without MPI (libopenmpi-dev)"
"$mpirun" --version | grep -q "Open MPI" || skip "$mpirun is not that of Open MPI"
[[ $sanitizers != *thread* ]] || skip "the thread sanitizer does not know how Open MPI's threads wait for each other"
# What Open MPI itself leaves behind.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

# One machine, whoever we are, however few its cores, with or without ssh.
options=(--oversubscribe --mca plm isolated --mca btl self,vader,tcp)
((EUID != 0)) || options+=(--allow-run-as-root)

# ranks NAME STATUS ARGUMENTS...: mpirun with these arguments, in the folder NAME.
ranks() {
  local name=$1 wanted=$2 status=0
  shift 2
  in_folder "$name" "$mpirun" "${options[@]}" "$@" || status=$?
  [ $status -eq "$wanted" ] && return
  fail "mpirun $*: status $status, not $wanted"
  cat "$work/$name/shown" "$work/$name/errors" >&2
}

# says NAME TEXT: our word of what went wrong was said once, and has this text.
says() {
  if [ "$(grep -c "^paceline study: " "$work/$1/errors")" -ne 1 ] || ! grep -q "^paceline study: .*$2" "$work/$1/errors"; then
    fail "$1: not one message with \"$2\""
    cat "$work/$1/errors" >&2
  fi
}

study=("$paceline" study ../study.toml --out out)
in_folder alone "${study[@]}" --jobs 1 || fail "one process: status $?"
for count in 1 2 3; do
  ranks mpirun$count 0 -n $count "${study[@]}"
  same alone mpirun$count
done
ranks two_jobs 0 -n 2 "${study[@]}" --jobs 2
same alone two_jobs
ranks more_than_runs 0 -n 7 "${study[@]}"
same alone more_than_runs

# What fails in all, in rank 0 when it writes, in one rank, and between ranks.
echo "[fabric]" >"$work/bad.toml" && echo "hosts = -1" >>"$work/bad.toml"
ranks bad 2 -n 2 "$paceline" study ../bad.toml --out out
says bad "hosts"
[ ! -e "$work/bad/out" ] || fail "a bad file has made a folder"
ranks nameless 2 -n 2 "$paceline" study
says nameless "name a scenario"
ranks unwritable 1 -n 2 "$paceline" study ../study.toml --out ../study.toml/out
says unwritable "cannot create"
ranks no_json 1 -n 2 "$paceline" study ../study.toml --json no/such/folder
says no_json "cannot write"
ranks missing 2 -n 1 "${study[@]}" : -n 1 "$paceline" study ../nowhere.toml --out out
says missing "rank 1 on .*nowhere.toml"
ranks other 1 -n 1 "${study[@]}" : -n 1 "${study[@]}" --set workload.fan_in=5
says other "rank 1 on .*another scenario"
[ ! -e "$work/other/out/results.json" ] || fail "two studies have made one result"

# A run that misses its deadline: everything is written all the same.
ranks late 1 -n 2 "${study[@]}" --set run.deadline_us=5
[ -s "$work/late/out/report.html" ] || fail "no report of runs that missed their deadline"
grep -q "missed the deadline" "$work/late/shown" || fail "the table of runs that missed their deadline"

# Every rank leaves with the status of rank 0.
ranks each 0 -n 2 bash -c '"$@"; echo $? >"status$OMPI_COMM_WORLD_RANK"' - "${study[@]}" --set run.deadline_us=5
[ "$(cat "$work/each/status0" "$work/each/status1")" = $'1\n1' ] || fail "the ranks' statuses: $(cat "$work"/each/status?)"

# As srun --mpi=pmix starts them: SLURM's variables and PMIx, here that of mpirun, which says nothing of itself.
slurm=(env SLURM_JOB_ID=77 SLURM_JOBID=77 SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_NODELIST=here SLURM_NTASKS=2
       SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2)
as_srun='export SLURM_PROCID=$OMPI_COMM_WORLD_RANK
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE; exec "$@"'
ranks srun 0 -n 2 bash -c "$as_srun" - "${slurm[@]}" "${study[@]}"
same alone srun
ranks srun_bad 2 -n 2 bash -c "$as_srun" - "${slurm[@]}" "$paceline" study ../bad.toml --out out
says srun_bad "hosts"

# As srun starts them without PMIx: refused by both, said by rank 0.
for rank in 0 1; do
  status=0
  in_folder srun_alone$rank "${slurm[@]}" SLURM_PROCID=$rank "${study[@]}" || status=$?
  [ $status -eq 1 ] || fail "srun without PMIx, rank $rank: status $status"
done
says srun_alone0 "srun started 2 processes, but without PMIx"
[ ! -s "$work/srun_alone1/errors" ] || fail "rank 1 of srun without PMIx speaks: $(cat "$work/srun_alone1/errors")"

ranks list 0 -n 2 "$paceline" study --list
cmp "$work/list/shown" <("$paceline" study --list) || fail "--list in two processes"
finish
