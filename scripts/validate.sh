#!/bin/bash
# The calibrated simulator beside real runs, as Markdown on standard output: `scripts/validate.sh PROGRAMS`, with PROGRAMS the
# folder of the programs (build), or what `make device-bundle` made (build/device). validate_h200.sh and validate_host.sh call
# it for their machines. Calibrates, runs an experiment under a Poisson load at 70% of what ideal could do and under a
# shifting one, five times each, lays each beside its simulation and prints medians. Needs no network.
#
# From the environment: DEVICE, PACE (Gbit/s), EXPERIMENT, BASE (hardware), SYSTEMS, DURATION_S of a run; and, with defaults,
# REPEATS=5, LOAD=0.7 (of ideal's capacity), OUTSTANDING=2 (clients of the shifting load), SETTINGS (further --set options of
# all runs), WORK (folder for databases and calibrated files; default a temporary one, removed at the end).
set -euo pipefail
programs=${1:?the folder of the programs}
: "${DEVICE:?}" "${PACE:?}" "${EXPERIMENT:?}" "${BASE:?}" "${SYSTEMS:?}" "${DURATION_S:?}"
repeats=${REPEATS:-5} load=${LOAD:-0.7} outstanding=${OUTSTANDING:-2}
read -ra settings <<<"${SETTINGS:-}"
if [ -z "${WORK:-}" ]; then
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK"
hardware=$WORK/calibrated.ini profiles=$WORK/profiles

# program NAME ARGUMENT...: of a bundle by its `run`.
program() {
  local name=$1
  shift
  if [ -x "$programs/run" ]; then "$programs/run" "$name" "$@"; else "$programs/$name" "$@"; fi
}

# figure NAME: of the first system in the JSON object on standard input.
figure() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*$/\1/p" | head -n 1; }

# The calibrated values, so that controller and GPU servers plan with them too.
calibrated_sets() {
  sed -n 's/^\([a-z_]*\(nic_gbit_s\|pcie_gbyte_s\|_us\)\) = \([^ ]*\).*/\1=\3/p' "$hardware" |
    grep -E '^(memory_)?nic_gbit_s|^pcie_gbyte_s|^(control|net_stream|net_group|pcie_transfer|group_sync|launch)_us' |
    sed 's/^/--set cluster./'
}

# runs NAME SETTING...: the experiment so often, and the comparison.
runs() {
  local name=$1 databases=() i
  shift
  for ((i = 1; i <= repeats; i++)); do
    # shellcheck disable=SC2046
    program distmind-real run "$EXPERIMENT" --local --device "$DEVICE" --pace "$PACE" --system "$SYSTEMS" --seed "$i" \
      $(calibrated_sets) "${settings[@]}" --set workload.duration_s="$DURATION_S" "$@" \
      --out "$WORK/$name-$i.db" --force --quiet >"$WORK/$name-$i.txt" 2>&1 || { cat "$WORK/$name-$i.txt" >&2; return 1; }
    databases+=("$WORK/$name-$i.db")
  done
  echo
  echo "\`\`\`"
  program distmind-sim validate "${databases[@]}" --hardware "$hardware" --profiles "$profiles" | sed "s|$WORK/||g"
  echo "\`\`\`"
}

echo "Calibrated by \`distmind-real calibrate --device $DEVICE --pace $PACE\` on $(nproc) processors, on $(date -u +%Y-%m-%d):"
echo
echo "\`\`\`"
program distmind-real calibrate -o "$hardware" --profiles "$profiles" --device "$DEVICE" --pace "$PACE" --base "$BASE" --force |
  grep -v '^hardware:'
grep '^#   ' "$hardware" | sed 's/^#   //'
echo "\`\`\`"

# What ideal could do: its rate at some load, by the part of the GPUs that this took.
ideal=$(program distmind-sim run "$EXPERIMENT" --system ideal "${settings[@]}" --set workload.duration_s=100 \
  --set models.profile_dir="$profiles" --out "$WORK/ideal.db" --force --json --quiet)
rate=$(awk -v load="$load" -v rps="$(figure throughput_rps <<<"$ideal")" -v used="$(figure gpu_utilization <<<"$ideal")" \
  'BEGIN { printf "%.2f", load * rps / used }')

echo
echo "### Poisson arrivals, $rate requests a second: $load of what ideal could do; $repeats runs of $DURATION_S s"
runs poisson --set workload.kind=poisson --set workload.rate_rps="$rate"

echo
echo "### Shifting demand, $outstanding clients; $repeats runs of $DURATION_S s"
runs shifting --set workload.kind=shifting --set workload.outstanding="$outstanding" --set workload.shift_period_s=0.5
