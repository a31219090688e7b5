#!/bin/bash
# What a study reads and writes: folders and odd names in place of files, and all that can be written although something
# cannot.
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/study_common.sh"

expect 2 "cannot read \"$work\": Is a directory" study "$work"
expect 2 "cannot read \"$work\": Is a directory" study --cm "$work"
expect 2 "neither llama3-70b nor a file that can be read: Is a directory" study --traffic "$work"
expect 0 "tita" study <(cat "$work/study.toml")

# A --json that cannot be written is told before anything runs.
refused() {
  rm -rf "$work/out_of"
  expect 1 "cannot write \"$1\": $2" study "$work/study.toml" --json "$1" --out "$work/out_of"
  [ ! -e "$work/out_of/flows.csv" ] || fail "--json $1: it ran all the same"
}
refused "$work/missing/results.json" "No such file or directory"
refused "$work/study.toml/results.json" "Not a directory"
refused "$work" "Is a directory"
expect 0 "report: " study "$work/study.toml" --json "$work/own/own.json" --out "$work/own"
cmp "$work/own/own.json" "$work/own/results.json" || fail "--json inside of --out"

# The disk is full for one of the files.
expect 1 'cannot write "/dev/full": No space left on device' study "$work/study.toml" --json /dev/full --out "$work/full"
grep -q "^tita" "$work/out" || fail "no table beside a full disk"
for file in flows.csv results.json report.html; do
  [ -s "$work/full/$file" ] || fail "$file is not written because of --json"
done
mkdir -p "$work/partly/flows.csv"
expect 1 "flows.csv\": Is a directory" study "$work/study.toml" --out "$work/partly"
for file in results.json report.html; do
  [ -s "$work/partly/$file" ] || fail "$file is not written because of flows.csv"
done

# A name that TOML and the shell would take for something else.
odd="$work/it's \"a\" \\ 'b'"
mkdir "$odd"
printf 'Nodes 2\nConnections 1\n0->1 start 0 size 10000\n' >"$odd/one.cm"
expect 0 "tita" study --cm "$odd/one.cm" --out "$work/odd"
field "$work/odd/results.json" "d['runs'][0]['finished'] == 1"
command=$(python3 - "$work/odd/report.html" <<'PY'
import html, re, sys
print(html.unescape(re.search(r"paceline study --cm [^<]*", open(sys.argv[1]).read())[0]))
PY
)
eval "set -- $command"
[ "${4:-}" = "$odd/one.cm" ] || fail "the report's command names ${4:-nothing}: $command"
finish
