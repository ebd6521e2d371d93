#!/bin/bash
# Runs the benchmarks one after the other, alone on the machine as far as this script can tell:
# `scripts/bench.sh DISTMIND_SIM PROGRAM...`. Each prints its figures beside their yardsticks and exits non-zero when one
# is missed; all run, and the exit status says whether any missed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

DISTMIND_SIM=$PWD/$1
export DISTMIND_SIM
shift
missed=()
for program in "$@"; do
  echo "== $(basename "$program")"
  "$program" </dev/null || missed+=("$(basename "$program")")
done
if [ ${#missed[@]} -gt 0 ]; then
  echo "missed: ${missed[*]}"
  exit 1
fi
