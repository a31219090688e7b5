# Shared by the tests of studies whose runs are spread: a study of two sections, five runs, and what is compared.
cat >"$work/study.toml" <<'TOML'
title = "Spread"
[fabric]
topology = "leaf_spine"
hosts = 8
tor_radix = 4
[workload]
kind = "incast"
fan_in = 4
bytes = 60000
[[section]]
title = "four runs"
cc = { algorithms = ["tita", "dcqcn"] }
run = { seeds = [1, 2] }
[[section]]
title = "one run"
workload = { kind = "alltoall", bytes = 5000 }
cc = { algorithms = ["swift"] }
TOML

# in_folder NAME COMMAND...: runs it in the new folder $work/NAME; its standard output is in the file `shown` there, its
# standard error in `errors`.
in_folder() {
  local folder=$work/$1
  shift
  rm -rf "$folder" && mkdir "$folder" && (cd "$folder" && timeout 120 "$@" >shown 2>errors)
}

# same FOLDER FOLDER: all that the two hold is the same, wall-clock time apart.
same() {
  local file
  for file in shown out/flows.csv out/results.json out/report.html; do
    cmp <(without_wall "$work/$1/$file") <(without_wall "$work/$2/$file") || fail "$file of $1 and $2"
  done
  [ "$(wc -l <"$work/$1/out/flows.csv")" -eq $((1 + 4 * 4 + 56)) ] || fail "flows.csv of $1 has other lines than flows"
}

without_wall() {
  [ -s "$1" ] || { fail "$1 is missing or empty"; return; }
  sed -E 's/"wall_s": ?[0-9.e+-]+//g' "$1"
}
