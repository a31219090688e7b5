# Shared by the tests of the command: each script sets -u, gets the command as $1 and calls `finish` at its end.

paceline=$1
failures=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# cluster_key FILE: a new one, for nobody else to read.
cluster_key() { (umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$1"); }

# expect STATUS TEXT ARGUMENTS...: the exit status, and (unless empty) a text that the output must hold.
expect() {
  local wanted=$1 text=$2 status=0
  shift 2
  timeout 60 "$paceline" "$@" >"$work/out" 2>&1 || status=$?
  [ "$status" -eq "$wanted" ] || { fail "paceline $*: status $status, not $wanted"; cat "$work/out" >&2; }
  if [ -n "$text" ] && ! grep -qF -- "$text" "$work/out"; then
    fail "paceline $*: output lacks \"$text\""
    cat "$work/out" >&2
  fi
}

# holds FILE EXPRESSION: is a Python expression of the JSON object `d` true?
holds() {
  python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "$2"
}

# field FILE EXPRESSION: it must be true.
field() {
  holds "$1" "$2" || { fail "not true of $1: $2"; cat "$1" >&2; }
}

finish() {
  [ "$failures" -eq 0 ] && echo "all as expected"
  exit $((failures > 0))
}
