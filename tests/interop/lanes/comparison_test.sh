#!/bin/bash
# tools/compare_lanes measures what needs no privilege, skips what cannot run with the reason, and reports what fails:
#   comparison_test.sh BUILD_FOLDER
set -uo pipefail
build=$1
command -v python3 >/dev/null || { echo "skipped: python3 not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; cat "$work/output"; exit 1; }

seconds=100
compare() {
  timeout $seconds python3 -B "$(dirname "$0")/../../../tools/lane_comparison/compare.py" --out "$work" --quick "$@" \
    >"$work/output" 2>&1
}

# holds EXPRESSION: is it true of the results, by name in `rows`, and of all that was written, `d`?
holds() {
  python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
rows = {row["row"]: row for row in d["results"]}
sys.exit(not eval(sys.argv[2]))' "$work/comparison.json" "$1" || { cat "$work/comparison.json"; fail "not true: $1"; }
}

# Bars may be met or missed.
compare --build "$build" --rows shm,connections,idle --rounds 2
(($? <= 1)) || fail "wrong use"
holds 'len(rows) == 3 and not [p for p in d["problems"] if p["failed"]]'
holds 'all(c["rounds"] + r["rounds_left_out"] == 2 for r in rows.values() for c in r["contenders"] if c["kind"] != "peer")'
holds 'all(b["verdict"] in ("met", "missed") for r in rows.values() for b in r["bars"])'
holds 'len([b for b in rows["connections"]["bars"] if b["over"] == "n1"]) == 3'
holds 'all(s["core_distance_us"] > 0 and s["tries"] >= 1 for s in d["samples"])'
grep -q '^| Paceline, 1000 | Paceline | [0-9]' "$work/comparison.md" || fail "no value for 1000 connections"
grep -q 'class BarChart' "$work/comparison.html" || fail "no charts"

# A build without the program for one row, and with a broken one for another; one more row needs what is not there.
mkdir -p "$work/build/bin" "$work/build/benchmarks"
ln -s "$build/bin/paceline" "$work/build/bin/paceline"
printf '#!/bin/sh\necho "no such luck" >&2\nexit 3\n' >"$work/build/benchmarks/many_connections"
chmod +x "$work/build/benchmarks/many_connections"
compare --build "$work/build" --rows idle,connections
(($? == 1)) || fail "a program that fails: not exit status 1"
holds '"idle_wait was not built" in rows["idle"]["skipped"]'
holds '{p["why"] for p in d["problems"] if p["failed"]} == {"many_connections: exit status 3: no such luck"}'
grep -q '\*\*Skipped: benchmarks/idle_wait was not built' "$work/comparison.md" || fail "the skipped row is not seen"

# Folders are the user's, wherever the command is called from. (Nothing is installed here.)
mkdir "$work/installed"
printf '#!/bin/sh\nprintf installed\n' >"$work/installed/dpkg-query"
chmod +x "$work/installed/dpkg-query"
command=$(cd "$(dirname "$0")/../../../tools" && pwd)/compare_lanes
(cd "$work" && PATH=$work/installed:$PATH timeout 60 "$command" --quick --rows idle --build build --out out) \
  >"$work/output" 2>&1
[[ -e $work/out/comparison.json ]] || fail "the results are not where they were wanted"

# Ended in between: what there is is written, and nothing goes on.
seconds=3
compare --build "$build" --rows shm --seconds 30
grep -q '^Interrupted' "$work/output" || fail "not interrupted"
holds '"shm" in rows and d["samples"] == []'
! pgrep --full "$build/benchmarks/shm_yardsticks --seconds 30" >/dev/null || fail "a program goes on"

# Before it measures: there is no place for the results.
compare --build "$build" --rows shm --out "$work/comparison.json/results"
(($? == 2)) && grep -q 'comparison.json/results: Not a directory' "$work/output" || fail "a folder in a file: not exit status 2"

compare --build "$build" --rows no_such_row
(($? == 2)) || fail "an unknown row: not exit status 2"
exit 0
