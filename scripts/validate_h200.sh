#!/bin/bash
# The calibrated simulator beside real runs on a machine with a GPU: `scripts/validate_h200.sh [BUNDLE]`, with BUNDLE what
# `make device-bundle` made (default build/device). Calibrates, runs experiments/real-h200.ini under a Poisson load at 70% of
# what ideal could do and under a shifting one, five times each, and prints the medians as Markdown. Needs no network, and
# about 6 minutes.
#
# REPEATS=5, DURATION_S=8, SYSTEMS=distmind,pipeswitch, PACE=100 (Gbit/s), DEVICE=cuda, EXPERIMENT=..., WORK=folder for
# databases and the calibrated files (default: a temporary one, removed at the end).
set -euo pipefail
bundle=${1:-build/device}
repeats=${REPEATS:-5} duration_s=${DURATION_S:-8} systems=${SYSTEMS:-distmind,pipeswitch} pace=${PACE:-100} device=${DEVICE:-cuda}
experiment=${EXPERIMENT:-$bundle/experiments/real-h200.ini}
base=${BASE:-$bundle/experiments/hardware/h200.ini}
if [ -z "${WORK:-}" ]; then
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK"
hardware=$WORK/calibrated.ini profiles=$WORK/profiles

sim() { "$bundle/run" distmind-sim "$@"; }
real() { "$bundle/run" distmind-real "$@"; }

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
    real run "$experiment" --local --device "$device" --pace "$pace" --system "$systems" --seed "$i" $(calibrated_sets) "$@" \
      --out "$WORK/$name-$i.db" --force --quiet >"$WORK/$name-$i.txt" 2>&1 || { cat "$WORK/$name-$i.txt" >&2; return 1; }
    databases+=("$WORK/$name-$i.db")
  done
  echo
  echo "\`\`\`"
  sim validate "${databases[@]}" --hardware "$hardware" --profiles "$profiles" | sed "s|$WORK/||g"
  echo "\`\`\`"
}

echo "## The calibrated simulator beside the real run"
echo
echo "Written by \`scripts/validate_h200.sh\` on $(nproc) processors, on $(date -u +%Y-%m-%d). Calibration (\`distmind-real calibrate --pace $pace\`):"
echo
echo "\`\`\`"
real calibrate -o "$hardware" --profiles "$profiles" --device "$device" --pace "$pace" --base "$base" --force | sed "s|$WORK/||g"
grep '^#   ' "$hardware" | sed 's/^#  //'
echo "\`\`\`"

# 70% of what ideal could do: its rate at a load, by the part of the GPUs that this took.
ideal=$(sim run "$experiment" --system ideal --set workload.duration_s=100 --set models.profile_dir="$profiles" \
  --out "$WORK/ideal.db" --force --json --quiet)
rate=$(awk -v rps="$(figure throughput_rps <<<"$ideal")" -v used="$(figure gpu_utilization <<<"$ideal")" \
  'BEGIN { printf "%.2f", 0.7 * rps / used }')

echo
echo "### Poisson arrivals, $rate requests a second: 70% of what ideal could do"
runs poisson --set workload.kind=poisson --set workload.rate_rps="$rate" --set workload.duration_s="$duration_s"

echo
echo "### Shifting demand, two clients a GPU"
runs shifting --set workload.kind=shifting --set workload.outstanding="${OUTSTANDING:-2}" --set workload.shift_period_s=0.5 \
  --set workload.duration_s="$duration_s"
