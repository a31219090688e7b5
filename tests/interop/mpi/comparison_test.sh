#!/bin/bash
# tools/compare_mpi measures two transports on this machine, and reports a program that hangs as such:
#   comparison_test.sh MPIRUN PROGRAM BUILD_FOLDER
set -uo pipefail
mpirun=$1 program=$2 build=$3
[[ -n $program ]] || { echo "skipped: libfabric-dev or libopenmpi-dev not installed"; exit 77; }
[[ -x $mpirun ]] || { echo "skipped: openmpi-bin not installed"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: python3 not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; cat "$work/output"; exit 1; }

compare() {
  timeout 150 python3 -B "$(dirname "$0")/../../../tools/mpi_comparison/compare.py" --build "$build" --out "$work" \
    --networks host --rounds 1 --seconds 0.02 "$@" >"$work/output" 2>&1
}

# holds EXPRESSION: is it true of the results `d`?
holds() {
  python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' \
    "$work/comparison.json" "$1" || { cat "$work/comparison.json"; fail "not true: $1"; }
}

compare --program "$program" --transports paceline,ob1_tcp --ranks 2 --sizes 8,65536 --pair-sizes 8 || fail "status $?"
holds 'len(d["results"]) == 12 and not d["failures"]'  # two transports: 2 operations of 2 sizes, 2 of one
holds 'all(0 < r["p50_us"]["median"] <= r["p99_us"]["median"] for r in d["results"])'
grep -q '^| alltoall 64 KiB |' "$work/comparison.md" || fail "no row for alltoall in the table"
grep -q 'uPlot' "$work/comparison.html" || fail "no charts"

for wrong in "--sizes nonsense" "--sizes 8,12" "--pair-sizes 134217728" "--sizes 8," "--seconds 61"; do
  # shellcheck disable=SC2086
  compare --program "$program" --transports ob1_tcp --ranks 2 $wrong
  (($? == 2)) || fail "$wrong: not exit status 2"
  grep -q -- "${wrong%% *}" "$work/output" || fail "$wrong: the message does not name it"
done

printf '#!/bin/sh\nexec sleep 600\n' >"$work/hangs"
chmod +x "$work/hangs"
compare --program "$work/hangs" --transports ob1_tcp --ranks 2 --no-pairs --timeout 2
(($? == 1)) || fail "a program that hangs: not exit status 1"
holds 'd["failures"][0]["wrong"] == "not done within 2 s" and not d["results"]'

# Files and folders are the user's, wherever the command is called from. (Nothing is installed or built here.)
mkdir "$work/done"
printf '#!/bin/sh\nprintf installed\n' >"$work/done/dpkg-query"
printf '#!/bin/sh\n' >"$work/done/cmake"
chmod +x "$work/done/dpkg-query" "$work/done/cmake"
ln -s "$build" "$work/build"
command=$(cd "$(dirname "$0")/../../../tools" && pwd)/compare_mpi
rm "$work/comparison.json"
(cd "$work" && PATH=$work/done:$PATH timeout 60 "$command" --program hangs --build build --out . --networks host \
  --transports ob1_tcp --ranks 2 --no-pairs --rounds 1 --timeout 2) >"$work/output" 2>&1
(($? == 1)) || fail "from the user's folder: not exit status 1"
holds 'd["failures"][0]["wrong"] == "not done within 2 s"'
exit 0
