#!/bin/bash
# scripts/cluster.sh with folders in place of machines and a shell in place of ssh. Ends as a Criterion program does, for
# tests/run.sh.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

sim=${DISTMIND_SIM:-$PWD/build/distmind-sim}
folder=$(mktemp -d "${TMPDIR:-/tmp}/distmind-cluster-test-XXXXXX")
export FAKE_MACHINES=$folder/machines DISTMIND_SSH=$PWD/tests/cluster/fake_ssh
trap 'rm -rf "$folder"' EXIT
tested=0 failing=0

scripts/device_bundle.sh "$sim" "$(dirname "$sim")/distmind-real" "$folder/bundle" >/dev/null || exit 1
cat >"$folder/x.ini" <<'INI'
[experiment]
name = x
systems = distmind
[cluster]
hardware = loopback
memory_hardware = loopback
gpu_servers = 2
gpus_per_server = 1
memory_servers = 2
gpu_model_gb = 0.05
host_cache_gb = 0.08
heartbeat_ms = 3000
[models]
small_net = 8
[workload]
kind = trace
trace = arrivals.csv
INI
{
  echo 'arrival_s,model'
  for ((i = 0; i < 40; i++)); do echo "0.0$((i % 10 + 10 * (i / 10))),small_net-$((i % 8))"; done | sort -n
} >"$folder/arrivals.csv"
cat >"$folder/machines.txt" <<'TXT'
# two machines, of which one has both pools' first servers
controller     a   127.0.0.1
memory-server  a   127.0.0.1   # comment
gpu-server     a   127.0.0.1
gpu-server     b   127.0.0.1   --log debug
memory-server  b   127.0.0.1
TXT

# cluster NAME OPTION...: runs it; what it prints in NAME.txt, what comes out in NAME. A port that is free now.
cluster() {
  local name=$1 port
  shift
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  scripts/cluster.sh "$folder/machines.txt" "$folder/x.ini" --bundle "$folder/bundle" --out "$folder/$name" --port "$port" \
    "$@" >"$folder/$name.txt" 2>&1
}

# Nothing runs, no key and no run's folder is left.
nothing_left() {
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    pgrep -f "$folder/machines" >/dev/null || break
    sleep 0.1
  done
  ! pgrep -af "$folder/machines" || return 1
  [ -z "$(find "$folder/machines" -name '*.secret' -o -name 'run-*')" ]
}
ask() { sqlite3 "$folder/$1/x.db" "$2"; }

# expect NAME: one test, a function in which the first command that fails ends it (so it stands in no condition).
# shellcheck disable=SC2181
expect() {
  tested=$((tested + 1))
  (set -e; "$1") >"$folder/log" 2>&1
  if [ $? -eq 0 ]; then
    echo "[PASS] cluster::$1"
  else
    echo "[FAIL] cluster::$1"
    tail -n 30 "$folder/log"
    failing=$((failing + 1))
  fi
}

runs_and_brings_home() {
  cluster first --with "$folder/arrivals.csv" --record --timeline -- --device host --transport tcp || { cat "$folder/first.txt"; return 1; }
  [ "$(ask first 'SELECT requests, completed FROM run')" = '40|40' ]
  grep -q 'transport tcp' "$folder/first.txt"
  [ -s "$folder/first/timeline.json" ]
  (cd "$folder" && "$sim" rerun first/record.*) | grep -q 'same decisions'
  for log in controller-0 gpu-server-0 gpu-server-1 memory-server-0 memory-server-1; do [ -s "$folder/first/$log.log" ]; done
  nothing_left
}

sends_the_programs_once() {
  cluster second --with "$folder/arrivals.csv" -- --device host
  ! grep 'sends the programs' "$folder/second.txt" || return 1
}

refuses_what_is_malformed() {
  local line
  while IFS= read -r line; do
    echo "$line"
    printf 'controller a 127.0.0.1\n%s\n' "$line" >"$folder/bad.txt"
    status=0
    scripts/cluster.sh "$folder/bad.txt" "$folder/x.ini" --bundle "$folder/bundle" --out "$folder/bad" 2>"$folder/bad.err" || status=$?
    [ $status -eq 2 ]
    [ "$(wc -l <"$folder/bad.err")" -eq 1 ]
    grep -q 'bad.txt' "$folder/bad.err"
    [ ! -e "$folder/bad" ]
  done <<'LINES'
gpu-servers b 127.0.0.1
gpu-server b
gpu-server -oProxyCommand=x 127.0.0.1
gpu-server b $(reboot)
controller b 127.0.0.2
gpu-server b 127.0.0.1
LINES
  for line in --port=1 '--port 0' '--port 65536' '--out bundle' '--with nothing' '-- --out y.db' '-- --record=y' 'a.ini b.ini'; do
    echo "$line"
    status=0
    # shellcheck disable=SC2086 # several words
    (cd "$folder" && "$OLDPWD/scripts/cluster.sh" machines.txt x.ini --bundle bundle $line) 2>"$folder/bad.err" || status=$?
    [ $status -eq 2 ]
    [ "$(wc -l <"$folder/bad.err")" -eq 1 ]
  done
}

says_which_machine_fails() {
  sed -i.kept 's/^gpu-server     b/gpu-server     unreachable/' "$folder/machines.txt"
  status=0
  cluster third --with "$folder/arrivals.csv" -- --device host || status=$?
  mv "$folder/machines.txt.kept" "$folder/machines.txt"
  [ $status -eq 1 ]
  grep -q '^cluster.sh: unreachable: cannot be prepared' "$folder/third.txt"
  nothing_left
}

# A server that cannot start would be waited for.
ends_when_a_server_fails() {
  sed -i.kept 's/--log debug/--first-gpu nonsense/' "$folder/machines.txt"
  status=0
  cluster fourth --with "$folder/arrivals.csv" -- --device host || status=$?
  mv "$folder/machines.txt.kept" "$folder/machines.txt"
  cat "$folder/fourth.txt"
  [ $status -eq 1 ]
  grep -q '^cluster.sh: gpu-server 1 on b ended with status 2: .*--first-gpu' "$folder/fourth.txt"
  nothing_left
}

# begun NAME: a long run in the background, once it is under way.
begun() {
  cluster "$1" --with "$folder/arrivals.csv" -- --device host --set workload.kind=poisson --set workload.rate_rps=50 \
    --set workload.duration_s=60 &
  running=$!
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    ! grep -qs 'run 1: begun' "$folder/$1/controller-0.log" || break
    sleep 0.1
  done
  sleep 1
  script=$(pgrep -f "scripts/cluster.sh.*--out $folder/$1 " | head -n 1)
}

keeps_what_was_done_on_ctrl_c() {
  begun fifth
  kill -TERM "$script" # as Ctrl-C, which a background process of a shell is deaf to
  status=0
  wait "$running" || status=$?
  cat "$folder/fifth.txt"
  [ $status -eq 130 ]
  [ "$(ask fifth 'SELECT completed > 10 AND completed < 1000 FROM run')" = 1 ]
  nothing_left
}

leaves_nothing_running_when_killed() {
  begun sixth
  kill -KILL "$script"
  local tries
  for ((tries = 0; tries < 200; tries++)); do
    pgrep -f "distmind-real .*sixth|$folder/machines" >/dev/null || break
    sleep 0.1
  done
  ! pgrep -af "$folder/machines" || return 1
}

expect runs_and_brings_home
expect sends_the_programs_once
expect refuses_what_is_malformed
expect says_which_machine_fails
expect ends_when_a_server_fails
expect keeps_what_was_done_on_ctrl_c
expect leaves_nothing_running_when_killed
echo "[====] Synthesis: Tested: $tested | Passing: $((tested - failing)) | Failing: $failing | Crashing: 0"
[ $failing -eq 0 ]
