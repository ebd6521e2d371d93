#!/bin/bash
# What of the evaluation fits one machine, on real processes: `scripts/paper/real.sh DISTMIND_SIM DISTMIND_REAL`; `make paper REAL=1`
# builds both and calls this. Writes results/paper-real.md: parts 1, 5, 7 and 8 made small, each run by distmind-real (GPUs where there
# are, else processors in their place; TCP over loopback) and by the simulator beside it. Takes two to three minutes.
#
# Times of real runs are those of this machine now: the file is not committed. results/real-h200-paper.md is that of one H200.
set -euo pipefail
cd "$(dirname "$0")/../.."
sim=$1 real=$2
export LC_ALL=C work=$PWD/build/paper-real out=results/paper
. scripts/paper/lib.sh
rm -rf "$work"
mkdir -p "$work" results

# Which device there is decides what is run: full-size models on a GPU, small ones on processors.
if "$real" run experiments/real-load.ini --local --device cuda --set workload.duration_s=1.5 --quiet --out "$work/probe.db" >"$work/probe.log" 2>&1; then
  device=cuda pace=100 base=h200 kinds="resnet152 bert_base" small=resnet152 caches="0 1.2 4.096" servers=1
else
  device=host pace=10 base=loopback kinds="small_net wide_net" small=small_net caches="0 0.02 0.08" servers=2
fi

# Both worlds run with what this machine does now, paced: the real one plans with it, the simulator is it.
echo "  calibrating" >&2
"$real" calibrate -o "$work/here.ini" --profiles "$work/profiles" --base "experiments/hardware/$base.ini" --device $device --pace $pace \
  --force --quiet >"$work/calibrate.log" 2>&1 || { cat "$work/calibrate.log" >&2; exit 1; }
cluster="--set cluster.hardware=$work/here.ini --set cluster.memory_hardware=$work/here.ini --set models.profile_dir=$work/profiles"
for key in nic_gbit_s memory_nic_gbit_s; do
  cluster+=" --set cluster.$key=$(sed -n "s/^$key = \([^ #]*\).*/\1/p" "$work/here.ini")"
done
cluster+=" --set cluster.memory_servers=2 --set cluster.heartbeat_ms=500 --set experiment.warmup_s=1"

# both LABEL EXPERIMENT ARGUMENT...: runs it in both worlds; rows "LABEL|system|real req/s|simulated|real p50|simulated|real p99|simulated".
both() {
  local label=$1 world
  shift
  echo "  $label" >&2
  # shellcheck disable=SC2086 # words
  "$real" run "$@" $cluster --local --device $device --pace $pace --quiet --force --out "$work/real.db" >"$work/real.log" 2>&1 ||
    { cat "$work/real.log" >&2; exit 1; }
  # shellcheck disable=SC2086
  "$sim" run "$@" $cluster --quiet --force --out "$work/sim.db" >"$work/sim.log" 2>&1 || { cat "$work/sim.log" >&2; exit 1; }
  sqlite3 -batch -init /dev/null "$work/real.db" "SELECT notices FROM run" >>"$work/notices"
  sqlite3 -batch -init /dev/null "$work/real.db" "ATTACH '$work/sim.db' AS s;
    SELECT '$label', r.system, printf('%.1f', r.throughput_rps), printf('%.1f', x.throughput_rps), printf('%.2f', r.latency_ms_p50), printf('%.2f', x.latency_ms_p50),
      printf('%.2f', r.latency_ms_p99), printf('%.2f', x.latency_ms_p99) FROM main.run r JOIN s.run x USING (system) ORDER BY r.id"
}

# rows HEADING: a Markdown table of the rows on standard input.
rows() {
  echo "## $1"
  echo
  echo "| $2 | system | req/s, real | simulated | p50 ms, real | simulated | p99 ms, real | simulated |"
  echo "|---|---|---|---|---|---|---|---|"
  sed 's/|/ | /g; s/^/| /; s/$/ |/'
  echo
}

latency() {
  local model file
  for model in $kinds; do
    file=$(with_model experiments/paper/01-latency.ini "$model" 6)
    both "$model, remote" "$file" --system distmind,ray --set workload.duration_s=4
    both "$model, host cache" "$file" --system distmind --set workload.duration_s=4 --set cluster.host_cache_gb="$(word 3 "$caches")"
  done
}

word() { cut -d' ' -f"$1" <<<"$2"; }

pipelining() {
  local model grouping file
  for model in $kinds; do
    file=$(with_model experiments/paper/05-pipelining.ini "$model" 3)
    for grouping in per-layer fixed:1024000 per-app optimal; do
      both "$model, $grouping" "$file" --set pipeline.grouping=$grouping --set workload.duration_s=3
    done
  done
}

balancing() {
  local policy file
  file=$(with_model experiments/paper/07-load-balancing.ini $small 8)
  for policy in cache_aware least_loaded; do
    both "$policy" "$file" --system distmind --set balancing.policy=$policy --set workload.duration_s=4 --set workload.shift_period_s=0.5 \
      --set cluster.gpu_servers=$servers --set cluster.gpus_per_server=1 --set cluster.host_cache_gb="$(word 2 "$caches")"
  done
}

caching() {
  local cache shift file
  file=$(with_model experiments/paper/08-caching.ini $small 8)
  for shift in 0.01 0.1; do
    for cache in $caches; do
      both "$cache GB, a shift each $shift s" "$file" --system distmind --set cluster.host_cache_gb="$cache" --set workload.shift_period_s=$shift --set workload.duration_s=4 \
        --set cluster.gpu_servers=$servers --set cluster.gpus_per_server=1
    done
  done
}

# used WORD: what the runs say that they used of it, without repeats: "host, 1 x host: 2 processors".
used() { grep -o "$1 [^;]*" "$work/notices" | sed "s/^$1 //; s/ on [0-9.:]*$//" | sort -u | paste -sd / - | sed 's,/, and ,g'; }

# here: the calibrated rates, "nic_gbit_s 99.9, ...".
here() { grep -E '^[a-z_]*(nic_gbit_s|pcie_gbyte_s|stream_us|control_us) = ' "$work/here.ini" | sed 's/ = / /' | grep -vE '^(pageable|ssd)' | paste -sd, - | sed 's/,/, /g'; }

{
  latency | rows "1. Latency of a request whose model is switched in" "model, source"
  pipelining | rows "5. Pipelining, from the memory servers" "model, grouping"
  balancing | rows "7. Load balancing" policy
  caching | rows "8. Caching" "host cache"
  echo "Left out: what one machine cannot be (2, 3, 9, 11: many servers with links of their own; 10: hours), and systems that this world lacks (ideal, mps)."
} >"$work/parts.md"
{
  echo "# Parts of the evaluation on real processes of one machine"
  echo
  echo "Written by \`make paper REAL=1\`: distmind-real beside the simulator, the same experiment files, $(nproc) processors. The runs used device $(used device); transport $(used transport), over loopback."
  echo "Both with the rates and the profiles that \`distmind-real calibrate --pace $pace\` measured right before: $(here)."
  [ $device = cuda ] || echo "Processors stand in for GPUs, so the models are small ones. With fewer processors than processes the real side is slowed by that."
  echo
  cat "$work/parts.md"
} >"$work/paper-real.md"
mv "$work/paper-real.md" results/paper-real.md
echo "results/paper-real.md: device $(used device); transport $(used transport), over loopback"
