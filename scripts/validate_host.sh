#!/bin/bash
# The calibrated simulator beside real runs on this machine without GPU: `scripts/validate_host.sh [BUILD]` (default build).
# Writes results/real-host.md; takes about 4 minutes. One GPU server and one memory server, so that the processes are few.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v sqlite3 >/dev/null || { echo "$0: needs the program sqlite3 (apt-get install sqlite3)" >&2; exit 1; }
build=${1:-build}
export DEVICE=host PACE=${PACE:-10} SYSTEMS=${SYSTEMS:-distmind,pipeswitch} DURATION_S=${DURATION_S:-5}
export EXPERIMENT=experiments/real-quickstart.ini BASE=loopback
export SETTINGS="--set cluster.gpu_servers=1 --set cluster.memory_servers=1 --set cluster.gpu_model_gb=0.12"

WORK=$(mktemp -d)
export WORK
note=$WORK/note.md
trap 'rm -rf "$WORK"' EXIT

# computing DATABASE: of inferences that follow one another without a pause for want of requests, what lies between one's end
# and the next one's beginning, and how long small_net's take; ms.
computing() {
  sqlite3 -separator ' | ' "$1" "
    WITH c AS (SELECT model, b, time_ns, (b - lag(time_ns) OVER (ORDER BY b)) / 1e6 AS gap, (time_ns - b) / 1e6 AS took
               FROM decision WHERE kind = 'compute' AND part IS NULL),
      g AS (SELECT gap, row_number() OVER (ORDER BY gap) AS r, count(*) OVER () AS n FROM c WHERE gap IS NOT NULL),
      t AS (SELECT took, row_number() OVER (ORDER BY took) AS r, count(*) OVER () AS n FROM c WHERE model LIKE 'small_net-%')
    SELECT printf('%.3f', (SELECT gap FROM g WHERE r = n / 2)), printf('%.3f', (SELECT gap FROM g WHERE r = n * 99 / 100)),
      printf('%.3f', (SELECT took FROM t WHERE r = n / 2)), printf('%.3f', (SELECT took FROM t WHERE r = n * 99 / 100))"
}

# Why they differ, where they do: the device's own work, or the processors that it waits for.
timeline() {
  local load=(--system distmind --set workload.kind=shifting --set workload.outstanding=2 --set workload.shift_period_s=0.5
    --set workload.duration_s="$DURATION_S" --set output.decisions=all --force --quiet)
  # shellcheck disable=SC2086
  "$build/distmind-real" run "$EXPERIMENT" $SETTINGS "${load[@]}" --local --device host --pace "$PACE" --out "$WORK/real.db" >"$WORK/log" 2>&1
  # shellcheck disable=SC2086
  "$build/distmind-sim" run "$EXPERIMENT" $SETTINGS "${load[@]}" --set models.profile_dir="$WORK/profiles" --out "$WORK/sim.db" >"$WORK/log"
  echo "### Where the time goes"
  echo
  echo "One more run of the shifting load with \`output.decisions = all\`; ms. Two clients keep the GPU asked for, so what lies between"
  echo "two inferences is the way from the device's thread over the server's loop to the device's next inference; the simulator"
  echo "counts it to the inference before (the profile's measured latency). What the p99 adds is threads that wait for a processor."
  echo
  echo "| | between two, p50 | p99 | small_net computes, p50 | p99 |"
  echo "|---|---|---|---|---|"
  echo "| real | $(computing "$WORK/real.db") |"
  echo "| simulated | $(computing "$WORK/sim.db") |"
}

before=$(cut -d ' ' -f 1 /proc/loadavg)
{
  echo "# The calibrated simulator beside the real run, host device"
  echo
  echo "Written by \`scripts/validate_host.sh\`: \`$EXPERIMENT\` with one GPU server and one memory server, which with controller"
  echo "and client are 4 processes. \"Real\" figures are medians of 5 runs. The host device copies and checks every byte by the same"
  echo "processors that run the processes, so with fewer than 5 of them, or beside other work, the figures are reported, not judged."
  echo
  scripts/validate.sh "$build"
  echo
  timeline
  echo
  echo "Processes that were ready to run on this machine, whosever, a minute's mean: $before before, $(cut -d ' ' -f 1 /proc/loadavg) at the end."
} >"$note"
install -D -m 644 "$note" results/real-host.md
echo "results/real-host.md"
