#!/bin/bash
# Runs test programs and counts: `tests/run.sh PROGRAM...`, each build/tests/MODULE (Criterion), build/asan/fuzz/NAME, or
# build/tsan/tests/threads (the suites of backend_real that have threads, under ThreadSanitizer). `PROGRAM=SUITE`,
# or SUITE/TEST, are the tests of a Criterion program that these patterns name, one at a time. `make check` builds them and calls
# this; `make check-verbs` calls it in a virtual machine.
#
# One line a program; failures are shown in full, tests that were skipped with their reason. A program fails also when it
# crashes, runs out of time, runs no test, or when a sanitizer wrote a report. Of a fuzz target, the replay of its corpus
# is one test and the mutations are another. The last line is `N passed, N failed, N skipped`; exit status 1 if any failed.
# BUILD/check/failures keeps what was shown of failures, for a caller that prints much after it.
#
# BUILD=build: the folder of distmind-sim; logs go to BUILD/check, or LOGS. SANITIZE=1: these are sanitized programs.
# FUZZ_CHECK_SECONDS=5: mutations a target. FUZZ_SEED: of the mutations, else drawn anew and printed.
# PROGRAM_LIMIT_S: for one program; 300, sanitized 900. TRACES: folder of real traces, default ../shared/traces.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

BUILD=${BUILD:-build}
SANITIZE=${SANITIZE:-0}
logs=${LOGS:-$PWD/$BUILD/check}
program_limit_s=${PROGRAM_LIMIT_S:-$((SANITIZE == 1 ? 900 : 300))}
fuzz_seconds=${FUZZ_CHECK_SECONDS:-5}
fuzz_seed=${FUZZ_SEED:-$RANDOM}
passed=0 failed=0 skipped=0

export DISTMIND_SIM=$PWD/$BUILD/distmind-sim
export TRACES=${TRACES:-$PWD/../shared/traces}
# A folder of temporary files of this run's own: what others left beside theirs is found by no relative path of a test.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/distmind-check-XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
export G_DEBUG=fatal-criticals G_SLICE=always-malloc
export LC_ALL=C.UTF-8

# sanitizers NAME: reports of what NAME runs, and of the programs that it runs in turn, go to files of their own. Their exit
# status is none of the program's own.
sanitizers() {
  local reports=$logs/$1.reports
  mkdir -p "$reports"
  export ASAN_OPTIONS=log_path=$reports/asan:exitcode=99:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:hard_rss_limit_mb=3000
  export UBSAN_OPTIONS=log_path=$reports/ubsan:exitcode=99:print_stacktrace=1
  export TSAN_OPTIONS=log_path=$reports/tsan:exitcode=66
}

# Shows what comes in of a failure, and keeps it.
of_failure() { sed 's/^/  /' | tee -a "$logs/failures"; }

# count_reports NAME FAILURES: shows the sanitizer reports of NAME; they are a failure if it has no other.
count_reports() {
  local reports
  mapfile -t reports < <(find "$logs/$1.reports" -type f -size +0 2>/dev/null | sort)
  [ ${#reports[@]} -gt 0 ] || return 0
  {
    echo "$1: ${#reports[@]} sanitizer report(s), in $logs/$1.reports"
    grep -h -m 1 -A 12 -E 'ERROR: |WARNING: ThreadSanitizer|runtime error: ' "${reports[0]}" | sed 's/^/  /'
  } | of_failure
  [ "$2" -gt 0 ] || failed=$((failed + 1))
}

describe() { printf '%-34s %4d passed, %d failed, %d skipped  %6.1f s\n' "$@"; }
seconds_since() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { print to - from }'; }

# What has threads, without the tests that kill processes: ThreadSanitizer does not follow a fork of one with threads.
thread_suites=(loop device transport transport_srd transport_tcp transport_paced pace control control_keys metrics_http ssd)

# run_program NAME PROGRAM ARGUMENT...: one that ends with Criterion's synthesis, or the like of it.
run_program() {
  local name=$1 program=$2 status start=$EPOCHREALTIME
  shift 2
  local log=$logs/$name.log
  sanitizers "$name"
  timeout --kill-after=10 "$program_limit_s" "$program" "$@" >"$log" 2>&1 </dev/null
  status=$?

  local synthesis tested=0 passing=0 failing=0 skipping
  synthesis=$(grep -E '^\[====\] Synthesis: ' "$log")
  if [[ $synthesis =~ Tested:\ ([0-9]+)\ \|\ Passing:\ ([0-9]+)\ \|\ Failing:\ ([0-9]+) ]]; then
    tested=${BASH_REMATCH[1]} passing=${BASH_REMATCH[2]} failing=${BASH_REMATCH[3]}
  fi
  skipping=$(sed -n 's/^\[SKIP\] //p' "$log" | grep -vE "${left_out:-^$}")
  local why=
  if [ $status -eq 124 ] || [ $status -eq 137 ]; then
    why="ran out of its $program_limit_s s"
  elif [ -z "$synthesis" ]; then
    why="died with status $status"
  elif [ "$tested" -eq 0 ] && [ -z "$skipping" ]; then
    why="ran no test"
  elif [ $status -ne 0 ] && [ "$failing" -eq 0 ]; then
    why="exited with status $status"
  fi
  local skips
  skips=$(grep -c . <<<"$skipping")
  [ -z "$why" ] || failing=$((failing + 1))
  describe "$name" "$passing" "$failing" "$skips" "$(seconds_since "$start")"
  passed=$((passed + passing)) failed=$((failed + failing)) skipped=$((skipped + skips))
  if [ "$failing" -gt 0 ]; then
    {
      echo "$name ${why:-has failures:}"
      grep -E '^\[FAIL\]' "$log"
      grep -vE '^\[(RUN |PASS|SKIP|====)\]|^\[----\] (Criterion v.*|  )$' "$log" | head -n 200
    } | of_failure
  fi
  sed -n 's/./  skipped &/p' <<<"$skipping"
  count_reports "$name" "$failing"
}

criterion=(--verbose --color=never --encoding=UTF-8)
run_criterion() { run_program "$(basename "$1")" "$1" --jobs "$2" "${criterion[@]}"; }
# Criterion calls the tests that were not chosen disabled, and lists them as skipped.
run_suite() {
  local suite=${2%%/*} tests='*'
  [[ $2 != */* ]] || tests=${2#*/}
  left_out=': Test is disabled$' run_program "$(basename "$1").${suite//[^a-z0-9_]/}" "$1" --jobs 1 --filter "$suite/$tests" \
    "${criterion[@]}"
}

start_fuzz() {
  local program=$1 name
  name=fuzz_$(basename "$program")
  sanitizers "$name"
  ASAN_OPTIONS+=:handle_abort=1 timeout --kill-after=10 "$(awk -v s="$fuzz_seconds" 'BEGIN { print int(s) + 120 }')" \
    "$program" --seconds "$fuzz_seconds" --seed "$fuzz_seed" --artifacts "$BUILD/findings" \
    "tests/fuzz/corpus/$(basename "$program")" >"$logs/$name.log" 2>&1 </dev/null
  echo $? >"$logs/$name.status"
}

count_fuzz() {
  local name line status replayed=0 mutated=0 inputs=0
  name=fuzz_$(basename "$1")
  status=$(cat "$logs/$name.status" 2>/dev/null || echo none)
  line=$(grep -E '^replayed [0-9]+ of [0-9]+ inputs; ' "$logs/$name.log")
  if [[ $line =~ replayed\ ([0-9]+)\ of\ ([0-9]+)\ inputs\;\ ([0-9]+) ]]; then
    replayed=${BASH_REMATCH[1]} inputs=${BASH_REMATCH[2]} mutated=${BASH_REMATCH[3]}
  fi
  local ok=0
  if [ "$inputs" -gt 0 ] && [ "$replayed" -eq "$inputs" ]; then
    ok=1
    if [ "$status" = 0 ] && [ "$mutated" -gt 0 ]; then
      ok=2
    fi
  fi
  printf '%-34s %4d passed, %d failed, 0 skipped  %s\n' "$name" $ok $((2 - ok)) "$line"
  passed=$((passed + ok)) failed=$((failed + 2 - ok))
  [ $ok -eq 2 ] || { echo "$name ended with status $status"; tail -n 30 "$logs/$name.log"; } | of_failure
  count_reports "$name" $((2 - ok))
}

# run_canary PROGRAM KIND...: a test of the tests: each kind of error must leave a report.
run_canary() {
  local how program=$1
  shift
  for how in "$@"; do
    sanitizers "canary_$how"
    "$program" "$how" >/dev/null 2>&1
    if [ -z "$(find "$logs/canary_$how.reports" -type f -size +0)" ]; then
      describe canary 0 1 0 0
      echo "canary: the sanitizers left no report of an error of kind '$how'" | of_failure
      failed=$((failed + 1))
      return
    fi
  done
  describe canary 1 0 0 0
  passed=$((passed + 1))
}

rm -rf "$logs"
mkdir -p "$logs"
[ -d "$TRACES" ] || echo "no real traces at $TRACES (set TRACES): the tests that read them are skipped"
[ "$SANITIZE" != 1 ] || run_canary "$BUILD/tests/canary" leak overflow undefined
fuzz=()
for program in "$@"; do
  case $program in
  */fuzz/*) fuzz+=("$program") ;;
  */tsan/*)
    run_canary "$(dirname "$program")/canary" race
    run_program "$(basename "$program")" "$program" "${thread_suites[@]}"
    ;;
  *=*) run_suite "${program%%=*}" "${program#*=}" ;;
  */real) run_criterion "$program" $((3 * $(nproc))) ;; # they wait, most of the time
  *) run_criterion "$program" "$(nproc)" ;;
  esac
done

# Fuzz targets are single processes: as many at once as there are processors, shown in their order.
running=0
for program in "${fuzz[@]}"; do
  if [ $running -ge "$(nproc)" ]; then
    wait -n
    running=$((running - 1))
  fi
  start_fuzz "$program" &
  running=$((running + 1))
done
wait
for program in "${fuzz[@]}"; do
  count_fuzz "$program"
done

if [ $((passed + failed)) -eq 0 ]; then
  echo "no test ran" | of_failure
  failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped" | tee "$logs/summary"
[ $failed -eq 0 ]
