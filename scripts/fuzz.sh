#!/bin/bash
# Runs libFuzzer targets: `scripts/fuzz.sh PROGRAM...`, FUZZ_SECONDS=600 each, as many at once as there are processors.
# Stops at the first finding and names its file. New inputs gather in build/fuzz-corpus and serve the next run.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

seconds=${FUZZ_SECONDS:-600}
grown=build/fuzz-corpus findings=build/findings
export UBSAN_OPTIONS=print_stacktrace=1
declare -A name_of=() # by process id

# Leaves this script's own children alone to be stopped, each by its id.
stop_all() {
  [ ${#name_of[@]} -eq 0 ] || kill "${!name_of[@]}" 2>/dev/null
}
trap 'stop_all; exit 130' INT TERM

start() {
  local program=$1 name
  name=$(basename "$1")
  mkdir -p "$grown/$name" "$findings"
  "$program" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -print_final_stats=1 -close_fd_mask=1 \
    -artifact_prefix="$findings/$name-" "$grown/$name" "tests/fuzz/corpus/$name" >"$grown/$name.log" 2>&1 </dev/null &
  name_of[$!]=$name
  echo "$name: $seconds s, log in $grown/$name.log"
}

# Waits for one target; returns 1 on a finding.
finish_one() {
  local pid status name
  wait -n -p pid "${!name_of[@]}"
  status=$?
  name=${name_of[$pid]}
  unset "name_of[$pid]"
  if [ $status -eq 0 ]; then
    echo "$name: no finding, $(sed -n 's/^stat::number_of_executed_units: *//p' "$grown/$name.log") inputs"
    return 0
  fi
  grep -m 1 -A 12 -E 'ERROR: |runtime error: ' "$grown/$name.log"
  echo "$name: FINDING, $(sed -n 's/.*Test unit written to //p' "$grown/$name.log" | head -n 1) (log in $grown/$name.log)"
  return 1
}

for program in "$@"; do
  if [ ${#name_of[@]} -ge "$(nproc)" ]; then
    finish_one || { stop_all; exit 1; }
  fi
  start "$program"
done
while [ ${#name_of[@]} -gt 0 ]; do
  finish_one || { stop_all; exit 1; }
done
