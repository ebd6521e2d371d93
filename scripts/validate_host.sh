#!/bin/bash
# The calibrated simulator beside real runs on this machine without GPU: `scripts/validate_host.sh [BUILD]` (default build).
# Writes results/real-host.md; takes about 4 minutes. One GPU server and one memory server, so that the processes are few.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
export DEVICE=host PACE=${PACE:-10} SYSTEMS=${SYSTEMS:-distmind,pipeswitch} DURATION_S=${DURATION_S:-5}
export EXPERIMENT=experiments/real-quickstart.ini BASE=loopback
export SETTINGS="--set cluster.gpu_servers=1 --set cluster.memory_servers=1 --set cluster.gpu_model_gb=0.12"

note=$(mktemp)
trap 'rm -f "$note"' EXIT
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
  echo "Processes that were ready to run on this machine, whosever, a minute's mean: $before before, $(cut -d ' ' -f 1 /proc/loadavg) at the end."
} >"$note"
install -D -m 644 "$note" results/real-host.md
echo "results/real-host.md"
