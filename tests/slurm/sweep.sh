#!/bin/bash
# `sweep --slurm` on a real Slurm cluster of one node: the database is the local one's, whether it waits, is detached and
# merged, loses an element of the array, or has runs that fail. Ends as a Criterion program does, for tests/run.sh, which
# `make check-slurm` calls. Where no cluster can be started, the test is skipped with the reason.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
source tests/slurm/cluster.sh

sim=${DISTMIND_SIM:-$PWD/build/distmind-sim}
folder=$(mktemp -d "${TMPDIR:-/tmp}/distmind-slurm-XXXXXX")
tested=0 failing=0
finish() {
  slurm_stop
  rm -rf "$folder"
}
trap finish EXIT

cat >"$folder/x.ini" <<'INI'
[experiment]
name = on-a-cluster
systems = ideal;distmind;mps
[cluster]
hardware = h200
gpu_servers = 1
memory_servers = 2
gpu_models_max = 1
[models]
resnet152 = 8
[workload]
kind = poisson
rate_rps = 20
duration_s = 10
INI
vary=(--vary workload.rate_rps=10..40/10 --vary cluster.gpu_servers=1,2)

# contents DB: all that is stored, but when, where and how fast.
contents() {
  sqlite3 "$1" .dump | sed -E 's/^INSERT INTO run VALUES.*//'
  local columns
  columns=$(sqlite3 "$1" "SELECT group_concat(name) FROM pragma_table_info('run') WHERE name NOT IN ('started','ended','wall_s','host')")
  sqlite3 "$1" "SELECT $columns FROM run ORDER BY id"
}

# expect NAME: one test, a function in which the first command that fails ends it (so it stands in no condition).
expect() {
  local name=$1
  tested=$((tested + 1))
  (set -e; "$name") >"$folder/$name.log" 2>&1
  if [ $? -eq 0 ]; then
    echo "[PASS] slurm::$name"
  else
    echo "[FAIL] slurm::$name"
    tail -n 20 "$folder/$name.log"
    failing=$((failing + 1))
  fi
}

same_as_local() {
  diff <(contents "$folder/local.db") <(contents "$1")
  [ ! -e "$1.tasks" ]
}

waits_and_merges() {
  "$sim" sweep x.ini "${vary[@]}" --out a.db --slurm --quiet
  same_as_local a.db
}

goes_on_with_what_is_missing() {
  "$sim" sweep x.ini "${vary[@]}" --out b.db --slurm --slurm-options '--cpus-per-task=2 --comment="two words"' --detach >b.out
  grep -qE '^submitted job [0-9]+: 24 runs; once it has ended, merge them by the same command with --merge ' b.out
  slurm_await 60 sh -c 'test -z "$(squeue -h)"'
  rm b.db.tasks/task-000004.db b.db.tasks/task-000017.db
  truncate -s 9000 b.db.tasks/task-000009.db
  ! "$sim" sweep x.ini "${vary[@]}" --out b.db --merge 2>b.err || return 1
  grep -q ' 3 of 24 runs are not there yet; nothing was merged' b.err
  [ ! -e b.db ]
  "$sim" sweep x.ini "${vary[@]}" --out b.db --slurm --quiet
  same_as_local b.db
}

failures_have_their_reasons() {
  local status=0
  "$sim" sweep x.ini --vary cluster.host_memory_gb=0.1,100 --out c.db --slurm --quiet --json >c.json || status=$?
  [ $status -eq 1 ]
  grep -q 'host memory of a GPU server: needs' c.json
  [ "$(sqlite3 c.db 'SELECT count(*) FROM run')" -gt 3 ]
}

lost_elements_are_reported() {
  local status=0
  "$sim" sweep x.ini --vary workload.duration_s=1000000,10 --system ideal --out d.db --slurm --quiet >d.out 2>&1 &
  local pid=$!
  slurm_await 20 test -e d.db.tasks/task-000001.db
  scancel --name=distmind-sweep
  wait $pid || status=$?
  [ $status -eq 1 ]
  grep -q 'workload.duration_s=1000000, ideal: element 0 of job .* left no result' d.out
  [ "$(sqlite3 d.db 'SELECT count(*) FROM run')" -eq 1 ]
}

if ! slurm_start "$folder"; then
  echo "[SKIP] slurm::sweep: $slurm_reason"
  echo "[====] Synthesis: Tested: 0 | Passing: 0 | Failing: 0 | Crashing: 0"
  exit 0
fi
cd "$folder" || exit 1
"$sim" sweep x.ini "${vary[@]}" --out local.db --quiet >/dev/null || exit 1
expect waits_and_merges
expect goes_on_with_what_is_missing
expect failures_have_their_reasons
expect lost_elements_are_reported
echo "[====] Synthesis: Tested: $tested | Passing: $((tested - failing)) | Failing: $failing | Crashing: 0"
[ $failing -eq 0 ]
