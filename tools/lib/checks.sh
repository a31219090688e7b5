# The steps of tools/test and their sum. Sourced; every step runs, whatever failed before it.

passed=0 failed=0 skipped=0
configure_options=()
failures=$(mktemp)  # what failed, and what it printed; shown again at the end
trap 'rm -f "$failures"' EXIT

# quietly LOG COMMAND ...: on a terminal as it is, elsewhere only into the file LOG, of which a failure shows the end.
quietly() {
  local log=$1
  shift
  if [[ -t 1 ]]; then "$@"; return; fi
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 && return
  tail -n 80 "$log"
  return 1
}

# fail STEP: counts a step that failed as a whole.
fail() {
  failed=$((failed + 1))
  echo "$1" >>"$failures"
  echo "== $1"
}

# check NAME COMMAND ...: one step that passes or fails as a whole.
check() {
  local name=$1
  shift
  echo "== $name"
  local start=$SECONDS
  if "$@"; then
    passed=$((passed + 1))
    echo "== $name: passed ($((SECONDS - start)) s)"
  else
    fail "$name: FAILED ($((SECONDS - start)) s)"
  fi
}

build_preset() {
  cmake --preset "$1" -DPACELINE_BUILD_TESTS=ON "${configure_options[@]}" &&
    quietly "build/$1/build.log" cmake --build --preset "$1"
}

# build_and_test PRESET [ctest arguments ...]: adds ctest's numbers to the sum; a build that fails counts as one failure.
build_and_test() {
  local preset=$1 start=$SECONDS
  shift
  echo "== $preset"
  if ! build_preset "$preset"; then
    fail "$preset: FAILED to build"
    return
  fi
  echo "== $preset: built in $((SECONDS - start)) s"
  # Sanitizers of this age lose their way where the kernel randomises addresses over many bits.
  local fixed_addresses=()
  if [[ $preset =~ ^(asan|clang-asan|tsan|fuzz)$ ]] && setarch -R true 2>/dev/null; then
    fixed_addresses=(setarch -R)
  fi
  local junit=$PWD/build/$preset/junit.xml status=0
  rm -f "$junit"
  quietly "build/$preset/ctest.log" "${fixed_addresses[@]}" \
    ctest --preset "$preset" --parallel "$(nproc)" --output-junit "$junit" "$@" || status=$?
  add_results "$preset" "$junit" "$status"
  echo "== $preset: done in $((SECONDS - start)) s"
}

# add_results PRESET JUNIT_FILE CTEST_STATUS: counts tests, and prints why each skipped one was skipped.
add_results() {
  local new_passed=0 new_failed=0 new_skipped=0 report
  if [[ -e $2 ]]; then
    report=$(awk -v preset="$1" -v failures="$failures" -f tools/lib/junit.awk "$2")
    read -r new_passed new_failed new_skipped <<<"${report##*$'\n'}"
    [[ $report != *$'\n'* ]] || echo "${report%$'\n'*}"
  fi
  # ctest failed and no test did: it found nothing to run, or broke off.
  if (($3 != 0 && new_failed == 0)); then fail "$1: ctest FAILED, and no test did"; fi
  passed=$((passed + new_passed)) failed=$((failed + new_failed)) skipped=$((skipped + new_skipped))
}

sources() {
  find transport cc gpudirect api tools tests -name vendor -prune -o \
    -type f \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) -print
}

check_format() {
  sources | xargs clang-format --dry-run --Werror
}

# check_tidy FOLDERS: over the sources of a build whose path matches the regular expression.
check_tidy() {
  local build=build/tidy
  cmake --preset clang-asan -B $build -DPACELINE_BUILD_TESTS=ON -DPACELINE_PRECOMPILED_HEADERS=OFF >/dev/null || return 1
  grep -o '"file": "[^"]*"' $build/compile_commands.json | cut -d'"' -f4 | grep -v /build/ | grep -E "$1" | sort -u |
    quietly $build/tidy.log xargs -P "$(nproc)" -n 4 clang-tidy -p $build --quiet --warnings-as-errors='*'
}

check_cppcheck() {
  cppcheck --quiet --enable=warning,performance,portability --inline-suppr --error-exitcode=1 --std=c++20 --std=c11 \
    -I . -I api/cpp -I api/c transport cc gpudirect api tools
}

# What only runs on hardware that test machines lack, by name: left out of the coverage, and listed below its table.
needs_hardware=()

# check_coverage: the table of what the processes of build/coverage ran; fails below 90 % of transport/ and cc/.
check_coverage() {
  local build=build/coverage file left_out=()
  for file in "${needs_hardware[@]}"; do left_out+=(--exclude "$file"); done
  rm -rf $build/report && mkdir -p $build/report &&
    quietly $build/gcovr.log gcovr --filter '(transport|cc|gpudirect|api|tools)/' "${left_out[@]}" \
      --object-directory $build --csv $build/coverage.csv --html-details $build/report/index.html $build &&
    awk -v least=90 -v left_out="${needs_hardware[*]}" -f tools/lib/coverage.awk $build/coverage.csv
}

# finish: what failed, the closing line, and the exit status.
finish() {
  if ((failed > 0)); then
    echo "== what failed"
    cat "$failures"
  fi
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0)) || exit 1
  exit 0
}
