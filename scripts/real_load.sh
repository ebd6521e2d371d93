#!/bin/bash
# Load and infer on real hardware, model by model, beside the flow shop and the naive way; writes Markdown to standard output:
#
#     scripts/real_load.sh [--device cuda|host] [--seconds 4] [--alternate 60] [MODEL]... >results/real-h200.md
#
# For each model: p50 of one client's requests, each of which loads its model, from the host cache and from two memory servers over
# loopback TCP, unpaced and paced to 100 Gbit/s, every byte verified; beside it the flow shop of design section 3 (distmind-sim) at
# the rates that `distmind-real calibrate` measured in this very run; that of loopback unpaced, which moves with what else the
# host does, right before each model. Then a minute (--alternate SECONDS; 0: leave it out) of two models alternating on one GPU. Runs in the source tree, or in what `make device-bundle` made.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
bin=build
if [ ! -x $bin/distmind-real ]; then # a bundle
  bin=bin
  export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
device=cuda seconds=4 alternate=60 models=()
while [ $# -gt 0 ]; do
  case $1 in
    --device) device=$2; shift ;;
    --seconds) seconds=$2; shift ;;
    --alternate) alternate=$2; shift ;;
    -*) echo "real_load.sh: unknown option $1" >&2; exit 2 ;;
    *) models+=("$1") ;;
  esac
  shift
done
[ ${#models[@]} -gt 0 ] || models=(resnet152 inception_v3 densenet201 bert_base gpt2)
base=h200
[ "$device" = cuda ] || base=loopback
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

figure() { # JSON KEY: the first number after "KEY":
  grep -o "\"$1\": *[0-9.e+-]*" | head -n 1 | sed 's/.*: *//'
}

# Writes the experiment of one model: MODEL HARDWARE MEMORY_HARDWARE NIC_GBIT_S CACHE_GB
experiment() {
  sed -e "s/^resnet152 = 3/$1 = 3/" -e "s|^hardware = .*|hardware = $2|" -e "s|^memory_hardware = .*|memory_hardware = $3|" \
    -e "s/^nic_gbit_s = .*/nic_gbit_s = $4/" -e "s/^host_cache_gb = .*/host_cache_gb = $5/" \
    -e "s/^duration_s = .*/duration_s = $seconds/" experiments/real-load.ini >"$work/load.ini"
}

calibrate() { # PACE: a hardware file and profiles as measured now
  "$bin/distmind-real" calibrate -o "$work/pace$1.ini" --profiles "$work/profiles$1" --base "experiments/hardware/$base.ini" \
    --force --device "$device" --pace "$1" >"$work/calibrate.log" 2>&1 || { cat "$work/calibrate.log" >&2; exit 1; }
}

renew_network() { # what loopback gives now, unpaced
  "$bin/distmind-real" calibrate -o "$work/pace0.ini" --base "$work/pace0.ini" --only network --force --device "$device" \
    --quiet >"$work/calibrate.log" 2>&1 || { cat "$work/calibrate.log" >&2; exit 1; }
}

# One line of the table: MODEL SOURCE CACHE_GB PACE LIMIT SLACK_MS
row() {
  local hardware=$work/pace$4.ini nic real sim json
  nic=$(sed -n 's/^nic_gbit_s *= *\([0-9.]*\).*/\1/p' "$hardware")
  experiment "$1" "$hardware" "$hardware" "$nic" "$3"
  json=$("$bin/distmind-real" run "$work/load.ini" --local --device "$device" --pace "$4" --out "$work/x.db" --force --json) || exit 1
  real=$(figure p50 <<<"$json")
  sim=$("$bin/distmind-sim" run "$work/load.ini" --set models.profile_dir="$work/profiles$4" --out "$work/x.db" --force --json | figure p50) || exit 1
  local p99 requests
  p99=$(figure p99 <<<"$json"); requests=$(figure requests <<<"$json")
  awk -v m="$1" -v s="$2" -v r="$real" -v f="$sim" -v l="$5" -v k="$6" -v q="$p99" -v n="$requests" \
    -v g="$([ "$3" = 0 ] && echo "$nic" || echo '')" 'BEGIN {
    printf "| %s | %s | %s | %d | %.2f | %.2f | %.2f | %.3f | %s %g x%s |\n", m, s, g, n, r, q, f, r / f,
      (r <= l * f + k ? "within" : "MORE THAN"), l, (k > 0 ? " + " k " ms" : "") }'
}

calibrate 0
calibrate 100
echo "# Load and infer on $("$bin/distmind-real" run experiments/real-load.ini --local --device "$device" --set workload.duration_s=1.5 \
  --out "$work/x.db" --force 2>/dev/null | tr '\n' ' ' | sed -n 's/.*device [a-z]*, \(1 x [^;]*\);.*/\1/p')"
echo
echo "Written by \`scripts/real_load.sh --device $device\` on $(date -u +%Y-%m-%d), $(nproc) processors."
echo
echo "Calibrated in this run: $(grep -E '^(nic_gbit_s|pcie_gbyte_s|pcie_transfer_us|net_stream_us|net_group_us|group_sync_us|control_us)' "$work/pace0.ini" |
  sed 's/ *#.*//; s/ *= */ = /' | paste -sd, | sed 's/,/, /g'); paced to 100 Gbit/s: $(grep -E '^(nic_gbit_s|net_stream_us|net_group_us)' "$work/pace100.ini" |
  sed 's/ *#.*//; s/ *= */ = /' | paste -sd, | sed 's/,/, /g')."
echo
echo '| model | loaded from | network, Gbit/s | requests | p50, ms | p99, ms | flow shop, ms | ratio | bound |'
echo '|---|---|---|---|---|---|---|---|---|'
for model in "${models[@]}"; do
  row "$model" "host cache" 3 0 1.05 0.5
  renew_network
  row "$model" "memory servers, unpaced" 0 0 1.1 0
  row "$model" "memory servers, 100 Gbit/s" 0 100 1.1 0
done

# Two models in turn on a GPU that holds one of them; every byte of every load is checked, or the run fails.
if [ "$alternate" != 0 ]; then
  experiment resnet152 "$work/pace0.ini" "$work/pace0.ini" "$(sed -n 's/^nic_gbit_s *= *\([0-9.]*\).*/\1/p' "$work/pace0.ini")" 0
  sed -i -e 's/^resnet152 = 3/resnet152 = 1\nbert_base = 1/' -e "s/^duration_s = .*/duration_s = $alternate/" "$work/load.ini"
  json=$("$bin/distmind-real" run "$work/load.ini" --local --device "$device" --out "$work/x.db" --force --json) || exit 1
  echo
  echo "ResNet-152 and BERT alternating on one GPU for $alternate s: $(figure completed <<<"$json") of $(figure requests <<<"$json") requests, \
$(awk -v b="$(figure net_bytes <<<"$json")" 'BEGIN { printf "%.1f", b / 1e9 }') GB loaded from the memory servers and checked, p50 $(figure p50 <<<"$json") ms, p99 $(figure p99 <<<"$json") ms."
fi

if [ "$device" = cuda ] && python3 -c 'import torch' 2>/dev/null; then
  echo
  echo 'The naive way in the same session (`scripts/naive_load.py`: medians, context and kernels warm), ms:'
  echo
  echo '| model | unpickle | module.to | forward | in all |'
  echo '|---|---|---|---|---|'
  python3 scripts/naive_load.py "${models[@]}" 2>/dev/null | awk '{ printf "| %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5 }'
fi
